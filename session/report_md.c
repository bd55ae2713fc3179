/*
 * The Markdown report: a summary that says what ran, where, what won and what limits it, a table of
 * contents, then the tables that screens show.
 *
 * Invariant: every table goes through table_build() and table_cell(), so that a report can't say
 * something else than a screen. Headings of details are written alone, at the start of a line: the
 * contents are made of them. To add a section: a call in put_details().
 */
#include <stdio.h>
#include <string.h>

#include "session/executed.h"
#include "session/report_contents.h"
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
static void put_table(struct buf *out, const struct table *t, uint32_t most)
{
    bool used[COLUMNS_MAX];
    int width[COLUMNS_MAX];
    char text[CELL_TEXT_MAX];

    for (uint32_t c = 0; c < t->def->ncolumns; c++) {
        used[c] = c == 0 || fmt_column_used(t, c);
        width[c] = fmt_width(t, c, PAD_MAX);
    }
    put_head(out, t, used, width);
    for (uint32_t i = 0; i < t->nrows && i < most; i++) {
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

/* A heading of `level` (0: none, the table alone), and at most `most` rows. */
static enum status part(const struct session *s, struct buf *out, int level, const char *id,
                        const struct table_query *q, const char *title, uint32_t most)
{
    struct table t = {0};
    const struct table_def *def = table_find(id);
    enum status st = table_build(&t, s, def, q);

    if (st == OK) {
        if (level) {
            buf_printf(out, "\n%.*s ", level, "####");
            put_escaped(out, title ? title : def->title);
            buf_u8(out, '\n');
        }
        buf_u8(out, '\n');
        if (t.nrows)
            put_table(out, &t, most);
        else
            buf_printf(out, "%s.\n", def->empty);
        if (t.nrows > most) buf_printf(out, "\nand %u more below.\n", t.nrows - most);
    }
    table_free(&t);
    return st;
}

static enum status section(const struct session *s, struct buf *out, const char *id)
{
    return part(s, out, 2, id, NULL, NULL, UINT32_MAX);
}

/* One of many of a kind, below their heading. */
static enum status one(const struct session *s, struct buf *out, const char *id,
                       const struct table_query *q, const char *title)
{
    return part(s, out, 3, id, q, title, UINT32_MAX);
}

static void heading(struct buf *out, bool *written, const char *text)
{
    if (!*written) buf_printf(out, "\n## %s\n", text);
    *written = true;
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
}

static void put_about(const struct session *s, struct buf *out)
{
    char text[256];

    buf_printf(out, "# sasstop session ");
    put_escaped(out, s->hello.session);
    buf_printf(out, "\n\n");
    put_device(s, out);
    if (s->model.name[0]) {
        snprintf(text, sizeof text, "%.127s (%s, %s, hash %016llx)", s->model.name, s->model.arch,
                 s->model.quant, (unsigned long long)s->model.hash);
        item(out, "model", text);
    }
    item(out, "workload", s->model.workload);
    item(out, "command", s->hello.command);
    fmt_time(s->hello.wall_ns, text, sizeof text);
    item(out, "started", text);
    if (s->ended) item(out, "end", s->end_text[0] ? s->end_text : "the engine left");
}

static void put_run_of(const struct session *s, struct buf *out)
{
    buf_printf(out, "\n## the run\n\n");
    item(out, "driver", s->hello.driver);
    item(out, "toolkit", s->hello.toolkit);
    item(out, "CUPTI", s->hello.cupti);
    item(out, "commit", s->hello.commit);
    if (s->hello.seed) buf_printf(out, "- seed: %llu\n", (unsigned long long)s->hello.seed);
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
    bool written = false;

    for (uint32_t i = 0; i < s->nkernels && st == OK; i++) {
        const struct kernel *k = &s->kernels[i];
        struct table_query q = {.kernel = i, .row = TABLE_NONE, .other = TABLE_NONE};
        char title[200];
        if (!report_shows_census(s, i)) continue;
        heading(out, &written, "machine code of each kernel");
        snprintf(title, sizeof title,
                 "%s: %u instructions, %u registers, %u bytes shared, %u bytes spilled%s",
                 k->def.name, k->census.total, k->def.regs, k->def.smem_static, k->def.spill,
                 report_launched(s, i) ? "" : "; never launched in this session");
        st = one(s, out, "census", &q, title);
    }
    return st;
}

static enum status put_stalls(const struct session *s, struct buf *out)
{
    enum status st = OK;
    bool written = false;

    for (uint32_t i = 0; i < s->nkernels && st == OK; i++) {
        struct table_query q = {.kernel = i, .row = TABLE_NONE, .other = TABLE_NONE};
        bool seen = false;
        for (uint32_t j = 0; j < s->nstalls; j++) seen |= s->stalls[j].kernel == i;
        if (!seen) continue;
        heading(out, &written, "stall reasons of each kernel");
        st = one(s, out, "stalls", &q, s->kernels[i].def.name);
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
    bool written = false;
    for (uint32_t i = 0; st == OK && i < s->nexecuted; i++) {
        const struct executed *e = &s->executed[i];
        struct table_query q = {.kernel = TABLE_NONE, .row = e->row, .other = TABLE_NONE};
        const struct row *r = &s->rows[e->row];
        struct surplus p;
        char title[260], name[160], words[400];
        row_title(s, &s->rows[e->row], name, sizeof name);
        heading(out, &written, "executed instructions");
        snprintf(title, sizeof title, "%s: by class", name);
        st = one(s, out, "executed_classes", &q, title);
        exec_words(s, e, true, words, sizeof words);
        line(out, words);
        snprintf(title, sizeof title, "%s: by opcode", name);
        if (st == OK && r->def.macs > 0) st = one(s, out, "executed", &q, title);
        surplus_open(s, e->row, session_counterpart(s, r, r->def.generation), true, &p);
        if (st != OK || p.basis == SURPLUS_NONE) continue;
        snprintf(title, sizeof title, "%s: surplus against %s", name, p.b.k->def.name);
        st = one(s, out, "surplus", &q, title);
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
    enum status st = OK;

    for (uint32_t i = 0; i < s->nexperiments && st == OK; i++) {
        struct table_query q = {.kernel = TABLE_NONE, .row = i, .other = TABLE_NONE};
        put_verdict(out, &s->experiments[i]);
        for (unsigned k = 0; k < 3 && st == OK; k++) st = one(s, out, parts[k], &q, NULL);
    }
    return st;
}

/* Sources that gave nothing, and ceilings: what figures below will lack. */
static void put_lacking(const struct session *s, struct buf *out)
{
    bool any = false;
    for (uint32_t i = 0; i < s->nsources; i++) {
        const struct msg_source *x = &s->sources[i];
        if (!strcmp(x->state, "ok")) continue;
        if (!any) buf_printf(out, "\nCounter sources that gave nothing:\n\n");
        any = true;
        item(out, x->name, x->why[0] ? x->why : x->state);
    }
    if (s->hello.sm && !s->nceilings)
        buf_printf(out, "\nCeilings (roofs) were not measured in this session.\n");
}

/* What won, by how much, and what limits the kernels that take the time now. */
static enum status put_summary(const struct session *s, struct buf *out)
{
    enum { TOP = 6 };
    const struct generation *g = session_current(s);
    uint64_t timed = 0, counted = 0;
    enum status st = OK;

    buf_printf(out, "\n## Summary\n");
    if (s->nexperiments) st = part(s, out, 0, "experiments", NULL, NULL, UINT32_MAX);
    if (!g) {
        if (!s->nexperiments) buf_printf(out, "\nNo generation began: nothing was measured.\n");
        return st;
    }
    for (uint32_t i = 0; i < s->ngenerations; i++) {
        timed += s->generations[i].timed_rounds;
        counted += s->generations[i].counted_rounds;
    }
    buf_printf(out, "\n%u generation%s in %llu.%llu s, %llu timed and %llu counted rounds.\n",
               s->ngenerations, s->ngenerations == 1 ? "" : "s",
               (unsigned long long)(s->t_ns / 1000000000),
               (unsigned long long)(s->t_ns / 100000000 % 10), (unsigned long long)timed,
               (unsigned long long)counted);
    if (st == OK) st = part(s, out, 3, "best", NULL, NULL, UINT32_MAX);
    char title[120];
    snprintf(title, sizeof title, "what limits the costliest kernels of generation %u, the newest",
             g->def.generation);
    if (!strcmp(s->hello.backend, "cpu"))
        buf_printf(out,
                   "\nA CPU's operators are timed, not counted: what limits them isn't known.\n");
    else if (st == OK)
        st = part(s, out, 3, "regime", NULL, title, TOP);
    put_lacking(s, out);
    return st;
}

/* The run of an engine. */
static enum status put_engine(const struct session *s, struct buf *out)
{
    static const char *const first[] = {"generations", "flips", "regime", "rows"};
    static const char *const then[] = {"ceilings", "variants", "parity", "sources"};
    enum status st = OK;

    for (unsigned i = 0; i < sizeof first / sizeof *first && st == OK; i++)
        st = section(s, out, first[i]);
    if (st == OK) st = put_reasons(s, out);
    for (unsigned i = 0; i < sizeof then / sizeof *then && st == OK; i++)
        st = section(s, out, then[i]);
    if (st == OK && s->ntallies) st = section(s, out, "costs");
    return st;
}

static enum status put_details(const struct session *s, struct buf *out)
{
    bool experiments_alone = s->nexperiments && !s->nkernels && !s->ngenerations;
    enum status st = put_experiments(s, out);

    if (st == OK && !experiments_alone) st = put_engine(s, out);
    if (st == OK) st = put_stalls(s, out);
    if (st == OK) st = put_executed(s, out);
    if (st == OK) st = put_censuses(s, out);
    put_run_of(s, out);
    if (st == OK) st = section(s, out, "metrics");
    if (st == OK) st = section(s, out, "drops");
    if (st == OK) st = section(s, out, "events");
    return st;
}

static enum status write_md(const struct session *s, struct buf *out)
{
    struct buf details = {0};
    enum status st;

    put_about(s, out);
    st = put_summary(s, out);
    if (st == OK) st = put_details(s, &details);
    if (st == OK) {
        buf_printf(out, "\n## Contents\n\n");
        st = report_contents(out, &details);
    }
    buf_put(out, details.data, details.len);
    if (st == OK && (out->failed || details.failed))
        st = err_set(ERR_NOMEM, "out of memory for the report");
    buf_free(&details);
    return st;
}

const struct report_ops report_md_ops = {
    .ext = "md",
    .title = "Markdown, for people",
    .write = write_md,
};
