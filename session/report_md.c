/*
 * The Markdown report: a head that says what was run where, then the tables that screens show.
 *
 * Invariant: every table goes through table_build() and table_cell(), so that a report can't say
 * something else than a screen. To add a section: a call in write_md().
 */
#include <stdio.h>
#include <string.h>

#include "session/executed.h"
#include "session/report_fmt.h"
#include "session/report_priv.h"

/* Cells are one line; what would end one or open HTML is escaped. */
static void put_escaped(struct buf *out, const char *text)
{
    char clean[CELL_TEXT_MAX * 3];
    snprintf(clean, sizeof clean, "%s", text);
    fmt_utf8(clean);
    for (const char *p = clean; *p; p++) {
        if (*p == '<') {
            buf_printf(out, "&lt;");
            continue;
        }
        if (*p == '|' || *p == '\\' || *p == '`') buf_u8(out, '\\');
        buf_u8(out, *p == '\n' || *p == '\t' ? ' ' : (uint8_t)*p);
    }
}

static void put_padding(struct buf *out, int n)
{
    for (; n > 0; n--) buf_u8(out, ' ');
}

static void put_head(struct buf *out, const struct table *t, const bool *used, const int *width)
{
    for (uint32_t c = 0; c < t->def->ncolumns; c++) {
        if (!used[c]) continue;
        buf_printf(out, "| %-*s ", width[c], t->def->columns[c].title);
    }
    buf_printf(out, "|\n");
    for (uint32_t c = 0; c < t->def->ncolumns; c++) {
        if (!used[c]) continue;
        buf_printf(out, "|%s", t->def->columns[c].numeric ? "" : "-");
        for (int i = 0; i < width[c] + 1; i++) buf_u8(out, '-');
        if (t->def->columns[c].numeric) buf_u8(out, ':');
    }
    buf_printf(out, "|\n");
}

enum { COLUMNS_MAX = 32, PAD_MAX = 40 };

/* Columns that no row fills are left out, so that a CPU's report is not full of dashes. */
static void put_table(struct buf *out, const struct table *t)
{
    bool used[COLUMNS_MAX];
    int width[COLUMNS_MAX];
    char text[CELL_TEXT_MAX];

    for (uint32_t c = 0; c < t->def->ncolumns; c++) {
        used[c] = c == 0 || fmt_column_used(t, c);
        width[c] = fmt_width(t, c, PAD_MAX);
    }
    put_head(out, t, used, width);
    for (uint32_t i = 0; i < t->nrows; i++) {
        for (uint32_t c = 0; c < t->def->ncolumns; c++) {
            if (!used[c]) continue;
            fmt_cell(t, i, c, text, sizeof text);
            int pad = width[c] - (int)strlen(text);
            buf_printf(out, "| ");
            if (t->def->columns[c].numeric) put_padding(out, pad);
            put_escaped(out, text);
            if (!t->def->columns[c].numeric) put_padding(out, pad);
            buf_u8(out, ' ');
        }
        buf_printf(out, "|\n");
    }
}

static enum status section(const struct session *s, struct buf *out, const char *id,
                           const struct table_query *q, const char *title)
{
    struct table t = {0};
    const struct table_def *def = table_find(id);
    enum status st = table_build(&t, s, def, q);

    if (st == OK) {
        buf_printf(out, "\n## ");
        put_escaped(out, title ? title : def->title);
        buf_printf(out, "\n\n");
        if (t.nrows)
            put_table(out, &t);
        else
            buf_printf(out, "%s.\n", def->empty);
    }
    table_free(&t);
    return st;
}

static void item(struct buf *out, const char *name, const char *text)
{
    if (!text[0]) return;
    buf_printf(out, "- %s: ", name);
    put_escaped(out, text);
    buf_u8(out, '\n');
}

static void put_device(const struct session *s, struct buf *out)
{
    const struct msg_hello *h = &s->hello;
    char text[200];

    if (h->sm)
        snprintf(text, sizeof text, "%s (sm_%u, %u SMs, up to %u MHz)", h->device, h->sm, h->sms,
                 h->clock_mhz);
    else
        snprintf(text, sizeof text, "%s (%u threads)", h->device, h->sms);
    item(out, "device", text);
    item(out, "driver", h->driver);
    item(out, "toolkit", h->toolkit);
    item(out, "CUPTI", h->cupti);
}

static void put_about(const struct session *s, struct buf *out)
{
    char text[256];

    buf_printf(out, "# sasstop session ");
    put_escaped(out, s->hello.session);
    buf_printf(out, "\n\n");
    fmt_time(s->hello.wall_ns, text, sizeof text);
    item(out, "started", text);
    put_device(s, out);
    item(out, "commit", s->hello.commit);
    item(out, "command", s->hello.command);
    if (s->model.name[0]) {
        snprintf(text, sizeof text, "%.127s (%s, %s, hash %016llx)", s->model.name, s->model.arch,
                 s->model.quant, (unsigned long long)s->model.hash);
        item(out, "model", text);
    }
    item(out, "workload", s->model.workload);
    if (s->hello.seed) buf_printf(out, "- seed: %llu\n", (unsigned long long)s->hello.seed);
}

static void put_length(const struct session *s, struct buf *out)
{
    buf_printf(out, "- frames: this report is of frame %llu at %llu.%03llu s\n",
               (unsigned long long)s->frames, (unsigned long long)(s->t_ns / 1000000000),
               (unsigned long long)(s->t_ns / 1000000 % 1000));
    buf_printf(out, "- PM windows: %llu used, %llu not usable\n", (unsigned long long)s->windows,
               (unsigned long long)s->windows_unused);
    if (s->last_window.window)
        buf_printf(out, "- sampling period: %u ns\n", s->last_window.period_ns);
    if (s->garbled_frames || s->unknown_frames || s->overflowed || s->lost_events)
        buf_printf(out,
                   "- not taken in: %llu garbled frames, %llu of unknown types, %llu items over a "
                   "limit, %llu old events\n",
                   (unsigned long long)s->garbled_frames, (unsigned long long)s->unknown_frames,
                   (unsigned long long)s->overflowed, (unsigned long long)s->lost_events);
    if (s->ended) item(out, "end", s->end_text[0] ? s->end_text : "the engine left");
}

/* Why figures of the rows are missing: each reason once a column, with how many rows it holds for.
 */
struct reason {
    const char *column, *why;
    enum value_state state;
    uint32_t rows;
};

enum { REASONS_MAX = 64 };

static unsigned add_reason(struct reason *list, unsigned n, const char *column,
                           const struct value *v)
{
    const char *why = v->why ? v->why : "";
    for (unsigned i = 0; i < n; i++)
        if (strcmp(list[i].column, column) == 0 && strcmp(list[i].why, why) == 0) {
            list[i].rows++;
            return n;
        }
    if (n < REASONS_MAX) list[n++] = (struct reason){column, why, v->state, 1};
    return n;
}

static enum status put_reasons(const struct session *s, struct buf *out)
{
    struct reason list[REASONS_MAX];
    struct table t = {0};
    struct cell c;
    unsigned n = 0, estimates = 0;
    enum status st = table_build(&t, s, table_find("rows"), NULL);

    for (uint32_t k = 0; st == OK && k < t.def->ncolumns; k++)
        for (uint32_t i = 0; i < t.nrows; i++) {
            table_cell(&t, i, k, &c);
            if (c.is_text || c.value.state == VALUE_OK) continue;
            if (c.value.state == VALUE_ESTIMATE) {
                estimates++;
                continue;
            }
            n = add_reason(list, n, t.def->columns[k].title, &c.value);
        }
    if (estimates)
        buf_printf(out,
                   "\n%u figures with a leading ~ are estimates: least squares over samples that "
                   "several kernels share.\n",
                   estimates);
    if (n) buf_printf(out, "\nFigures that are missing in this table, and why:\n\n");
    for (unsigned i = 0; i < n; i++) {
        buf_printf(out, "- %s, %u row%s: %s: ", list[i].column, list[i].rows,
                   list[i].rows == 1 ? "" : "s", value_state_name(list[i].state));
        put_escaped(out, list[i].why);
        buf_u8(out, '\n');
    }
    table_free(&t);
    return st;
}

static enum status put_censuses(const struct session *s, struct buf *out)
{
    enum status st = OK;

    for (uint32_t i = 0; i < s->nkernels && st == OK; i++) {
        const struct kernel *k = &s->kernels[i];
        struct table_query q = {.kernel = i, .row = TABLE_NONE, .other = TABLE_NONE};
        char title[160];
        if (!report_shows_census(s, i)) continue;
        snprintf(title, sizeof title,
                 "census of %s: %u instructions, %u registers, %u bytes shared, %u bytes spilled",
                 k->def.name, k->census.total, k->def.regs, k->def.smem_static, k->def.spill);
        st = section(s, out, "census", &q, title);
    }
    return st;
}

static enum status put_stalls(const struct session *s, struct buf *out)
{
    enum status st = OK;

    for (uint32_t i = 0; i < s->nkernels && st == OK; i++) {
        struct table_query q = {.kernel = i, .row = TABLE_NONE, .other = TABLE_NONE};
        char title[160];
        bool seen = false;
        for (uint32_t j = 0; j < s->nstalls; j++) seen |= s->stalls[j].kernel == i;
        if (!seen) continue;
        snprintf(title, sizeof title, "stalls of %s", s->kernels[i].def.name);
        st = section(s, out, "stalls", &q, title);
    }
    return st;
}

/* What a line says, as a paragraph. */
static void line(struct buf *out, const char *text)
{
    buf_u8(out, '\n');
    put_escaped(out, text);
    buf_printf(out, ".\n");
}

/* Opcodes of matrix products alone: of the others the classes say enough. */
static enum status put_executed(const struct session *s, struct buf *out)
{
    enum status st = OK;
    for (uint32_t i = 0; st == OK && i < s->nexecuted; i++) {
        const struct executed *e = &s->executed[i];
        struct table_query q = {.kernel = TABLE_NONE, .row = e->row, .other = TABLE_NONE};
        const struct row *r = &s->rows[e->row];
        struct surplus p;
        char title[260], name[160], words[400];
        row_title(s, &s->rows[e->row], name, sizeof name);
        snprintf(title, sizeof title, "executed by class: %s", name);
        st = section(s, out, "executed_classes", &q, title);
        exec_words(s, e, true, words, sizeof words);
        line(out, words);
        snprintf(title, sizeof title, "executed by opcode: %s", name);
        if (st == OK && r->def.macs > 0) st = section(s, out, "executed", &q, title);
        surplus_open(s, e->row, session_counterpart(s, r, r->def.generation), true, &p);
        if (st != OK || p.basis == SURPLUS_NONE) continue;
        snprintf(title, sizeof title, "surplus: %s against %s", name, p.b.k->def.name);
        st = section(s, out, "surplus", &q, title);
        surplus_words(&p, words, sizeof words);
        line(out, words);
    }
    return st;
}

static void put_verdict(struct buf *out, const struct lab_experiment *x)
{
    const struct msg_verdict *v = &x->verdict;

    buf_printf(out, "\n## experiment %u: ", x->def.experiment);
    put_escaped(out, x->def.b);
    buf_printf(out, " against ");
    put_escaped(out, x->def.a);
    buf_printf(out, "\n\n**%s%s.** ", x->closed ? v->verdict : "OPEN",
               !x->closed || v->firm ? "" : " (not firm)");
    put_escaped(out, x->closed ? v->why : "no verdict was reached: the run was ended before");
    buf_printf(out, "\n\n");
    if (v->sentence[0]) {
        put_escaped(out, v->sentence);
        buf_printf(out, "\n\n");
    }
    item(out, "hypothesis", x->def.hypothesis);
    item(out, "claim", x->def.claim);
    item(out, "bar, frozen before the first pair", x->def.bar);
    item(out, "third kernel", x->def.control);
    item(out, "retry when", x->def.retry);
}

static enum status put_experiments(const struct session *s, struct buf *out)
{
    static const char *const parts[] = {"gates", "mechanism", "pairs"};
    enum status st = section(s, out, "experiments", NULL, NULL);

    for (uint32_t i = 0; i < s->nexperiments && st == OK; i++) {
        struct table_query q = {.kernel = TABLE_NONE, .row = i, .other = TABLE_NONE};
        put_verdict(out, &s->experiments[i]);
        for (unsigned k = 0; k < 3 && st == OK; k++) st = section(s, out, parts[k], &q, NULL);
    }
    return st;
}

/* The run of an engine. */
static enum status put_run(const struct session *s, struct buf *out)
{
    static const char *const first[] = {"generations", "flips", "rows"};
    static const char *const then[] = {"regime", "ceilings", "variants", "parity"};
    enum status st = section(s, out, "sources", NULL, NULL);

    if (st == OK && s->ntallies) st = section(s, out, "costs", NULL, NULL);
    for (unsigned i = 0; i < sizeof first / sizeof *first && st == OK; i++)
        st = section(s, out, first[i], NULL, NULL);
    if (st == OK) st = put_reasons(s, out);
    for (unsigned i = 0; i < sizeof then / sizeof *then && st == OK; i++)
        st = section(s, out, then[i], NULL, NULL);
    return st;
}

static enum status write_md(const struct session *s, struct buf *out)
{
    bool experiments_alone = s->nexperiments && !s->nkernels && !s->ngenerations;
    enum status st = OK;

    put_about(s, out);
    put_length(s, out);
    if (s->nexperiments) st = put_experiments(s, out);
    if (st == OK && !experiments_alone) st = put_run(s, out);
    if (st == OK) st = put_stalls(s, out);
    if (st == OK) st = put_executed(s, out);
    if (st == OK) st = put_censuses(s, out);
    if (st == OK) st = section(s, out, "metrics", NULL, NULL);
    if (st == OK) st = section(s, out, "drops", NULL, NULL);
    if (st == OK) st = section(s, out, "events", NULL, NULL);
    if (st == OK && out->failed) st = err_set(ERR_NOMEM, "out of memory for the report");
    return st;
}

const struct report_ops report_md_ops = {
    .ext = "md",
    .title = "Markdown, for people",
    .write = write_md,
};
