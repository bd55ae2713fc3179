/*
 * Job: text, colour and jump arrows of instructions; see listing.h.
 *
 * Invariants: a lane of the margin holds one jump at a time on each row; jumps that find no free
 * lane aren't drawn, the one under the cursor always is. Shorter jumps stand nearer to the code.
 */
#include "tui/listing.h"
#include "sass_view/operands.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8, JUMPS_MAX = 512 };

struct jump {
    uint32_t from, to; /* rows */
    int32_t insn;
};

enum role insn_role(const struct insn *in, bool padding)
{
    if (padding) return ROLE_DIM;
    switch (in->cls) {
    case INSN_CLASS_TENSOR:
        return ROLE_GOOD;
    case INSN_CLASS_SHARED:
    case INSN_CLASS_GLOBAL:
    case INSN_CLASS_ASYNC:
        return ROLE_ACCENT;
    case INSN_CLASS_LOCAL:
    case INSN_CLASS_UNKNOWN:
        return ROLE_BAD;
    case INSN_CLASS_CONTROL:
    case INSN_CLASS_SYNC:
        return ROLE_WARN;
    case INSN_CLASS_MOVE:
    case INSN_CLASS_OTHER:
        return ROLE_DIM;
    default:
        return ROLE_TEXT;
    }
}

char *insn_text(const struct insn *in, char *out, size_t size)
{
    char guard[16], ops[96];
    insn_guard_text(in, guard, sizeof guard);
    insn_operand_text(in, ops, sizeof ops);
    snprintf(out, size, "%s%s%s%s", guard, in->key, ops[0] ? " " : "", ops);
    return out;
}

char *control_text(const struct insn *in, char *out, size_t size)
{
    char w[4] = "  ", r[4] = "  ", wait[8] = "";
    size_t n = 0;
    if (in->ctl.write_bar != INSN_NO_BAR) snprintf(w, sizeof w, "w%u", in->ctl.write_bar & 7u);
    if (in->ctl.read_bar != INSN_NO_BAR) snprintf(r, sizeof r, "r%u", in->ctl.read_bar & 7u);
    for (unsigned i = 0; i < 6; i++)
        if (in->ctl.wait_mask >> i & 1) wait[n++] = (char)('0' + i);
    wait[n] = 0;
    snprintf(out, size, "%2u%c %s %s %s%s", in->ctl.stall, in->ctl.yield ? 'y' : ' ', w, r,
             n ? "?" : "", wait);
    return out;
}

static int by_length(const void *p, const void *q)
{
    const struct jump *a = p, *b = q;
    uint32_t x = a->from < a->to ? a->to - a->from : a->from - a->to;
    uint32_t y = b->from < b->to ? b->to - b->from : b->from - b->to;
    if (x != y) return x < y ? -1 : 1;
    return a->insn < b->insn ? -1 : 1;
}

/* The row of instruction `insn`, by bisection: rows hold rising instructions, with gaps. */
static bool row_of(const struct listing_rows *rows, int32_t insn, uint32_t *row)
{
    uint32_t lo = 0, hi = rows->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2, at = mid;
        while (at < hi && rows->insn[at] < 0) at++;
        if (at == hi)
            hi = mid;
        else if (rows->insn[at] < insn)
            lo = at + 1;
        else if (at > lo && rows->insn[at] > insn)
            hi = mid;
        else {
            *row = at;
            return rows->insn[at] == insn;
        }
    }
    return false;
}

static bool target_of(const struct flow *f, int32_t i, int32_t *to)
{
    const struct insn *in = &f->insns[i];
    if (f->padding[i] || !(in->flags & INSN_BRANCH) || in->target < 0 || in->target % INSN_BYTES ||
        in->target / INSN_BYTES >= f->ninsns)
        return false;
    *to = (int32_t)(in->target / INSN_BYTES);
    return true;
}

static int collect(const struct flow *f, const struct listing_rows *rows, uint32_t top, int h,
                   struct jump *out)
{
    int n = 0;
    for (uint32_t i = 0; i < f->ninsns && n < JUMPS_MAX; i++) {
        int32_t to;
        struct jump j = {.insn = (int32_t)i};
        if (!target_of(f, j.insn, &to) || !row_of(rows, j.insn, &j.from) ||
            !row_of(rows, to, &j.to))
            continue;
        uint32_t lo = j.from < j.to ? j.from : j.to, hi = j.from < j.to ? j.to : j.from;
        if (hi < top || lo >= top + (uint32_t)h) continue;
        out[n++] = j;
    }
    return n;
}

static void put(struct canvas *c, int x, int y, uint32_t rune, unsigned style)
{
    canvas_fill(c, (struct area){x, y, 1, 1}, rune, style);
}

/* One jump in column `x`, with feet to column `right`. */
static void draw_jump(struct canvas *c, int x, int right, int y, int h, uint32_t top,
                      const struct jump *j, unsigned style)
{
    int64_t from = (int64_t)j->from - top, to = (int64_t)j->to - top;
    int64_t lo = from < to ? from : to, hi = from < to ? to : from;
    for (int64_t r = lo < 0 ? 0 : lo; r <= hi && r < h; r++) {
        bool end = r == from || r == to;
        uint32_t rune = !end                  ? (c->ascii ? '|' : 0x2502)
                        : c->ascii            ? '+'
                        : r == lo && lo != hi ? 0x250c
                        : lo == hi            ? 0x2500
                                              : 0x2514;
        put(c, x, y + (int)r, rune, style);
        if (!end) continue;
        for (int k = x + 1; k < right; k++) put(c, k, y + (int)r, c->ascii ? '-' : 0x2500, style);
        put(c, right, y + (int)r, r == to ? (c->ascii ? '>' : 0x25b8) : (c->ascii ? '-' : 0x2500),
            style);
    }
}

/* Takes a free lane for the rows that the jump shows on; -1: none. */
static int take_lane(uint8_t *used, int w, int h, uint32_t top, const struct jump *j)
{
    int64_t lo = (int64_t)(j->from < j->to ? j->from : j->to) - top;
    int64_t hi = (int64_t)(j->from < j->to ? j->to : j->from) - top;
    if (lo < 0) lo = 0;
    if (hi >= h) hi = h - 1;
    for (int lane = 0; lane < w; lane++) {
        bool free_lane = true;
        for (int64_t r = lo; r <= hi && free_lane; r++) free_lane = !(used[r] >> lane & 1);
        if (!free_lane) continue;
        for (int64_t r = lo; r <= hi; r++) used[r] |= (uint8_t)(1u << lane);
        return lane;
    }
    return -1;
}

void draw_arrows(struct canvas *c, int x, int y, int w, int h, const struct flow *f,
                 const struct listing_rows *rows, uint32_t top, int32_t at)
{
    static struct jump jumps[JUMPS_MAX];
    uint8_t used[CANVAS_MAX_H] = {0};
    int n = collect(f, rows, top, h, jumps), mine = -1;
    int lanes = w - 1 < LANES ? w - 1 : LANES;
    if (lanes < 1 || h < 1 || h > CANVAS_MAX_H) return;
    qsort(jumps, (size_t)n, sizeof *jumps, by_length);
    for (int i = 0; i < n; i++)
        if (jumps[i].insn == at) mine = i;
    if (mine >= 0) {
        int lane = take_lane(used, lanes, h, top, &jumps[mine]);
        draw_jump(c, x + w - 2 - lane, x + w - 1, y, h, top, &jumps[mine],
                  ROLE_ACCENT | STYLE_BOLD);
    }
    for (int i = 0; i < n; i++) {
        if (i == mine) continue;
        int lane = take_lane(used, lanes, h, top, &jumps[i]);
        if (lane >= 0) draw_jump(c, x + w - 2 - lane, x + w - 1, y, h, top, &jumps[i], ROLE_DIM);
    }
    if (mine >= 0)
        draw_jump(c, x + w - 2, x + w - 1, y, h, top, &jumps[mine], ROLE_ACCENT | STYLE_BOLD);
}
