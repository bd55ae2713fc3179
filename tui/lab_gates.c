/*
 * The gates of an experiment, in their order: parity, the claim about the machine code (the
 * incumbent first, alone), resources, clocks. See docs/LAB.md.
 *
 * Invariants: a gate that can't be held here says so as "skipped" with the reason; with
 * --force-gates a failed one is marked "forced" and the run goes on. A prediction from the machine
 * code stops nothing: only equal instruction bytes in the same place do.
 */
#include "tui/lab_run.h"

#include "sass_view/diff.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX_BYTES = 1 << 20 };

static enum status hard_gate(struct lab_run *r, const char *gate, bool ok, const char *text)
{
    const char *state = ok ? "ok" : r->o->force_gates ? "forced" : "failed";
    return lab_put_gate(r, gate, state, "%s", text);
}

/* ---- parity ---- */

/* Ragged shapes beside the one that is timed; two fresh sets of inputs each. */
static enum status run_kcheck(const struct lab_run *r, const struct lab_side *s, struct buf *out)
{
    char program[512], kernel[64], shapes[160], command[1400];
    enum status st = lab_program("kcheck", "SASSTOP_KCHECK", program, sizeof program);
    if (st != OK) return st;
    lab_side_kernel(s, kernel, sizeof kernel);
    snprintf(shapes, sizeof shapes, "%s%s257,129,1024;61,33,256;1,1,256",
             r->o->engine ? "" : r->o->shape, r->o->engine ? "" : ";");
    int fds[2];
    if (pipe(fds)) return err_set(ERR_FAILED, "no pipe: %s", strerror(errno));
    const char *argv[] = {program, "--variant", kernel,     "--shapes", shapes, "--repeat",
                          "2",     "--json",    "--cubins", s->cubins,  NULL};
    if (!s->cubins[0]) argv[8] = NULL;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        close(fds[0]);
        execv(program, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(fds[1]);
    while (pid > 0) {
        ssize_t n = read(fds[0], command, sizeof command);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        if (out->len < ANSWER_MAX_BYTES) buf_put(out, command, (size_t)n);
    }
    close(fds[0]);
    if (pid < 0) return err_set(ERR_FAILED, "kcheck can't be started");
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    buf_u8(out, 0);
    return OK;
}

static void words_of(const cJSON *o, char text[300])
{
    const cJSON *s;
    int n = 0, at = 0;
    cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(o, "results"))
    {
        const cJSON *d = cJSON_GetObjectItemCaseSensitive(s, "disposition");
        const cJSON *why = cJSON_GetObjectItemCaseSensitive(s, "why");
        n++;
        if (cJSON_IsString(d) && strcmp(d->valuestring, "ok") && at < 200)
            at += snprintf(text + at, 300 - (size_t)at, "%s%.20s: %.120s", at ? "; " : "",
                           d->valuestring, cJSON_IsString(why) ? why->valuestring : "");
    }
    if (!at) snprintf(text, 300, "%d shapes, ragged ones included, two sets of inputs each", n);
}

static enum status kernel_parity(struct lab_run *r, const struct lab_side *s, bool *ok,
                                 char text[300])
{
    struct buf answer = {0};
    lab_side_enter(s);
    enum status st = run_kcheck(r, s, &answer);
    lab_side_leave(s);
    *ok = false;
    snprintf(text, 300, "%s", st == OK ? "kcheck gave no answer" : err_msg());
    cJSON *o = st == OK ? cJSON_Parse((const char *)answer.data) : NULL;
    if (o) {
        *ok = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "ok"));
        words_of(o, text);
    }
    cJSON_Delete(o);
    buf_free(&answer);
    return OK;
}

static enum status parity(struct lab_run *r, const struct lab_side *s, const char *gate)
{
    char text[300];
    bool ok;
    /* The CPU engine knows its variants itself; a kernel has kcheck. */
    bool by_engine = r->o->engine && !r->child[LAB_A].sm;
    if (by_engine)
        (void)lab_child_parity(&r->child[LAB_A], s, &ok, text);
    else
        (void)kernel_parity(r, s, &ok, text);
    if (lab_interrupted) return ERR_END;
    return hard_gate(r, gate, ok, text);
}

/* ---- machine code ---- */

static enum status held(struct lab_run *r, const struct claim *c, const struct diff *d)
{
    const struct lab_options *o = r->o;
    struct claim_result cr;
    claim_hold(c, d, &o->a.code.census, &o->b.code.census, &cr);
    bool schedule = c->schedule_only;
    enum status st;
    if (schedule)
        st = lab_put_gate(r, "claim A", "ok", "a claim about the schedule needs B");
    else if (cr.state == CLAIM_UNKNOWN)
        return lab_put_gate(r, "claim A", "skipped", "%s", cr.text);
    else
        st = lab_put_gate(r, "claim A", cr.a == c->from ? "ok" : "unmet",
                          cr.a == c->from ? "the incumbent alone holds %lld, where the claim starts"
                          : cr.a == c->to ? "the incumbent alone holds %lld already: what is "
                                            "claimed is done; NOISE is predicted"
                                          : "the incumbent alone holds %lld, which is not where "
                                            "the claim starts; NOISE is predicted",
                          (long long)cr.a);
    bool met = schedule ? cr.state == CLAIM_MET : cr.b == c->to;
    if (st == OK) st = lab_put_gate(r, "claim B", met ? "met" : "unmet", "%s", cr.text);
    return st;
}

static enum status claim(struct lab_run *r, const struct diff *d)
{
    struct claim c;
    if (!strcmp(r->o->claim, "none"))
        return lab_put_gate(r, "claim A", "skipped", "nothing is claimed about the machine code");
    if (claim_parse(&c, r->o->claim) != OK)
        return lab_put_gate(r, "claim A", "skipped", "%s", err_msg());
    return held(r, &c, d);
}

static enum status machine_code(struct lab_run *r)
{
    const struct lab_options *o = r->o;
    struct diff d;
    if (!o->a.has_code || !o->b.has_code) {
        if (!strcmp(o->claim, "none"))
            return lab_put_gate(r, "code", "skipped", "no cubin of both sides; nothing is claimed");
        return lab_put_gate(r, "claim A", "skipped", "no cubin of both sides to hold it against");
    }
    enum status st =
        diff_make(&d, &o->a.code.flow, &o->b.code.flow, &o->a.code.census, &o->b.code.census);
    if (st != OK) return st;
    bool same = d.verdict == DIFF_IDENTICAL, place = lab_side_same_place(&o->a, &o->b);
    bool control = same && place && !strcmp(o->a.text, o->b.text);
    const char *state = !same || !place || control ? "ok" : o->force_gates ? "forced" : "identical";
    st = lab_put_gate(r, "code", state, "%s%s", diff_verdict_name(d.verdict),
                      control          ? ": A against itself, as asked"
                      : same && !place ? ": only the place differs"
                      : same           ? ": there is nothing to measure"
                                       : "");
    if (st == OK) st = claim(r, &d);
    diff_free(&d);
    return st;
}

/* ---- resources and clocks ---- */

static enum status resources(struct lab_run *r)
{
    const struct lab_child *a = &r->child[LAB_A], *b = &r->child[LAB_B];
    enum status st = lab_start_child(r, LAB_B);
    if (st == OK) st = lab_child_ready(&r->child[LAB_B]);
    if (lab_interrupted) return ERR_END;
    if (st != OK) return hard_gate(r, "resources", false, err_msg());
    if (r->o->engine) return hard_gate(r, "resources", true, "both engines are loaded");
    return lab_put_gate(r, "resources", "ok",
                        "blocks/SM %d and %d, registers %d and %d, dynamic shared memory %d and "
                        "%d bytes (padding %d and %d)",
                        a->blocks_per_sm, b->blocks_per_sm, a->regs, b->regs, a->smem, b->smem,
                        a->pad, b->pad);
}

static enum status clocks(struct lab_run *r)
{
    struct lab_sample s = {0};
    char text[200];
    enum status st = lab_child_sample(&r->child[LAB_A], &s);
    if (st == ERR_END) return st;
    if (st != OK) return hard_gate(r, "clocks", false, err_msg());
    if (!s.mhz)
        return lab_put_gate(r, "clocks", "skipped",
                            "no SM clock can be read here: drift is held by A's own time");
    snprintf(text, sizeof text, "SM clock %u MHz, %.0f W, %s", s.mhz, s.mw / 1000.0,
             s.throttle[0] ? s.throttle : "not throttled");
    bool sane = !strstr(s.throttle, "hardware") && !strstr(s.throttle, "thermal");
    return hard_gate(r, "clocks", sane, text);
}

static bool stands(const struct lab_run *r)
{
    return !lab_failed_gate(lab_run_experiment(r));
}

enum status lab_gates(struct lab_run *r)
{
    enum status st = parity(r, &r->o->a, "parity A");
    if (st == OK && stands(r)) st = parity(r, &r->o->b, "parity B");
    if (st == OK && stands(r)) st = machine_code(r);
    if (st == OK && stands(r)) st = resources(r);
    if (st == OK && stands(r)) st = clocks(r);
    return st;
}
