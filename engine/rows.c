/*
 * The row table. Invariant: rows[i] has number base + i + 1; `slots` is an open hash of indices + 1
 * into rows, at most half full.
 */
#include "engine/rows.h"

#include "session/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 * ROWS_MAX };

struct row_state {
    struct launch_info info;
    const char *phase;
    uint64_t calls, sum, min, max;
    uint32_t hist[256];
};

struct rows {
    struct emit *emit;
    uint32_t generation, base, n;
    struct row_state *rows;
    uint16_t slots[SLOTS];
    struct buf hist;
};

enum status rows_open(struct emit *emit, struct rows **out)
{
    struct rows *r = calloc(1, sizeof *r);
    if (r) r->rows = calloc(ROWS_MAX, sizeof *r->rows);
    if (!r || !r->rows) {
        free(r);
        return err_set(ERR_NOMEM, "out of memory for the table of rows");
    }
    r->emit = emit;
    *out = r;
    return OK;
}

void rows_close(struct rows *r)
{
    if (!r) return;
    buf_free(&r->hist);
    free(r->rows);
    free(r);
}

void rows_generation(struct rows *r, uint32_t generation)
{
    r->base += r->n;
    r->n = 0;
    r->generation = generation;
    memset(r->slots, 0, sizeof r->slots);
}

static bool same(const struct row_state *s, const struct launch_info *i, const char *phase)
{
    return s->info.kernel == i->kernel && s->info.m == i->m && s->info.n == i->n &&
           s->info.k == i->k && !strcmp(s->info.role, i->role) && !strcmp(s->phase, phase);
}

static uint32_t hash(const struct launch_info *i, const char *phase)
{
    uint32_t h = 2166136261u;
    const uint32_t v[] = {i->kernel, i->m, i->n, i->k, (uint8_t)phase[0]};
    for (unsigned j = 0; j < sizeof v / sizeof v[0]; j++) h = (h ^ v[j]) * 16777619u;
    for (const char *p = i->role; *p; p++) h = (h ^ (uint8_t)*p) * 16777619u;
    return h ^ h >> 15;
}

static void define(struct rows *r, const struct row_state *s, uint32_t row)
{
    const struct launch_info *i = &s->info;
    struct msg_row_def d = {.row = row,
                            .kernel = i->kernel,
                            .generation = r->generation,
                            .m = i->m,
                            .n = i->n,
                            .k = i->k,
                            .macs = i->macs,
                            .bytes = i->bytes,
                            .smem_dynamic = i->smem_dynamic,
                            .grid_x = i->grid[0],
                            .grid_y = i->grid[1],
                            .grid_z = i->grid[2],
                            .blocks_per_sm = i->blocks_per_sm,
                            .warps_per_sm = i->warps_per_sm,
                            .max_warps = i->max_warps};
    snprintf(d.limiter, sizeof d.limiter, "%s", i->limiter ? i->limiter : "");
    snprintf(d.role, sizeof d.role, "%s", i->role);
    snprintf(d.phase, sizeof d.phase, "%s", s->phase);
    snprintf(d.asked, sizeof d.asked, "%s", i->asked ? i->asked : "");
    snprintf(d.why, sizeof d.why, "%s", i->why ? i->why : "");
    emit_send(r->emit, FRAME_ROW_DEF, &d);
}

uint32_t rows_find(struct rows *r, const struct launch_info *info, const char *phase)
{
    uint32_t at = hash(info, phase) % SLOTS;
    for (; r->slots[at]; at = (at + 1) % SLOTS)
        if (same(&r->rows[r->slots[at] - 1], info, phase)) return r->base + r->slots[at];
    if (r->n == ROWS_MAX) return 0;
    struct row_state *s = &r->rows[r->n++];
    memset(s, 0, sizeof *s);
    s->info = *info;
    s->phase = phase;
    r->slots[at] = (uint16_t)r->n;
    define(r, s, r->base + r->n);
    return r->base + r->n;
}

static struct row_state *state_of(const struct rows *r, uint32_t row)
{
    return row > r->base && row <= r->base + r->n ? &r->rows[row - r->base - 1] : NULL;
}

void rows_add(struct rows *r, uint32_t row, uint64_t dur_ns)
{
    struct row_state *s = state_of(r, row);
    if (!s) return;
    if (!s->calls || dur_ns < s->min) s->min = dur_ns;
    if (dur_ns > s->max) s->max = dur_ns;
    s->calls++;
    s->sum += dur_ns;
    s->hist[hist_bin(dur_ns)]++;
}

static void forget(struct row_state *s)
{
    s->calls = s->sum = s->min = s->max = 0;
    memset(s->hist, 0, sizeof s->hist);
}

void rows_flush(struct rows *r, uint32_t round, const char *source)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct row_state *s = &r->rows[i];
        if (!s->calls) continue;
        struct msg_span_agg a = {.round = round,
                                 .row = r->base + i + 1,
                                 .calls = s->calls > UINT32_MAX ? UINT32_MAX : (uint32_t)s->calls,
                                 .sum_ns = s->sum,
                                 .min_ns = s->min,
                                 .max_ns = s->max};
        snprintf(a.source, sizeof a.source, "%s", source);
        buf_reset(&r->hist);
        pack_hist(&r->hist, s->hist);
        a.hist = (struct blob){r->hist.data, (uint32_t)r->hist.len};
        if (!r->hist.failed) emit_send(r->emit, FRAME_SPAN_AGG, &a);
        forget(s);
    }
}

void rows_discard(struct rows *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->rows[i].calls) forget(&r->rows[i]);
}
