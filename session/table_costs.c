/*
 * "costs": what each counter source found, lost and cost; see TALLY in proto.def. Unknown is drawn
 * as unknown: a source without passes has none, one whose output was never compared says so.
 */
#include "session/table_priv.h"

static const struct msg_tally *tally(const struct table_ctx *x, uint32_t i)
{
    return &x->session->tallies[i];
}

static uint32_t count(const struct table_ctx *x)
{
    return x->session->ntallies;
}

static void get_name(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", tally(x, i)->name);
}

static void get_windows(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, tally(x, i)->windows);
}

static void get_items(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, tally(x, i)->items);
}

/* A loss stands out. */
static void loss_cell(struct cell *c, uint64_t n)
{
    cell_count(c, n);
    if (n) c->mark = MARK_WARN;
}

static void get_dropped(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    loss_cell(c, tally(x, i)->dropped);
}

static void get_invalid(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    loss_cell(c, tally(x, i)->invalid);
}

static void get_other(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, tally(x, i)->other);
}

static void get_overflows(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    loss_cell(c, tally(x, i)->overflows);
}

/* No step takes no time at all: 0 is a time that nobody told. */
static void ms_cell(struct cell *c, uint64_t ns)
{
    if (ns)
        cell_value(c, value_ok((double)ns / 1e6, NULL));
    else
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "not timed: nothing was, or it is made up"));
}

static void get_switch(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    ms_cell(c, tally(x, i)->switch_ns);
}

static void get_decode(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    ms_cell(c, tally(x, i)->decode_ns);
}

static void get_overhead(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_tally *t = tally(x, i);
    if (t->overheads)
        ms_cell(c, t->overhead_ns);
    else
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "CUPTI told of no overhead of its own"));
}

static void get_sets(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_tally *t = tally(x, i);
    if (t->metrics)
        cell_text(c, "%s: %u metrics", t->sets, t->metrics);
    else
        cell_text(c, "%s", "");
}

static struct value no_pass(void)
{
    return value_missing(VALUE_UNAVAILABLE, "no exact pass has ended");
}

static void get_passes(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    if (tally(x, i)->passes)
        cell_count(c, tally(x, i)->passes);
    else
        cell_value(c, no_pass());
}

static void get_pass_ms(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    if (tally(x, i)->passes)
        ms_cell(c, tally(x, i)->pass_ns);
    else
        cell_value(c, no_pass());
}

static void get_output(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_tally *t = tally(x, i);
    if (t->output == 1) {
        cell_text(c, "equal %08llx", (unsigned long long)(t->output_hash & 0xffffffffu));
        c->mark = MARK_GOOD;
    } else if (t->output == 2) {
        cell_text(c, "DIFFERS");
        c->mark = MARK_BAD;
    } else {
        cell_text(c, "%s", "");
    }
}

static const struct column columns[] = {
    {"name", "source", "", "counter source", 9, 1, 0, 0, 0, 0, get_name},
    {"windows", "windows", "", "windows opened so far", 7, 2, 0, 1, 1, 0, get_windows},
    {"items", "found", "", "spans, samples, PC samples, counted launches", 7, 1, 0, 1, 1, 0,
     get_items},
    {"dropped", "lost", "", "lost by hardware or buffers", 6, 1, 0, 1, 1, 0, get_dropped},
    {"invalid", "no time", "", "records without usable timestamps: counted, not used", 7, 3, 0, 1,
     1, 0, get_invalid},
    {"other", "others", "", "not of a launch of this engine; pm: first samples, cut", 7, 4, 0, 1, 1,
     0, get_other},
    {"overflows", "ran over", "", "windows that ran over: not used", 8, 3, 0, 1, 1, 0,
     get_overflows},
    {"switch_ms", "switch ms", "ms", "the launching thread's time for switching it", 9, 2, 1, 1, 1,
     0, get_switch},
    {"decode_ms", "decode ms", "ms", "host time for reading its data", 9, 3, 1, 1, 1, 0,
     get_decode},
    {"overhead_ms", "CUPTI ms", "ms", "overhead that CUPTI itself tells of", 8, 4, 2, 1, 1, 0,
     get_overhead},
    {"passes", "passes", "", "runs of the work that the last exact group took", 6, 2, 0, 1, 0, 0,
     get_passes},
    {"pass_ms", "pass ms", "ms", "wall clock of the last exact group", 7, 2, 0, 1, 1, 0,
     get_pass_ms},
    {"output", "output", "", "tokens of its counted runs against an uncounted run", 15, 2, 0, 0, 0,
     0, get_output},
    {"sets", "counted", "", "sets that the last exact group counted", 20, 3, 0, 0, 0, 1, get_sets},
};

const struct table_def table_costs = {
    .id = "costs",
    .title = "what counting found, lost and cost",
    .empty = "no counter source has told of a window yet",
    .columns = columns,
    .ncolumns = NCOLUMNS(columns),
    .count = count,
};
