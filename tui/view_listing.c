/*
 * Listing: the machine code of the selected kernel. Jumps as arrows in the margin, loops by depth,
 * control fields, PC samples when the session has some of the kernel, source lines when the cubin
 * has a line table; the keys are perf annotate's.
 */
#include "sass_view/vendor.h"
#include "tui/code.h"
#include "tui/listing.h"
#include "tui/listing_exec.h"
#include "tui/listing_heat.h"
#include "tui/source_text.h"
#include "tui/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    JUMPS_KEPT = 32,
    ARROWS_W = 6,
    ADDRESS_W = 12,
    SOURCE_W = 8,
    WORDS_FROM_H = 12,
    CONTROL_FROM_W = 100,
    SAMPLES_FROM_H = 14
};

struct listing_view {
    struct code code;
    struct pane search; /* only its filter is used: the text that / looks for */
    char sought[PANE_FILTER_MAX];
    int32_t *row_insn; /* by row: instruction, or -1 - line-table row: a source line */
    uint32_t nrows, at, top;
    uint32_t back[JUMPS_KEPT], nback; /* rows that jumps were followed from */
    int page;
    bool no_arrows, no_source;
    bool other_control; /* control fields: not as the width would have it */
    bool narrow;        /* figures leave no room for control fields beside operands */
    uint64_t shown;     /* code hash that the rows were made for */
    struct source_text source;
    struct vendor_text vendor; /* shown instead of our text while it has lines */
    bool own_text;             /* the user, or a script, wants ours */
    struct listing_exec exec;
    struct listing_heat heat; /* both point into the session: good from update to draw */
};

static void listing_init(void *data)
{
    struct listing_view *v = data;
    pane_init(&v->search, "");
    v->page = 1;
}

static void listing_done(void *data)
{
    struct listing_view *v = data;
    code_free(&v->code);
    source_text_free(&v->source);
    vendor_free(&v->vendor);
    pane_free(&v->search);
    free(v->row_insn);
}

static struct pane *listing_pane(void *data)
{
    return &((struct listing_view *)data)->search;
}

/* One row an instruction, and one before it where the source line changes. */
static void make_rows(struct listing_view *v)
{
    const struct flow *f = &v->code.flow;
    const struct line_row *before = NULL;
    free(v->row_insn);
    v->nrows = 0;
    v->row_insn = malloc((2 * (size_t)f->ninsns + 1) * sizeof *v->row_insn);
    if (!v->row_insn) return;
    for (uint32_t i = 0; i < f->ninsns; i++) {
        const struct line_row *l = lines_at(&v->code.lines, i * INSN_BYTES);
        bool same =
            l == before || (l && before && l->line == before->line && l->file == before->file);
        if (l && !v->no_source && !same)
            v->row_insn[v->nrows++] = -1 - (int32_t)(l - v->code.lines.rows);
        if (l) before = l;
        v->row_insn[v->nrows++] = (int32_t)i;
    }
    if (v->at >= v->nrows) v->at = v->nrows ? v->nrows - 1 : 0;
}

/* The row of an instruction; 0 when there is none. */
static uint32_t row_of(const struct listing_view *v, int64_t insn)
{
    for (uint32_t r = 0; r < v->nrows; r++)
        if (v->row_insn[r] == insn) return r;
    return 0;
}

/* The instruction at the cursor, or the next one below. */
static int32_t insn_here(const struct listing_view *v)
{
    for (uint32_t r = v->at; r < v->nrows; r++)
        if (v->row_insn[r] >= 0) return v->row_insn[r];
    return -1;
}

/* The hottest instruction by samples. Without any the loop's structure decides: the first tensor
 * instruction of the hot loop, else its head. */
static void go_hottest(struct app *a, struct listing_view *v)
{
    const struct flow *f = &v->code.flow;
    struct listing_heat heat = heat_find(app_session(a), app_row(a), f);
    if (heat.hottest >= 0) {
        v->at = row_of(v, heat.hottest);
        app_say(a, ROLE_TEXT, "the hottest instruction: %.1f %% of %llu samples",
                heat_pct(&heat, (uint32_t)heat.hottest), (unsigned long long)heat.of->samples);
        return;
    }
    if (f->hot < 0) {
        app_say(a, ROLE_DIM, "this kernel has no loop");
        return;
    }
    int64_t at = f->loops[f->hot].head / INSN_BYTES;
    for (uint32_t i = 0; i < f->ninsns; i++)
        if (f->insns[i].cls == INSN_CLASS_TENSOR && flow_in_loop(f, f->insn_loop[i], f->hot)) {
            at = i;
            break;
        }
    v->at = row_of(v, at);
    app_say(a, ROLE_TEXT,
            "the hot loop, chosen by structure: the deepest with tensor instructions");
}

static const char *text_of(const struct listing_view *v, int32_t i, char *buf, size_t size)
{
    if (v->vendor.line && (uint32_t)i < v->vendor.n && v->vendor.line[i]) return v->vendor.line[i];
    return insn_text(&v->code.flow.insns[i], buf, size);
}

static bool row_holds(const struct listing_view *v, uint32_t row, const char *what)
{
    char buf[200];
    return v->row_insn[row] >= 0 &&
           strstr(text_of(v, v->row_insn[row], buf, sizeof buf), what) != NULL;
}

static void find(struct app *a, struct listing_view *v, int step);

/* What is typed after / is looked for at once, from the cursor on. */
static void find_typed(struct app *a, struct listing_view *v)
{
    if (!strcmp(v->sought, v->search.filter)) return;
    memcpy(v->sought, v->search.filter, sizeof v->sought);
    if (!v->sought[0] || !v->nrows || row_holds(v, v->at, v->sought)) return;
    if (strncmp(v->sought, "0x", 2) || v->sought[2]) find(a, v, 1);
}

/* Scripts show our own text, so that a screen is the same everywhere. */
static void load_vendor(struct app *a, struct listing_view *v)
{
    vendor_free(&v->vendor);
    if (v->own_text || a->options->script || !vendor_installed()) return;
    if (vendor_read(&v->vendor, &v->code.cubin, v->code.kernel) != OK)
        app_say(a, ROLE_WARN, "%s", err_msg());
}

static void listing_update(struct app *a, void *data)
{
    struct listing_view *v = data;
    const struct kernel *k = app_kernel(a);
    if (!k) return;
    code_load(&v->code, app_session(a), k);
    if (v->shown != v->code.code_hash || (v->code.ok && !v->row_insn)) {
        v->shown = v->code.code_hash;
        v->at = v->top = v->nback = 0;
        v->nrows = 0;
        vendor_free(&v->vendor);
        if (v->code.ok) {
            make_rows(v);
            load_vendor(a, v);
            int32_t hot = heat_find(app_session(a), app_row(a), &v->code.flow).hot;
            if (hot >= 0) v->at = row_of(v, v->code.flow.loops[hot].head / INSN_BYTES);
            v->top = v->at > 4 ? v->at - 4 : 0;
        }
    }
    if (!v->code.ok) return;
    v->heat = heat_find(app_session(a), app_row(a), &v->code.flow);
    v->exec = exec_find(app_session(a), a->row);
    find_typed(a, v);
}

/* ---- drawing ---- */

static bool shows_control(const struct listing_view *v)
{
    return v->narrow == v->other_control;
}

static int draw_head(struct app *a, const struct listing_view *v, struct area area)
{
    const struct census *s = &v->code.census;
    const struct flow *f = &v->code.flow;
    struct canvas *c = &a->canvas;
    canvas_printf(c, 1, area.y, area.w - 2, ROLE_ACCENT | STYLE_BOLD, "%s", s->kernel);
    int x = 3 + text_columns(s->kernel);
    char hot[64] = "no loop", text[400];
    if (v->heat.hot >= 0) {
        const struct flow_loop *l = &f->loops[v->heat.hot];
        snprintf(hot, sizeof hot, "hot loop %x-%x: %u of them", l->head, l->last, l->insns);
    }
    canvas_printf(c, x, area.y, area.w - x - 1, ROLE_TEXT, "%s, %u instructions, %d regs, %s",
                  s->arch, s->total, s->regs, hot);
    int used = 1;
    if (area.h >= SAMPLES_FROM_H) {
        heat_line(&v->heat, text, sizeof text);
        used += canvas_wrap(c, (struct area){1, area.y + used, area.w - 2, area.h / 6},
                            v->heat.of ? ROLE_TEXT : ROLE_DIM, text);
        exec_line(&v->exec, text, sizeof text);
        if (v->exec.of) canvas_text(c, 1, area.y + used++, area.w - 2, ROLE_TEXT, text);
    }
    area.y += used - 1;
    int cx = area.x + 1 + ARROWS_W;
    if (v->heat.of) {
        canvas_text(c, cx, area.y + 1, area.w - cx, ROLE_HEAD, " heat");
        cx += HEAT_W;
    }
    if (v->exec.of) {
        canvas_text(c, cx, area.y + 1, area.w - cx, ROLE_HEAD, "executed");
        cx += EXEC_W;
    }
    canvas_text(c, cx, area.y + 1, area.w - cx, ROLE_HEAD, "   addr  d");
    cx += ADDRESS_W;
    if (shows_control(v)) {
        canvas_text(c, cx, area.y + 1, area.w - cx, ROLE_HEAD, "stall w  r  wait");
        cx += CONTROL_W;
    }
    canvas_text(c, cx, area.y + 1, area.w - cx, ROLE_HEAD,
                shows_control(v) || !v->narrow ? "instruction"
                                               : "instruction  (o: control fields)");
    return used + 1;
}

static void draw_source(struct app *a, struct listing_view *v, int x, int y, int w, uint32_t row)
{
    const struct line_row *l = &v->code.lines.rows[row];
    const char *file = l->file < v->code.lines.nfiles ? v->code.lines.files[l->file] : "?";
    const char *slash = strrchr(file, '/');
    const char *text = source_text_line(&v->source, file, l->line);
    canvas_printf(&a->canvas, x, y, w, ROLE_HEAD, "%s:%u%s%s  %s", slash ? slash + 1 : file,
                  l->line, l->inlined_at ? " (inlined)" : "", v->code.lines.ptx ? " (PTX)" : "",
                  text ? text + strspn(text, " \t") : "");
}

static void draw_insn(struct app *a, const struct listing_view *v, int x, int y, int w, int32_t i)
{
    struct canvas *c = &a->canvas;
    const struct flow *f = &v->code.flow;
    const struct insn *in = &f->insns[i];
    int depth = f->insn_loop[i] < 0 ? 0 : f->loops[f->insn_loop[i]].depth;
    bool hot = v->heat.hot >= 0 && flow_in_loop(f, f->insn_loop[i], v->heat.hot);
    char text[200];
    if (v->heat.of) {
        heat_draw(c, x, y, w, &v->heat, (uint32_t)i);
        x += HEAT_W;
        w -= HEAT_W;
    }
    if (v->exec.of) {
        exec_draw(c, x, y, w, &v->exec, (uint32_t)i);
        x += EXEC_W;
        w -= EXEC_W;
    }
    canvas_printf(c, x, y, w, f->padding[i] ? ROLE_DIM : ROLE_TEXT, "%7x", in->offset);
    if (depth)
        canvas_printf(c, x + 9, y, w - 9, hot ? ROLE_WARN : ROLE_DIM, "%d%s", depth,
                      hot ? "*" : "");
    x += ADDRESS_W;
    w -= ADDRESS_W;
    if (shows_control(v)) {
        canvas_text(c, x, y, w, ROLE_DIM, control_text(in, text, sizeof text));
        x += CONTROL_W;
        w -= CONTROL_W;
    }
    const char *words = text_of(v, i, text, sizeof text);
    canvas_text(c, x, y, w, insn_role(in, f->padding[i]), words);
    if (v->search.filter[0] && strstr(words, v->search.filter))
        canvas_restyle(c, x, y, text_columns(words) < w ? text_columns(words) : w, -1, STYLE_UNDER);
}

/* The instruction under the cursor in words: what it is for, what it waits for and sets. */
static void draw_words(struct app *a, const struct listing_view *v, struct area area, int y)
{
    int32_t i = insn_here(v);
    char text[600], wait[16] = "", heat[120], ran[240];
    size_t n = 0, at;
    if (i < 0) return;
    const struct insn *in = &v->code.flow.insns[i];
    for (unsigned b = 0; b < 6; b++)
        if (in->ctl.wait_mask >> b & 1) wait[n++] = (char)('0' + b);
    heat_words(&v->heat, (uint32_t)i, heat, sizeof heat);
    exec_insn_words(&v->exec, (uint32_t)i, ran, sizeof ran);
    at = (size_t)snprintf(text, sizeof text, "%s%s%s%s%s; stall %u", heat, heat[0] ? "; " : "", ran,
                          ran[0] ? "; " : "", insn_class_help((enum insn_class)in->cls),
                          in->ctl.stall);
    if (n) at += (size_t)snprintf(text + at, sizeof text - at, "; waits for scoreboards %s", wait);
    if (in->ctl.write_bar != INSN_NO_BAR)
        at += (size_t)snprintf(text + at, sizeof text - at, "; result sets %u",
                               in->ctl.write_bar & 7u);
    if (in->ctl.read_bar != INSN_NO_BAR)
        snprintf(text + at, sizeof text - at, "; operands read sets %u", in->ctl.read_bar & 7u);
    canvas_text(&a->canvas, area.x + 1, y, area.w - 2, ROLE_DIM, text);
}

static void draw_none(struct app *a, const struct listing_view *v, struct area area)
{
    canvas_wrap(&a->canvas, (struct area){1, area.y, area.w - 2, area.h}, ROLE_DIM,
                app_kernel(a) ? v->code.why : "no kernel has run yet");
}

static void listing_draw(struct app *a, void *data, struct area area)
{
    struct listing_view *v = data;
    struct canvas *c = &a->canvas;
    if (!app_kernel(a) || !v->code.ok || !v->nrows) {
        draw_none(a, v, area);
        return;
    }
    v->narrow = v->heat.of && v->exec.of && area.w < CONTROL_FROM_W;
    int used = draw_head(a, v, area);
    area.y += used;
    area.h -= used;
    if (area.h >= WORDS_FROM_H) draw_words(a, v, area, area.y + --area.h);
    if (area.h < 1) return;
    v->page = area.h;
    if (v->at < v->top) v->top = v->at;
    if (v->at >= v->top + (uint32_t)area.h) v->top = v->at - (uint32_t)area.h + 1;
    int x = area.x + 1 + ARROWS_W, w = area.w - x;
    for (int r = 0; r < area.h && v->top + (uint32_t)r < v->nrows; r++) {
        int32_t what = v->row_insn[v->top + (uint32_t)r];
        if (what < 0)
            draw_source(a, v, x + SOURCE_W, area.y + r, w - SOURCE_W, (uint32_t)(-1 - what));
        else
            draw_insn(a, v, x, area.y + r, w, what);
    }
    struct listing_rows rows = {v->row_insn, v->nrows};
    if (!v->no_arrows)
        draw_arrows(c, area.x + 1, area.y, ARROWS_W, area.h, &v->code.flow, &rows, v->top,
                    v->row_insn[v->at]);
    int y = area.y + (int)(v->at - v->top);
    canvas_text(c, area.x, y, 1, ROLE_ACCENT, c->ascii ? ">" : "▸");
    canvas_restyle(c, area.x, y, area.w, -1, STYLE_REVERSE);
}

/* ---- requests ---- */

/* To the next row (step 1) or the one before (-1) that holds what was typed; 0x... is an address.
 */
static void find(struct app *a, struct listing_view *v, int step)
{
    const char *what = v->search.filter;
    char *end;
    if (!what[0]) {
        app_say(a, ROLE_DIM, "/ looks for a text, or for an address that starts with 0x");
        return;
    }
    if (!strncmp(what, "0x", 2)) {
        unsigned long off = strtoul(what, &end, 16);
        if (!*end && off / INSN_BYTES < v->code.flow.ninsns)
            v->at = row_of(v, (int64_t)(off / INSN_BYTES));
        else
            app_say(a, ROLE_WARN, "no instruction at %s", what);
        return;
    }
    for (uint32_t k = 1; k <= v->nrows; k++) {
        uint32_t row = (v->at + (step > 0 ? k : v->nrows - k)) % v->nrows;
        if (!row_holds(v, row, what)) continue;
        v->at = row;
        return;
    }
    app_say(a, ROLE_WARN, "nothing here holds '%s'", what);
}

static void follow(struct app *a, struct listing_view *v)
{
    int32_t i = insn_here(v);
    const struct insn *in = i < 0 ? NULL : &v->code.flow.insns[i];
    if (!in || in->target < 0 || in->target / INSN_BYTES >= v->code.flow.ninsns) {
        app_say(a, ROLE_DIM, "no jump here to follow");
        return;
    }
    if (v->nback == JUMPS_KEPT) {
        memmove(v->back, v->back + 1, (JUMPS_KEPT - 1) * sizeof *v->back);
        v->nback--;
    }
    v->back[v->nback++] = v->at;
    v->at = row_of(v, in->target / INSN_BYTES);
}

static void toggle_source(struct app *a, struct listing_view *v)
{
    int32_t i = insn_here(v);
    if (!v->code.lines.nrows) {
        app_say(a, ROLE_DIM, "this cubin has no line table (nvcc -lineinfo puts one in)");
        return;
    }
    v->no_source = !v->no_source;
    make_rows(v);
    v->at = row_of(v, i);
}

static bool move(struct listing_view *v, enum request r)
{
    uint32_t page = (uint32_t)v->page, last = v->nrows - 1;
    switch (r) {
    case REQ_UP:
        v->at -= v->at > 0;
        return true;
    case REQ_DOWN:
        v->at += v->at < last;
        return true;
    case REQ_PAGE_UP:
        v->at = v->at > page ? v->at - page : 0;
        return true;
    case REQ_PAGE_DOWN:
        v->at = v->at + page < last ? v->at + page : last;
        return true;
    case REQ_HOME:
        v->at = 0;
        return true;
    case REQ_END:
        v->at = last;
        return true;
    case REQ_LEFT:
        if (v->nback) v->at = v->back[--v->nback];
        return true;
    default:
        return false;
    }
}

static bool listing_request(struct app *a, void *data, enum request r)
{
    struct listing_view *v = data;
    if (r == REQ_LISTING) {
        app_show_view(a, a->back);
        return true;
    }
    if (!v->code.ok || !v->nrows) return false;
    if (move(v, r)) return true;
    switch (r) {
    case REQ_FILTER: /* a new text each time; the application does the typing */
        v->search.filter[0] = v->sought[0] = 0;
        return false;
    case REQ_RIGHT:
    case REQ_ENTER:
        follow(a, v);
        return true;
    case REQ_SASS:
        toggle_source(a, v);
        return true;
    case REQ_ARROWS:
        v->no_arrows = !v->no_arrows;
        return true;
    case REQ_ORDER:
        v->other_control = !v->other_control;
        return true;
    case REQ_MODE:
        v->own_text = v->vendor.line != NULL;
        load_vendor(a, v);
        app_say(a, ROLE_TEXT,
                v->vendor.line       ? "nvdisasm's text"
                : vendor_installed() ? "our own text"
                                     : "our own text: nvdisasm isn't installed");
        return true;
    case REQ_HOTTEST:
        go_hottest(a, v);
        return true;
    case REQ_FIND_NEXT:
        find(a, v, 1);
        return true;
    case REQ_FIND_PREV:
        find(a, v, -1);
        return true;
    default:
        return false;
    }
}

const struct view_ops listing_ops = {
    .name = "listing",
    .title = "machine code of the selected kernel",
    .size = sizeof(struct listing_view),
    .init = listing_init,
    .done = listing_done,
    .update = listing_update,
    .draw = listing_draw,
    .request = listing_request,
    .pane = listing_pane,
};
