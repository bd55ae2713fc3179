/* Running kcheck (kcheck_child.h) for parity alone, and reading its answer. */
#include "engine/parity_child.h"

#include "base/json.h"
#include "base/program.h"
#include "engine/kcheck_child.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void all(struct msg_parity *p, unsigned n, const char *state, const char *text)
{
    for (unsigned i = 0; i < n; i++) {
        snprintf(p[i].state, sizeof p[i].state, "%s", state);
        snprintf(p[i].text, sizeof p[i].text, "%s", text);
    }
}

static bool go_on(void *ctx)
{
    struct engine *e = ctx;
    engine_progress(e, "parity", 0, 1);
    return !commands_stopping(e->cmds);
}

/* The outcome of one shape among kcheck's results. */
static void take_result(const cJSON *results, struct msg_parity *p)
{
    const cJSON *r;
    cJSON_ArrayForEach(r, results)
    {
        const char *state = json_text(r, "disposition");
        if (json_number(r, "m") != p->m || json_number(r, "n") != p->n ||
            json_number(r, "k") != p->k)
            continue;
        /* Not tried, since another shape had ended the child: nothing is known of this one. */
        if (!strcmp(state, "skipped")) state = "unavailable";
        snprintf(p->state, sizeof p->state, "%s", state);
        snprintf(p->text, sizeof p->text, "%s", json_text(r, "why"));
        p->nmse = json_number(r, "nmse");
        p->worst = (double)NAN; /* kcheck gives it as a share of its limit */
        if (!strcmp(state, "ok"))
            snprintf(p->text, sizeof p->text, "worst element at %.2g of its limit",
                     json_number(r, "worst"));
        return;
    }
    all(p, 1, "failed", "kcheck said nothing about this shape");
}

static void read_answer(const struct buf *answer, int wstatus, struct msg_parity *p, unsigned n)
{
    char text[200];
    cJSON *root = cJSON_ParseWithLength((const char *)answer->data, answer->len);
    const cJSON *results = cJSON_GetObjectItemCaseSensitive(root, "results");
    if (WIFSIGNALED(wstatus)) {
        snprintf(text, sizeof text, "the check was ended by signal %d", WTERMSIG(wstatus));
        all(p, n, "fault", text);
    } else if (!cJSON_IsArray(results)) {
        snprintf(text, sizeof text, "kcheck gave no answer (exit status %d)", WEXITSTATUS(wstatus));
        all(p, n, WEXITSTATUS(wstatus) == EXIT_UNAVAILABLE ? "unavailable" : "fault", text);
    } else {
        for (unsigned i = 0; i < n; i++) take_result(results, &p[i]);
    }
    cJSON_Delete(root);
}

void parity_child(struct engine *e, struct msg_parity *p, unsigned n)
{
    char path[4096], kernel[80], shapes[PARITY_CHILD_SHAPES * 36];
    char *argv[] = {path, "--variant", kernel, "--shapes", shapes, "--json", NULL};
    struct buf answer = {0};
    size_t at = 0;
    int wstatus = 0;
    if (p[0].kd)
        snprintf(kernel, sizeof kernel, "%s_kd%u", p[0].variant, p[0].kd);
    else
        snprintf(kernel, sizeof kernel, "%s", p[0].variant);
    for (unsigned i = 0; i < n && at < sizeof shapes; i++)
        at += (size_t)snprintf(shapes + at, sizeof shapes - at, "%s%u,%u,%u", i ? ";" : "", p[i].m,
                               p[i].n, p[i].k);
    if (!program_find("SASSTOP_KCHECK", "kcheck", path, sizeof path)) {
        all(p, n, "unavailable", "kcheck is not beside this program: run make");
        return;
    }
    enum kcheck_end end;
    if (kcheck_run(argv, PARITY_CHILD_S, go_on, e, &answer, &end, &wstatus) != OK)
        all(p, n, "unavailable", "kcheck can't be started");
    else if (end == KCHECK_DONE)
        read_answer(&answer, wstatus, p, n);
    else
        all(p, n, "hang", "the check did not end in time and was killed");
    buf_free(&answer);
}
