/* Which columns a pane shows, and how wide; see pane_layout.h. Columns leave by priority when the
 * width is short. Those that left stand on further pages, each beside the first column, and a page
 * is shown when the cursor is on one of its columns.
 */
#include "tui/pane_layout.h"

#include <string.h>

/* Most columns that a flexible column in the middle, and a text in the last one, grow by. */
enum { FLEX_MAX = 14, LAST_MAX = 12 };
/* Rows that are asked how long their texts are, and the most that a text column grows to. */
enum { MEASURED_ROWS = 256, WANT_MAX = 32 };

static uint32_t rows(const struct pane *p)
{
    return p->def ? p->table.nrows : 0;
}

static int total_width(const struct pane_layout *l)
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
static void measure(const struct pane *p, struct pane_layout *l)
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
static int fill_texts(const struct pane *p, struct pane_layout *l, int slack)
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
static void spread_slack(const struct pane *p, int w, uint32_t flex, struct pane_layout *l)
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
static void bring_back(const struct pane *p, int w, struct pane_layout *l)
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

/* The columns that matter most. */
static void first_page(const struct pane *p, int w, struct pane_layout *l)
{
    const struct column *col = p->def->columns;

    while (total_width(l) > w) {
        uint32_t worst = TABLE_NONE;
        for (uint32_t i = 0; i < l->n; i++)
            if (l->shown[i] && col[i].priority > 1 &&
                (worst == TABLE_NONE || col[i].priority >= col[worst].priority))
                worst = i;
        if (worst == TABLE_NONE) break;
        l->shown[worst] = false;
    }
    bring_back(p, w, l);
}

/* What stands on every page: the first column, a name where that is a number, and what tells rows
 * of one name apart. */
static void keep_names(const struct pane *p, const struct pane_layout *l, bool *kept)
{
    const struct column *col = p->def->columns;
    bool named = !col[0].numeric;

    for (uint32_t i = 0; i < l->n; i++) {
        bool name = !named && !col[i].numeric && col[i].priority == 1;
        kept[i] = i == 0 || name || (l->shown[i] && !col[i].numeric && col[i].priority == 2);
        named |= name;
    }
}

/* The order in which Left and Right go: what the first page shows, then what it leaves out, by
 * priority. */
static void put_order(const struct pane *p, struct pane_layout *l)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->shown[i]) l->order[n++] = (uint8_t)i;
    l->left_out = l->n - n;
    for (int priority = 0; priority < 256 && n < l->n; priority++)
        for (uint32_t i = 0; i < l->n; i++)
            if (!l->shown[i] && p->def->columns[i].priority == priority) l->order[n++] = (uint8_t)i;
}

/* Ends a page that holds order[from] to order[to - 1]: on the screen they stand in the table's
 * order, which the cursor follows. */
static bool end_page(const struct pane *p, struct pane_layout *l, uint32_t from, uint32_t to,
                     const bool *kept)
{
    bool here[PANE_COLUMNS_MAX] = {false}, found = false;
    uint32_t n = from;

    for (uint32_t k = from; k < to; k++) {
        here[l->order[k]] = true;
        found |= l->order[k] == p->column;
    }
    for (uint32_t i = 0; i < l->n; i++)
        if (here[i]) l->order[n++] = (uint8_t)i;
    for (uint32_t i = 0; found && i < l->n; i++) l->shown[i] = here[i] || kept[i];
    return found;
}

/* Further pages, as many columns each as fit beside the names. When the cursor is on one of them,
 * it is what is shown. */
static void further_pages(const struct pane *p, int w, struct pane_layout *l)
{
    bool kept[PANE_COLUMNS_MAX] = {false};
    struct pane_layout page = *l;
    uint32_t from = l->n - l->left_out;

    keep_names(p, l, kept);
    memcpy(page.shown, kept, sizeof kept);
    for (uint32_t k = from; k < l->n; k++) {
        page.shown[l->order[k]] = true;
        if (total_width(&page) <= w || k == from) continue;
        if (end_page(p, l, from, k, kept)) l->page = l->pages;
        l->pages++;
        memcpy(page.shown, kept, sizeof kept);
        page.shown[l->order[k]] = true;
        from = k;
    }
    if (end_page(p, l, from, l->n, kept)) l->page = l->pages;
    l->pages++;
}

void pane_lay_out(const struct pane *p, int w, struct pane_layout *l)
{
    const struct column *col = p->def->columns;
    uint32_t flex = TABLE_NONE;

    *l = (struct pane_layout){.pages = 1};
    l->n = p->def->ncolumns < PANE_COLUMNS_MAX ? p->def->ncolumns : PANE_COLUMNS_MAX;
    measure(p, l);
    first_page(p, w, l);
    put_order(p, l);
    if (l->left_out) further_pages(p, w, l);
    for (uint32_t i = 0; i < l->n; i++) {
        l->width[i] = l->least[i];
        if (l->shown[i] && col[i].flex) flex = i;
    }
    spread_slack(p, w, flex, l);
}
