/* See auto_bench.h. Only kcheck's JSON is believed; a kernel that it says nothing about has no row
 * and is tried again at the next start. */
#include "engine/auto_bench.h"

#include "base/json.h"
#include "base/program.h"
#include "engine/kcheck_child.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double work(const uint32_t s[3])
{
    return (double)s[0] * s[1] * s[2];
}

void auto_plan_shape(struct auto_plan *p, uint32_t m, uint32_t n, uint32_t k)
{
    const uint32_t s[3] = {m, n, k};
    uint32_t at = p->n_shapes;
    for (uint32_t i = 0; i < p->n_shapes; i++)
        if (!memcmp(p->shapes[i], s, sizeof s)) return;
    if (at == AUTO_SHAPES) return;
    for (; at > 0 && work(p->shapes[at - 1]) < work(s); at--)
        memcpy(p->shapes[at], p->shapes[at - 1], sizeof s);
    memcpy(p->shapes[at], s, sizeof s);
    p->n_shapes++;
}

/* ---- one kernel ---- */

struct progress {
    bool (*go_on)(void *ctx, uint32_t done, uint32_t total);
    void *ctx;
    uint32_t done, total;
};

static bool tick(void *ctx)
{
    struct progress *p = ctx;
    return p->go_on(p->ctx, p->done, p->total);
}

/* A row of kcheck's results, when it is of a shape that was asked for and says something. */
static enum status keep_result(struct auto_file *f, const struct auto_plan *p,
                               const struct auto_candidate *c, const cJSON *r)
{
    const cJSON *d = cJSON_GetObjectItemCaseSensitive(r, "disposition");
    struct auto_row row = {.code_hash = c->code_hash, .us = (double)NAN};
    if (!cJSON_IsString(d) || !strcmp(d->valuestring, "skipped")) return OK;
    snprintf(row.family, sizeof row.family, "%s", p->family);
    snprintf(row.kernel, sizeof row.kernel, "%s", c->kernel);
    snprintf(row.state, sizeof row.state, "%.11s", d->valuestring);
    row.us = json_number(cJSON_GetObjectItemCaseSensitive(r, "bench"), "us");
    /* Sound, but not timed; or a time that the file wouldn't take back. */
    if (!strcmp(row.state, "ok") && !(row.us > 0 && row.us < AUTO_US_MAX)) return OK;
    for (uint32_t i = 0; i < p->n_shapes; i++) {
        const uint32_t *s = p->shapes[i];
        if (json_number(r, "m") != s[0] || json_number(r, "n") != s[1] ||
            json_number(r, "k") != s[2])
            continue;
        memcpy(row.mnk, s, sizeof row.mnk);
        return auto_file_put(f, &row);
    }
    return OK;
}

static enum status keep_answer(struct auto_file *f, const struct auto_plan *p,
                               const struct auto_candidate *c, const struct buf *answer)
{
    cJSON *root = cJSON_ParseWithLength((const char *)answer->data, answer->len);
    const cJSON *results = cJSON_GetObjectItemCaseSensitive(root, "results"), *r;
    enum status st = OK;
    cJSON_ArrayForEach(r, results) if (st == OK) st = keep_result(f, p, c, r);
    cJSON_Delete(root);
    return st;
}

/* Shapes [from, to) that have no row yet, as kcheck's argument; false when there are none. */
static bool missing(const struct auto_file *f, const struct auto_plan *p,
                    const struct auto_candidate *c, uint32_t from, uint32_t to, char *out,
                    size_t size)
{
    size_t at = 0;
    for (uint32_t i = from; i < to && at < size; i++) {
        const uint32_t *s = p->shapes[i];
        if (auto_file_find(f, p->family, c->kernel, c->code_hash, s)) continue;
        at += (size_t)snprintf(out + at, size - at, "%s%u,%u,%u", at ? ";" : "", s[0], s[1], s[2]);
    }
    return at > 0;
}

static enum status measure_one(struct auto_file *f, const struct auto_plan *p,
                               const struct auto_candidate *c, uint32_t from, uint32_t to,
                               struct progress *pr)
{
    char path[4096], kernel[40], shapes[AUTO_SHAPES * 36];
    char *argv[] = {path,      "--variant", kernel,   "--shapes", shapes,
                    "--bench", "--quick",   "--json", NULL};
    struct buf answer = {0};
    enum kcheck_end end;
    int wstatus = 0;
    if (!missing(f, p, c, from, to, shapes, sizeof shapes)) return OK;
    if (!program_find("SASSTOP_KCHECK", "kcheck", path, sizeof path))
        return err_set(ERR_UNAVAILABLE, "kcheck is not beside this program: run make");
    snprintf(kernel, sizeof kernel, "%s", c->kernel);
    enum status st = kcheck_run(argv, AUTO_CHILD_S, tick, pr, &answer, &end, &wstatus);
    if (st == OK && end == KCHECK_GIVEN_UP)
        st = err_set(ERR_AGAIN, "given up; what was measured is kept");
    if (st == OK && end == KCHECK_DONE) st = keep_answer(f, p, c, &answer);
    buf_free(&answer);
    if (st == OK && auto_file_save(f) != OK) snprintf(f->note, sizeof f->note, "%.390s", err_msg());
    return st;
}

/* ---- all of them ---- */

static const struct auto_row *sound(const struct auto_file *f, const struct auto_plan *p,
                                    const struct auto_candidate *c, uint32_t s)
{
    const struct auto_row *r = auto_file_find(f, p->family, c->kernel, c->code_hash, p->shapes[s]);
    return r && !strcmp(r->state, "ok") ? r : NULL;
}

const struct auto_candidate *auto_best(const struct auto_file *f, const struct auto_plan *p,
                                       uint32_t s, const struct auto_row **row)
{
    const struct auto_candidate *best = NULL;
    *row = NULL;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct auto_row *r = sound(f, p, &p->of[i], s);
        if (!r || (*row && r->us >= (*row)->us)) continue;
        *row = r;
        best = &p->of[i];
    }
    return best;
}

enum status auto_measure(struct auto_file *f, const struct auto_plan *p,
                         bool (*go_on)(void *ctx, uint32_t done, uint32_t total), void *ctx)
{
    struct progress pr = {go_on, ctx, 0, 2 * p->n};
    const struct auto_row *best, *r;
    enum status st = OK;
    if (!p->n_shapes) return OK;
    for (uint32_t i = 0; st == OK && i < p->n; i++, pr.done++)
        st = measure_one(f, p, &p->of[i], 0, 1, &pr);
    if (st != OK) return st;
    /* A row is found anew each time: rows move as others are added. */
    if (!auto_best(f, p, 0, &best)) best = NULL;
    double worth = best ? AUTO_WORTH * best->us : 0;
    for (uint32_t i = 0; st == OK && i < p->n; i++, pr.done++)
        if ((r = sound(f, p, &p->of[i], 0)) && r->us <= worth)
            st = measure_one(f, p, &p->of[i], 1, p->n_shapes, &pr);
    return st;
}
