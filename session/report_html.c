/*
 * The HTML report: one file, no script, nothing loaded from elsewhere; light and dark by the
 * reader's setting; wide tables scroll by themselves, so that it reads on a phone.
 *
 * Invariants: tables go through table_build() and table_cell() as on screens; whatever came from
 * the stream is escaped. To add a section: a call in write_html().
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/executed.h"
#include "session/report_fmt.h"
#include "session/report_priv.h"
#include "session/report_svg.h"

static const char style[] =
    ":root{--bg:#fff;--fg:#1b1f24;--dim:#656d76;--line:#d0d7de;--soft:#f6f8fa;--accent:#0969da;"
    "--good:#1a7f37;--warn:#9a6700;--bad:#cf222e;--aa:#8c959f}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#8d96a0;"
    "--line:#30363d;--soft:#161b22;--accent:#58a6ff;--good:#3fb950;--warn:#d29922;--bad:#f85149;"
    "--aa:#6e7681}}\n"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:1080px;padding:16px;background:var(--bg);"
    "color:var(--fg);font:15px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.15rem;margin:2em 0 .5em;"
    "border-bottom:1px solid var(--line);padding-bottom:.2em}h3{font-size:1rem;margin:1.4em 0 .3em}"
    "\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.6em 0}"
    "dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}\n"
    ".wide{overflow-x:auto;border:1px solid var(--line);border-radius:6px}"
    "table{border-collapse:collapse;font-size:.86rem;width:100%}"
    "th,td{padding:.25em .7em;text-align:left;white-space:nowrap;border-bottom:1px solid "
    "var(--line)}td.text{white-space:normal;min-width:11em}"
    "th{background:var(--soft);position:sticky;top:0}"
    "tr:last-child td{border-bottom:0}.num{text-align:right;font-variant-numeric:tabular-nums}\n"
    ".good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}.dim{color:var(--dim)}\n"
    ".card{border:1px solid var(--line);border-left:6px solid var(--dim);border-radius:6px;"
    "padding:.7em 1em;background:var(--soft);margin:1em 0}.card p{margin:.3em 0}"
    ".card.LAND{border-left-color:var(--good)}.card.NOISE{border-left-color:var(--warn)}"
    ".card.REVERT,.card.INVALID{border-left-color:var(--bad)}"
    ".verdict{font-size:1.25rem;font-weight:700}\n"
    "figure{margin:1em 0}figcaption{color:var(--dim);font-size:.86rem}"
    "svg{width:100%;height:auto;max-height:560px;display:block}"
    "svg text{font:12px system-ui,sans-serif;fill:var(--fg)}svg .tick,svg .label{fill:var(--dim)}\n"
    ".grid{stroke:var(--line);stroke-width:1}.zero{stroke:var(--dim);stroke-width:1}"
    ".bar{stroke:var(--warn);stroke-width:1.5;stroke-dasharray:6 4}"
    ".band{fill:var(--aa);opacity:.22}.interval{fill:var(--accent);opacity:.18}"
    ".ab{fill:var(--accent)}.aa{fill:var(--aa)}.cc{fill:none;stroke:var(--aa);stroke-width:1.5}"
    ".dropped{fill:none;stroke:var(--bad)}.more{fill:var(--accent)}.less{fill:var(--good)}"
    ".rate{fill:none;stroke:var(--accent);stroke-width:1.5}\n"
    "details summary{cursor:pointer;color:var(--accent)}footer{color:var(--dim);margin:3em 0 1em;"
    "font-size:.86rem}\n"
    "@media(max-width:600px){body{padding:10px;font-size:14px}dl{grid-template-columns:1fr}"
    "dd{margin-bottom:.4em}svg text{font-size:17px}}\n";

/* ---- tables ---- */

static const char *mark_class(const struct cell *c)
{
    switch (c->mark) {
    case MARK_GOOD:
        return " good";
    case MARK_WARN:
        return " warn";
    case MARK_BAD:
        return " bad";
    case MARK_DIM:
        return " dim";
    default:
        return "";
    }
}

static void put_cell(struct buf *out, const struct table *t, uint32_t row, uint32_t col)
{
    char text[CELL_TEXT_MAX], why[480] = "";
    struct cell c;
    table_cell(t, row, col, &c);
    fmt_cell(t, row, col, text, sizeof text);
    if (!c.is_text && c.value.state == VALUE_ESTIMATE)
        snprintf(why, sizeof why, "estimate: %s, interquartile range %.6g, n %u", c.value.why,
                 c.value.spread, c.value.n);
    else if (!c.is_text && c.value.why && c.value.state != VALUE_OK)
        snprintf(why, sizeof why, "%s: %s", value_state_name(c.value.state), c.value.why);
    else if (!c.is_text && value_known(&c.value) && c.value.spread > 0)
        snprintf(why, sizeof why, "interquartile range %.6g, n %u, %s", c.value.spread, c.value.n,
                 c.value.source ? c.value.source : "");
    buf_printf(out, "<td class=\"%s%s\"",
               t->def->columns[col].numeric ? "num"
               : strlen(text) > 36          ? "text"
                                            : "",
               mark_class(&c));
    if (why[0]) {
        buf_printf(out, " title=\"");
        html_text(out, why);
        buf_u8(out, '"');
    }
    buf_u8(out, '>');
    html_text(out, text);
    buf_printf(out, "</td>");
}

enum { COLUMNS_MAX = 48 };

static void put_table(struct buf *out, const struct table *t)
{
    bool used[COLUMNS_MAX];
    uint32_t n = t->def->ncolumns < COLUMNS_MAX ? t->def->ncolumns : COLUMNS_MAX;
    buf_printf(out, "<div class=\"wide\"><table><thead><tr>");
    for (uint32_t c = 0; c < n; c++) {
        used[c] = c == 0 || fmt_column_used(t, c);
        if (!used[c]) continue;
        buf_printf(out, "<th%s title=\"", t->def->columns[c].numeric ? " class=\"num\"" : "");
        html_text(out, t->def->columns[c].help);
        buf_printf(out, "\">");
        html_text(out, t->def->columns[c].title);
        buf_printf(out, "</th>");
    }
    buf_printf(out, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < t->nrows; i++) {
        buf_printf(out, "<tr>");
        for (uint32_t c = 0; c < n; c++)
            if (used[c]) put_cell(out, t, i, c);
        buf_printf(out, "</tr>\n");
    }
    buf_printf(out, "</tbody></table></div>\n");
}

/* `level`: 2 or 3, of the heading; `folded` tables open by a tap. */
static enum status section(const struct session *s, struct buf *out, const char *id,
                           const struct table_query *q, const char *title, int level, bool folded)
{
    struct table t = {0};
    enum status st = table_build(&t, s, table_find(id), q);
    if (st == OK && (t.nrows || level == 2)) {
        buf_printf(out, "<h%d>", level);
        html_text(out, title ? title : t.def->title);
        buf_printf(out, "</h%d>\n", level);
        if (folded && t.nrows) buf_printf(out, "<details><summary>%u rows</summary>", t.nrows);
        if (t.nrows) {
            put_table(out, &t);
        } else {
            buf_printf(out, "<p class=\"dim\">");
            html_text(out, t.def->empty);
            buf_printf(out, ".</p>\n");
        }
        if (folded && t.nrows) buf_printf(out, "</details>\n");
    }
    table_free(&t);
    return st;
}

/* ---- the head ---- */

static void item(struct buf *out, const char *name, const char *text)
{
    if (!text[0]) return;
    buf_printf(out, "<dt>%s</dt><dd>", name);
    html_text(out, text);
    buf_printf(out, "</dd>\n");
}

static void put_head(const struct session *s, struct buf *out)
{
    const struct msg_hello *h = &s->hello;
    char text[512];
    buf_printf(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>sasstop: ");
    html_text(out, s->nexperiments ? s->experiments[0].def.b : h->device);
    buf_printf(out, "</title>\n<style>\n%s</style></head><body>\n<h1>", style);
    html_text(out, s->nexperiments ? "sasstop experiment" : "sasstop session");
    buf_printf(out, "</h1>\n<dl>\n");
    fmt_time(h->wall_ns, text, sizeof text);
    item(out, "started", text);
    if (h->sms)
        snprintf(text, sizeof text, h->sm ? "%s (sm_%u, %u SMs, up to %u MHz)" : "%s", h->device,
                 h->sm, h->sms, h->clock_mhz);
    else
        snprintf(text, sizeof text, h->sm ? "%s (sm_%u)" : "%s", h->device, h->sm);
    item(out, "device", text);
    item(out, "driver", h->driver);
    item(out, "toolkit", h->toolkit);
    item(out, "CUPTI", h->cupti);
    item(out, "commit", h->commit);
    item(out, "command", h->command);
    if (s->model.name[0]) {
        snprintf(text, sizeof text, "%.127s (%s, %s)", s->model.name, s->model.arch,
                 s->model.quant);
        item(out, "model", text);
    }
    item(out, "workload", s->model.workload);
    snprintf(text, sizeof text, "%llu, up to %.3f s", (unsigned long long)s->frames,
             (double)s->t_ns / 1e9);
    item(out, "frames", text);
    if (s->garbled_frames || s->unknown_frames || s->overflowed) {
        snprintf(text, sizeof text, "%llu garbled, %llu unknown, %llu over a limit",
                 (unsigned long long)s->garbled_frames, (unsigned long long)s->unknown_frames,
                 (unsigned long long)s->overflowed);
        item(out, "not taken in", text);
    }
    buf_printf(out, "</dl>\n");
}

/* ---- experiments ---- */

static void put_interval(struct buf *out, const char *name, const struct lab_experiment *x,
                         enum lab_series series)
{
    struct lab_interval i;
    char text[120];
    if (lab_series_interval(x, series, &i) != OK || !i.n) return;
    int n = snprintf(text, sizeof text, "%+.2f %%", 100 * lab_gain(i.est));
    if (i.known)
        n += snprintf(text + n, sizeof text - (size_t)n, " (%+.2f to %+.2f)", 100 * lab_gain(i.lo),
                      100 * lab_gain(i.hi));
    snprintf(text + n, sizeof text - (size_t)n, ", %u pairs", i.n);
    item(out, name, text);
}

static void put_card(struct buf *out, const struct lab_experiment *x)
{
    const struct msg_verdict *v = &x->verdict;
    const char *name = x->closed ? v->verdict : "OPEN";
    buf_printf(out, "<div class=\"card ");
    html_text(out, name);
    buf_printf(out, "\"><p class=\"verdict\">");
    html_text(out, name);
    if (x->closed && !v->firm) buf_printf(out, " <span class=\"dim\">(not firm)</span>");
    buf_printf(out, "</p><p>");
    html_text(out, x->closed ? v->why : "no verdict was reached: the run was ended before");
    buf_printf(out, "</p>");
    if (v->sentence[0]) {
        buf_printf(out, "<p>");
        html_text(out, v->sentence);
        buf_printf(out, "</p>");
    }
    buf_printf(out, "</div>\n");
}

static void put_frozen(struct buf *out, const struct lab_experiment *x)
{
    const struct msg_experiment *d = &x->def;
    char text[200];
    buf_printf(out, "<dl>\n");
    item(out, "A, the incumbent", d->a);
    item(out, "B", d->b);
    item(out, "third kernel", d->control);
    snprintf(text, sizeof text, "%s %s", d->workload, d->shape);
    item(out, "workload", text);
    item(out, "hypothesis", d->hypothesis);
    item(out, "claim", d->claim);
    item(out, "bar", d->bar);
    fmt_time(d->wall_ns, text, sizeof text);
    item(out, "frozen at", text);
    item(out, "retry when", d->retry);
    put_interval(out, "warmed", x, LAB_WARM);
    put_interval(out, "un-warmed", x, LAB_COLD);
    put_interval(out, "in SM cycles", x, LAB_CYCLES);
    put_interval(out, "other phase", x, LAB_ALSO);
    if (x->closed && isfinite(x->verdict.band)) {
        snprintf(text, sizeof text, "+-%.2f %% (A against A, %u pairs)", 100 * x->verdict.band,
                 x->verdict.aa);
        item(out, "noise band", text);
    }
    if (x->closed && x->verdict.dropped) {
        snprintf(text, sizeof text, "%u pairs", x->verdict.dropped);
        item(out, "left out", text);
    }
    buf_printf(out, "</dl>\n");
}

static enum status put_experiments(const struct session *s, struct buf *out)
{
    enum status st = OK;
    for (uint32_t i = 0; st == OK && i < s->nexperiments; i++) {
        const struct lab_experiment *x = &s->experiments[i];
        struct table_query q = {.kernel = TABLE_NONE, .row = i, .other = TABLE_NONE};
        buf_printf(out, "<h2>");
        html_text(out, x->def.b);
        buf_printf(out, " against ");
        html_text(out, x->def.a);
        buf_printf(out, "</h2>\n");
        put_card(out, x);
        put_frozen(out, x);
        svg_pairs(out, x);
        svg_distribution(out, x);
        st = section(s, out, "gates", &q, NULL, 3, false);
        svg_mechanism(out, x);
        if (st == OK) st = section(s, out, "mechanism", &q, NULL, 3, false);
        if (st == OK) st = section(s, out, "pairs", &q, NULL, 3, true);
    }
    return st;
}

/* ---- the session ---- */

static enum status put_kernels(const struct session *s, struct buf *out)
{
    enum status st = OK;
    for (uint32_t i = 0; st == OK && i < s->nkernels; i++) {
        const struct kernel *k = &s->kernels[i];
        struct table_query q = {.kernel = i, .row = TABLE_NONE, .other = TABLE_NONE};
        char title[200];
        if (!report_shows_census(s, i)) continue;
        snprintf(title, sizeof title, "%s: %u instructions, %u registers%s", k->def.name,
                 k->census.total, k->def.regs,
                 report_launched(s, i) ? "" : "; never launched in this session");
        st = section(s, out, "census", &q, title, 3, true);
    }
    return st;
}

static enum status put_executed(const struct session *s, struct buf *out)
{
    static const char *const parts[] = {"executed_classes", "executed", "surplus"};
    enum status st = OK;
    for (uint32_t i = 0; st == OK && i < s->nexecuted; i++) {
        struct table_query q = {
            .kernel = TABLE_NONE, .row = s->executed[i].row, .other = TABLE_NONE};
        char name[160], words[400];
        row_title(s, &s->rows[s->executed[i].row], name, sizeof name);
        buf_printf(out, "<h3>");
        html_text(out, name);
        buf_printf(out, "</h3><p>");
        exec_words(s, &s->executed[i], true, words, sizeof words);
        html_text(out, words);
        buf_printf(out, "</p>\n");
        for (unsigned k = 0; st == OK && k < sizeof parts / sizeof *parts; k++)
            st = section(s, out, parts[k], &q, NULL, 4, k != 0);
    }
    return st;
}

static enum status put_session(const struct session *s, struct buf *out)
{
    static const struct {
        const char *id;
        bool folded;
    } parts[] = {{"generations", false}, {"kernels", false}, {"rows", true},   {"regime", false},
                 {"ceilings", false},    {"variants", true}, {"parity", true}, {"sources", false}};
    enum status st = OK;
    svg_rates(out, s);
    svg_sm(out, s);
    svg_stalls(out, s);
    for (unsigned i = 0; st == OK && i < sizeof parts / sizeof *parts; i++)
        st = section(s, out, parts[i].id, NULL, NULL, 2, parts[i].folded);
    if (st == OK && s->ntallies) st = section(s, out, "costs", NULL, NULL, 3, false);
    if (st == OK && s->nkernels) {
        buf_printf(out, "<h2>machine code</h2>\n");
        st = put_kernels(s, out);
    }
    if (st == OK && s->nexecuted) {
        buf_printf(out, "<h2>executed instructions</h2>\n");
        st = put_executed(s, out);
    }
    if (st == OK) st = section(s, out, "drops", NULL, NULL, 3, false);
    return st;
}

static enum status write_html(const struct session *s, struct buf *out)
{
    put_head(s, out);
    enum status st = put_experiments(s, out);
    if (st == OK && s->ngenerations) st = put_session(s, out);
    if (st == OK) st = section(s, out, "events", NULL, NULL, 2, true);
    buf_printf(out,
               "<footer>Figures are medians with their spread in the cell's title; a dash is a "
               "figure that is not known, never 0.</footer>\n</body></html>\n");
    if (st == OK && out->failed) st = err_set(ERR_NOMEM, "out of memory for the report");
    return st;
}

const struct report_ops report_html_ops = {
    .ext = "html",
    .title = "one HTML file with charts, for a browser",
    .write = write_html,
};
