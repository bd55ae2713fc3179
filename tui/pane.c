/* Tables on the canvas; see pane.h. Columns leave by priority when the width is short, but the one
 * under the cursor always stays. The cursor row carries a mark, so that it reads without colours.
 */
#include "tui/pane.h"

#include <stdio.h>
#include <string.h>

struct layout {
    bool shown[PANE_COLUMNS_MAX];
    int least[PANE_COLUMNS_MAX]; /* width that a column asks for */
    int want[PANE_COLUMNS_MAX];  /* width in which no text of a column is cut */
    int width[PANE_COLUMNS_MAX];
    uint32_t n;
    int gap; /* between columns */
};

/* Most columns that a flexible column in the middle, and a text in the last one, grow by. */
enum { FLEX_MAX = 14, LAST_MAX = 12 };
/* Rows that are asked how long their texts are, and the most that a text column grows to. */
enum { MEASURED_ROWS = 256, WANT_MAX = 32 };

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

static int total_width(const struct layout *l)
{
    int w = 2; /* the cursor's mark */
    for (uint32_t i = 0; i < l->n; i++)
        if (l->shown[i]) w += l->least[i] + 1;
    return w - 1;
}

/* What the longest text of a column takes, its title and mark of order included. */
static int text_need(const struct pane *p, uint32_t column)
{
    int need = text_columns(p->def->columns[column].title) + 1;
    for (uint32_t i = 0; i < rows(p) && i < MEASURED_ROWS; i++) {
        struct cell c = {.is_text = false};
        table_cell(&p->table, i, column, &c);
        int n = c.is_text ? text_columns(c.text) : 0;
        if (n > need) need = n;
    }
    return need;
}

/* Texts that are short leave their room to others; long ones may take what is left over. */
static void measure(const struct pane *p, struct layout *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct column *col = &p->def->columns[i];
        l->shown[i] = true;
        l->least[i] = l->want[i] = col->width;
        if (col->numeric) continue;
        int need = text_need(p, i);
        if (!col->flex && need < col->width) l->least[i] = need;
        l->want[i] = need < WANT_MAX ? need : WANT_MAX;
    }
}

/* First what texts lack, columns that matter most before others. */
static int fill_texts(const struct pane *p, struct layout *l, int slack)
{
    for (int priority = 1; slack > 0 && priority < 10; priority++)
        for (uint32_t i = 0; i < l->n && slack > 0; i++) {
            if (!l->shown[i] || p->def->columns[i].priority != priority) continue;
            int more = l->want[i] - l->width[i];
            if (more > slack) more = slack;
            if (more <= 0) continue;
            l->width[i] += more;
            slack -= more;
        }
    return slack;
}

/* Gives the width that is left to texts that would be cut; to the flexible column, but no more than
 * its texts need when figures would stand far from their name; to a text in the last column; to the
 * gaps. */
static void spread_slack(const struct pane *p, int w, uint32_t flex, struct layout *l)
{
    const struct column *col = p->def->columns;
    int slack = w - total_width(l), shown = 0;
    uint32_t last = 0;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->shown[i]) {
            last = i;
            shown++;
        }
    l->gap = 1;
    slack = fill_texts(p, l, slack);
    if (flex != TABLE_NONE) {
        int need = text_need(p, flex), most = col[flex].width + FLEX_MAX;
        int room = (need > most ? need : most) - l->width[flex];
        int more = flex == last || slack < room ? slack : room > 0 ? room : 0;
        l->width[flex] += more;
        if (l->width[flex] < 4) l->width[flex] = 4;
        slack -= more;
    }
    if (slack > 0 && flex != last && !col[last].numeric) {
        int more = slack < LAST_MAX ? slack : LAST_MAX;
        l->width[last] += more;
        slack -= more;
    }
    if (slack > 0 && shown > 1) l->gap += slack / (shown - 1) < 2 ? slack / (shown - 1) : 2;
}

/* A column that left may come back when no text is cut for it: a wider one left after it. Those
 * that repeat what a name says stay away. */
static void bring_back(const struct pane *p, int w, struct layout *l)
{
    int all = total_width(l);
    for (uint32_t i = 0; i < l->n; i++)
        if (l->shown[i]) all += l->want[i] > l->least[i] ? l->want[i] - l->least[i] : 0;
    for (int priority = 2; priority < 7; priority++)
        for (uint32_t i = 0; i < l->n; i++) {
            int more = (l->want[i] > l->least[i] ? l->want[i] : l->least[i]) + 1;
            if (l->shown[i] || p->def->columns[i].priority != priority || all + more > w) continue;
            l->shown[i] = true;
            all += more;
        }
}

/* Which columns are shown in `w`, and how wide. */
static void lay_out(const struct pane *p, int w, struct layout *l)
{
    const struct column *col = p->def->columns;
    uint32_t flex = TABLE_NONE;

    l->n = p->def->ncolumns < PANE_COLUMNS_MAX ? p->def->ncolumns : PANE_COLUMNS_MAX;
    measure(p, l);
    while (total_width(l) > w) {
        uint32_t worst = TABLE_NONE;
        for (uint32_t i = 0; i < l->n; i++)
            if (l->shown[i] && i != p->column && col[i].priority > 1 &&
                (worst == TABLE_NONE || col[i].priority >= col[worst].priority))
                worst = i;
        if (worst == TABLE_NONE) break;
        l->shown[worst] = false;
    }
    bring_back(p, w, l);
    for (uint32_t i = 0; i < l->n; i++) {
        l->width[i] = l->least[i];
        if (l->shown[i] && col[i].flex) flex = i;
    }
    spread_slack(p, w, flex, l);
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

static void draw_head(const struct pane *p, struct canvas *c, struct area a, const struct layout *l)
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

static void draw_row(const struct pane *p, struct canvas *c, struct area a, const struct layout *l,
                     uint32_t row, int y, bool cursor)
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

/* The rule above: title and filter, what measured the figures, the place in the list. */
static void draw_title(const struct pane *p, struct canvas *c, struct area a)
{
    char title[200], place[40], by[120];
    int end = a.x + a.w - 2;

    snprintf(title, sizeof title, "%s%s%s", p->def->title, p->filter[0] ? " / " : "", p->filter);
    canvas_rule(c, a.x, a.y, a.w, title);
    if (rows(p) > (uint32_t)p->page && a.w > 40) {
        int n = snprintf(place, sizeof place, " %u/%u ", p->position + 1, rows(p));
        end -= n;
        canvas_text(c, end, a.y, n, ROLE_DIM, place);
    }
    if (rows(p) == 0 || a.w < 60) return;
    sources_text(p, by, sizeof by);
    int n = text_columns(by) + 2;
    if (by[0] && end - n - 1 > a.x + text_columns(title) + 5)
        canvas_printf(c, end - n - 1, a.y, n, ROLE_DIM, " %s ", by);
}

void pane_draw(struct pane *p, struct canvas *c, struct area a, bool focused)
{
    struct layout l;

    if (!p->def || a.h < 1 || a.w < 4) return;
    p->page = a.h - 1 - !p->untitled;
    if (p->page < 1) p->page = 1;
    if (!p->untitled) {
        draw_title(p, c, a);
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
    lay_out(p, a.w, &l);
    draw_head(p, c, a, &l);
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
        if (p->column) p->column--;
        return true;
    case REQ_RIGHT:
        if (p->column + 1 < p->def->ncolumns) p->column++;
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
