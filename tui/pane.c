/* Tables on the canvas; see pane.h. What the width leaves out is told in the rule above, and is
 * shown when the cursor goes there. The cursor row carries a mark, so that it reads without
 * colours.
 */
#include "tui/pane.h"

#include "tui/pane_layout.h"

#include <stdio.h>
#include <string.h>

void pane_init(struct pane *p, const char *table)
{
    *p = (struct pane){.def = table_find(table), .selected = TABLE_NONE, .page = 1};
    p->query.kernel = p->query.row = p->query.other = TABLE_NONE;
    if (p->def) p->query.sort = p->def->sort;
}

void pane_column(struct pane *p, const char *id)
{
    for (uint32_t i = 0; p->def && i < p->def->ncolumns; i++)
        if (!strcmp(p->def->columns[i].id, id)) p->column = i;
}

void pane_free(struct pane *p)
{
    table_free(&p->table);
}

static uint32_t rows(const struct pane *p)
{
    return p->def ? p->table.nrows : 0;
}

static void set_position(struct pane *p, uint32_t position)
{
    if (rows(p) == 0) {
        p->position = p->top = 0;
        p->selected = TABLE_NONE;
        return;
    }
    p->position = position < rows(p) ? position : rows(p) - 1;
    p->selected = p->table.index[p->position];
}

void pane_select(struct pane *p, uint32_t item)
{
    for (uint32_t i = 0; i < rows(p); i++)
        if (p->table.index[i] == item) {
            set_position(p, i);
            return;
        }
}

void pane_update(struct pane *p, const struct session *s)
{
    if (!p->def) return;
    p->query.filter = p->filter[0] ? p->filter : NULL;
    if (table_build(&p->table, s, p->def, &p->query) != OK) p->table.nrows = 0;
    if (p->follow) {
        set_position(p, rows(p) ? rows(p) - 1 : 0);
        return;
    }
    for (uint32_t i = 0; i < rows(p); i++)
        if (p->table.index[i] == p->selected) {
            p->position = i;
            return;
        }
    set_position(p, p->position);
}

static unsigned cell_style(const struct cell *c)
{
    static const uint8_t marks[] = {[MARK_NONE] = ROLE_TEXT,
                                    [MARK_GOOD] = ROLE_GOOD,
                                    [MARK_WARN] = ROLE_WARN,
                                    [MARK_BAD] = ROLE_BAD,
                                    [MARK_DIM] = ROLE_DIM};
    if (!c->is_text) switch (c->value.state) {
        case VALUE_FAULT:
            return ROLE_BAD;
        case VALUE_OVERFLOW:
            return ROLE_WARN;
        case VALUE_OK:
            break;
        default:
            return ROLE_DIM;
        }
    return (unsigned)c->mark < sizeof marks ? marks[c->mark] : ROLE_TEXT;
}

static void draw_head(const struct pane *p, struct canvas *c, struct area a,
                      const struct pane_layout *l)
{
    int x = a.x + 2;
    for (uint32_t i = 0; i < l->n; i++) {
        if (!l->shown[i]) continue;
        const struct column *col = &p->def->columns[i];
        bool sorted = p->query.sort && !strcmp(p->query.sort, col->id);
        unsigned style = ROLE_HEAD | (sorted ? STYLE_BOLD | STYLE_UNDER : 0);
        char title[64];
        bool room = sorted && !c->ascii && text_columns(col->title) < l->width[i];
        bool up = col->numeric ? p->query.ascending : !p->query.ascending;
        snprintf(title, sizeof title, "%s%s", col->title, !room ? "" : up ? "↑" : "↓");
        int w = x + l->width[i] > a.x + a.w ? a.x + a.w - x : l->width[i];
        if (col->numeric)
            canvas_right(c, x, a.y, w, style, title);
        else
            canvas_text(c, x, a.y, w, style, title);
        x += l->width[i] + l->gap;
    }
}

static void draw_row(const struct pane *p, struct canvas *c, struct area a,
                     const struct pane_layout *l, uint32_t row, int y, bool cursor)
{
    int x = a.x + 2, cursor_x = -1, cursor_w = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (!l->shown[i]) continue;
        const struct column *col = &p->def->columns[i];
        struct cell cell = {.is_text = false};
        char text[CELL_TEXT_MAX * 2];
        table_cell(&p->table, row, i, &cell);
        /* The canvas cuts a text with an ellipsis; a figure must fit by itself. */
        if (cell.is_text)
            snprintf(text, sizeof text, "%s", cell.text);
        else
            cell_format(col, &cell, l->width[i], text, sizeof text);
        int w = x + l->width[i] > a.x + a.w ? a.x + a.w - x : l->width[i];
        if (col->numeric)
            canvas_right(c, x, y, w, cell_style(&cell), text);
        else
            canvas_text(c, x, y, w, cell_style(&cell), text);
        if (cursor && i == p->column) {
            cursor_x = x;
            cursor_w = w;
        }
        x += l->width[i] + l->gap;
    }
    if (!cursor) return;
    canvas_text(c, a.x, y, 1, ROLE_ACCENT | STYLE_BOLD, "▸");
    canvas_restyle(c, a.x, y, a.w, -1, STYLE_REVERSE);
    canvas_restyle(c, cursor_x, y, cursor_w, ROLE_ACCENT, STYLE_BOLD | STYLE_UNDER);
}

/* The sources behind the figures of the cursor's row: "by activity, pm". */
static void sources_text(const struct pane *p, char *text, size_t size)
{
    const char *seen[8];
    unsigned n = 0;
    size_t used = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < p->def->ncolumns && n < 8; i++) {
        struct cell c = {.is_text = false};
        bool known = false;
        table_cell(&p->table, p->position, i, &c);
        if (c.is_text || c.value.state != VALUE_OK || !c.value.source) continue;
        for (unsigned k = 0; k < n; k++) known |= !strcmp(seen[k], c.value.source);
        if (known || used + strlen(c.value.source) + 8 > size) continue;
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", n ? ", " : "by ", c.value.source);
        seen[n++] = c.value.source;
    }
}

/* Columns that the width leaves out, and how to reach them. */
static void columns_text(const struct pane_layout *l, bool brief, char *text, size_t size)
{
    text[0] = 0;
    if (l->page)
        snprintf(text, size, brief ? " %u/%u, Left " : " columns %u/%u, Left goes back ",
                 l->page + 1, l->pages);
    else if (l->left_out)
        snprintf(text, size, brief ? " Right: +%u " : " Right: %u more column%s ", l->left_out,
                 l->left_out == 1 ? "" : "s");
}

/* Writes into the rule, to the left of `end`, when there is room beside the title; the new end. */
static int draw_in_rule(struct canvas *c, struct area a, int title, int end, const char *text)
{
    int n = text_columns(text);
    if (!n || end - n <= a.x + title + 5) return end;
    canvas_text(c, end - n, a.y, n, ROLE_DIM, text);
    return end - n - 1;
}

/* The rule above: title and filter, what measured the figures, columns left out, the place in the
 * list. */
static void draw_title(const struct pane *p, struct canvas *c, struct area a,
                       const struct pane_layout *l)
{
    char title[200], text[120], by[120];
    int edge = a.x + a.w - 2, end = edge;

    snprintf(title, sizeof title, "%s%s%s", p->def->title, p->filter[0] ? " / " : "", p->filter);
    canvas_rule(c, a.x, a.y, a.w, title);
    if (rows(p) == 0) return;
    int used = text_columns(title);
    if (rows(p) > (uint32_t)p->page && a.w > 40) {
        snprintf(text, sizeof text, " %u/%u ", p->position + 1, rows(p));
        end = draw_in_rule(c, a, used, end, text);
    }
    columns_text(l, a.w < 60, text, sizeof text);
    int after = draw_in_rule(c, a, used, end, text);
    if (after == end) {
        columns_text(l, true, text, sizeof text);
        after = draw_in_rule(c, a, used, end, text);
    }
    if (a.w < 60) return;
    sources_text(p, by, sizeof by);
    if (by[0]) snprintf(text, sizeof text, " %.116s ", by);
    if (by[0]) draw_in_rule(c, a, used, after < edge ? after : edge - 1, text);
}

void pane_draw(struct pane *p, struct canvas *c, struct area a, bool focused)
{
    struct pane_layout l;

    if (!p->def || a.h < 1 || a.w < 4) return;
    p->page = a.h - 1 - !p->untitled;
    if (p->page < 1) p->page = 1;
    pane_lay_out(p, a.w, &l);
    memcpy(p->order, l.order, sizeof p->order);
    p->ordered = l.n;
    if (!p->untitled) {
        draw_title(p, c, a, &l);
        a.y++;
        a.h--;
    }
    if (rows(p) == 0) {
        const char *words = p->filter[0]    ? "no row holds the filter's text; Esc clears it"
                            : p->def->empty ? p->def->empty
                                            : "nothing yet";
        canvas_wrap(c, (struct area){a.x + 2, a.y, a.w - 2, a.h}, ROLE_DIM, words);
        return;
    }
    draw_head(p, c, a, &l);
    if (p->untitled && l.left_out && !l.page)
        canvas_printf(c, a.x, a.y, 2, ROLE_DIM, "+%u", l.left_out);
    uint32_t page = (uint32_t)p->page;
    if (p->position < p->top) p->top = p->position;
    if (p->position >= p->top + page) p->top = p->position - page + 1;
    if (p->top + page > rows(p)) p->top = rows(p) > page ? rows(p) - page : 0;
    for (uint32_t i = 0; i < page && (int)i < a.h - 1 && p->top + i < rows(p); i++)
        draw_row(p, c, a, &l, p->top + i, a.y + 1 + (int)i, focused && p->top + i == p->position);
}

void pane_draw_both(struct pane *upper, struct pane *lower, struct canvas *c, struct area a,
                    bool lower_focused)
{
    struct area top = a;
    top.h = (int)upper->table.nrows + 2;
    if (top.h > a.h / 2) top.h = a.h / 2;
    pane_draw(upper, c, top, !lower_focused);
    a.y += top.h;
    a.h -= top.h;
    pane_draw(lower, c, a, lower_focused);
}

static void sort_by(struct pane *p, int step)
{
    uint32_t n = p->def->ncolumns, at = step > 0 ? n - 1 : 0;
    for (uint32_t i = 0; i < n && p->query.sort; i++)
        if (!strcmp(p->def->columns[i].id, p->query.sort)) at = i;
    at = step > 0 ? (at + 1) % n : (at + n - 1) % n;
    p->query.sort = p->def->columns[at].id;
    p->query.ascending = false;
    p->column = at;
}

bool pane_leaves(const struct pane *p, enum request r)
{
    if (r == REQ_DOWN || r == REQ_PAGE_DOWN) return p->position + 1 >= rows(p);
    return (r == REQ_UP || r == REQ_PAGE_UP) && p->position == 0;
}

void pane_enter(struct pane *p, enum request r)
{
    bool down = r == REQ_DOWN || r == REQ_PAGE_DOWN;
    set_position(p, down ? 0 : rows(p));
}

/* The next column as the last draw showed them; before the first draw, as the table has them. */
static void step_column(struct pane *p, int step)
{
    uint32_t n = p->ordered ? p->ordered : p->def->ncolumns, at = p->column;

    for (uint32_t i = 0; i < p->ordered; i++)
        if (p->order[i] == p->column) at = i;
    if (step < 0 ? at == 0 : at + 1 >= n) return;
    at = step < 0 ? at - 1 : at + 1;
    p->column = p->ordered ? p->order[at] : at;
}

bool pane_request(struct pane *p, enum request r)
{
    uint32_t page = (uint32_t)p->page, at = p->position;

    if (!p->def) return false;
    switch (r) {
    case REQ_UP:
        set_position(p, at ? at - 1 : 0);
        break;
    case REQ_DOWN:
        set_position(p, at + 1);
        break;
    case REQ_PAGE_UP:
        set_position(p, at > page ? at - page : 0);
        break;
    case REQ_PAGE_DOWN:
        set_position(p, at + page);
        break;
    case REQ_HOME:
        set_position(p, 0);
        break;
    case REQ_END:
        set_position(p, rows(p));
        break;
    case REQ_LEFT:
    case REQ_RIGHT:
        step_column(p, r == REQ_RIGHT ? 1 : -1);
        return true;
    case REQ_SORT_NEXT:
        sort_by(p, 1);
        return true;
    case REQ_SORT_PREV:
        sort_by(p, -1);
        return true;
    case REQ_ORDER:
        p->query.ascending = !p->query.ascending;
        return true;
    default:
        return false;
    }
    p->follow = r == REQ_END && p->follow;
    return true;
}
