/*
 * Fragments: who holds what of a tensor-core instruction's operands. A picture of the operand, each
 * place with the lane and register that hold it; the lane under the cursor stands out. m goes from
 * operand to operand. Above it, what the sweep of unpacked B fragments against ldmatrix says.
 */
#include "kernels/fragment.h"
#include "tui/view.h"

#include <stdio.h>

enum { COLUMNS = 8, CELL = 6, LEFT = 9 };

struct fragments_view {
    int lane;
    enum fragment_operand op;
    int differ; /* by the sweep; -1 = not swept yet */
};

static void fragments_init(void *data)
{
    struct fragments_view *v = data;
    v->op = FRAGMENT_B;
    v->differ = -1;
}

static void fragments_update(struct app *a, void *data)
{
    struct fragments_view *v = data;
    (void)a;
    if (v->differ < 0) v->differ = fragment_sweep();
}

/* Columns of the picture are four values of k each, of C one output row. */
static int column_of(enum fragment_operand op, struct fragment_place p)
{
    return op == FRAGMENT_C ? p.col : p.col / 4;
}

static void draw_heading(struct canvas *c, const struct fragments_view *v, struct area area)
{
    static const char *const names[] = {"A: 16 tokens x 32 values of k",
                                        "B: 16 output rows x 32 values of k",
                                        "C: 16 tokens x 8 output rows"};
    canvas_text(c, 1, area.y, area.w - 2, ROLE_ACCENT | STYLE_BOLD, names[v->op]);
    if (v->op == FRAGMENT_B)
        canvas_printf(c, 2 + text_columns(names[v->op]), area.y,
                      area.w - 4 - text_columns(names[v->op]), v->differ ? ROLE_BAD : ROLE_GOOD,
                      "unpacked: %d of %d differ from ldmatrix", v->differ,
                      FRAGMENT_SUBS * FRAGMENT_LANES * FRAGMENT_REGS);
    canvas_text(c, 1, area.y + 1, LEFT - 1, ROLE_DIM, "lane.reg");
    for (int i = 0; i < COLUMNS; i++)
        canvas_printf(c, LEFT + 1 + i * CELL, area.y + 1, CELL, ROLE_DIM,
                      v->op == FRAGMENT_C ? "row %d" : "k %d", v->op == FRAGMENT_C ? i : i * 4);
}

/* What the lane under the cursor holds, in words. */
static void draw_lane(struct canvas *c, const struct fragments_view *v, struct area area, int y)
{
    char text[200];
    size_t n = (size_t)snprintf(text, sizeof text, "lane %d:", v->lane);
    for (int reg = 0; reg < FRAGMENT_REGS && n < sizeof text; reg++) {
        struct fragment_place p = fragment_place_of(v->op, v->lane, reg);
        if (v->op == FRAGMENT_C)
            n += (size_t)snprintf(text + n, sizeof text - n, "  r%d (%d, %d)", reg, p.row, p.col);
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "  r%d (%d, k %d..%d)", reg, p.row,
                                  p.col, p.col + 3);
    }
    canvas_text(c, 1, y, area.w - 2, ROLE_TEXT, text);
}

/* On the line `y`; 0: there is none, so beside the heading where that leaves room. */
static void draw_hint(struct canvas *c, struct area area, int y)
{
    static const char brief[] = "m: A, B, C";
    if (y)
        canvas_text(c, 1, y, area.w - 2, ROLE_DIM,
                    "operands of mma.m16n8k32 (s8)  m: A, B or C  arrows: another lane");
    else if (area.w >= LEFT + 1 + COLUMNS * CELL + (int)sizeof brief)
        canvas_right(c, area.x, area.y + 1, area.w - 1, ROLE_DIM, brief);
}

static void fragments_draw(struct app *a, void *data, struct area area)
{
    struct fragments_view *v = data;
    struct canvas *c = &a->canvas;
    int top = area.y + 2, end = area.y + area.h;
    draw_heading(c, v, area);
    for (int row = 0; row < FRAGMENT_ROWS && top + row < end - 1; row++)
        canvas_printf(c, 1, top + row, LEFT - 1, ROLE_DIM, "%s %d",
                      v->op == FRAGMENT_B ? "row" : "token", row);
    for (int lane = 0; lane < FRAGMENT_LANES; lane++)
        for (int reg = 0; reg < FRAGMENT_REGS; reg++) {
            struct fragment_place p = fragment_place_of(v->op, lane, reg);
            int x = LEFT + 1 + column_of(v->op, p) * CELL, y = top + p.row;
            if (y >= end - 1 || x + CELL > area.x + area.w) continue;
            canvas_printf(c, x, y, CELL,
                          lane == v->lane ? ROLE_ACCENT | STYLE_BOLD | STYLE_REVERSE : ROLE_TEXT,
                          "%2d.%d", lane, reg);
        }
    int y = top + FRAGMENT_ROWS;
    draw_lane(c, v, area, y < end ? y : end - 1);
    draw_hint(c, area, y + 1 < end ? y + 1 : 0);
}

static bool fragments_request(struct app *a, void *data, enum request r)
{
    struct fragments_view *v = data;
    int step = r == REQ_LEFT ? -1 : r == REQ_RIGHT ? 1 : r == REQ_UP ? -4 : r == REQ_DOWN ? 4 : 0;
    if (r == REQ_FRAGMENTS) {
        app_show_view(a, a->back);
    } else if (r == REQ_MODE) {
        v->op = v->op == FRAGMENT_C ? FRAGMENT_A : (enum fragment_operand)(v->op + 1);
    } else if (r == REQ_HOME || r == REQ_END) {
        v->lane = r == REQ_HOME ? 0 : FRAGMENT_LANES - 1;
    } else if (step) {
        v->lane = (v->lane + step + FRAGMENT_LANES) % FRAGMENT_LANES;
    } else {
        return false;
    }
    return true;
}

const struct view_ops fragments_ops = {
    .name = "fragments",
    .title = "lanes and registers of a tensor-core instruction's operands",
    .size = sizeof(struct fragments_view),
    .init = fragments_init,
    .update = fragments_update,
    .draw = fragments_draw,
    .request = fragments_request,
};
