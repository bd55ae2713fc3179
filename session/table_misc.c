/* "sources", "events", "metrics" and "drops": what the session says about itself. */
#include <string.h>

#include "session/table_priv.h"

/* ---- sources ---- */

static uint32_t count_sources(const struct table_ctx *x)
{
    return x->session->nsources;
}

static void get_source_name(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", x->session->sources[i].name);
}

static void get_source_state(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const char *state = x->session->sources[i].state;
    cell_text(c, "%s", state);
    if (strcmp(state, "ok") == 0)
        c->mark = MARK_GOOD;
    else
        c->mark = strcmp(state, "failed") == 0 ? MARK_BAD : MARK_DIM;
}

static void get_source_why(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", x->session->sources[i].why);
}

static void get_source_remedy(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", x->session->sources[i].remedy);
}

static const struct column source_columns[] = {
    {"name", "source", "", "counter source", 9, 1, 0, 0, 0, 0, get_source_name},
    {"state", "state", "", "ok, off, unavailable or failed", 11, 1, 0, 0, 0, 0, get_source_state},
    {"why", "reason", "", "", 30, 1, 0, 0, 0, 1, get_source_why},
    {"remedy", "what to try", "", "", 30, 2, 0, 0, 0, 0, get_source_remedy},
};

const struct table_def table_sources = {
    .id = "sources",
    .title = "counter sources",
    .empty = "the engine has not said which counter sources it has",
    .columns = source_columns,
    .ncolumns = NCOLUMNS(source_columns),
    .count = count_sources,
};

/* ---- events: index 0 is the oldest that is kept ---- */

static const struct event *event_at(const struct table_ctx *x, uint32_t i)
{
    return &x->session->events[(x->session->first_event + i) % MAX_EVENTS];
}

static uint32_t count_events(const struct table_ctx *x)
{
    return x->session->nevents;
}

static void get_event_time(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, value_ok((double)event_at(x, i)->t_ns / 1e9, NULL));
}

static void get_event_kind(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    uint8_t level = event_at(x, i)->level;
    cell_text(c, "%s", event_at(x, i)->kind);
    if (level) c->mark = level == 1 ? MARK_WARN : MARK_BAD;
}

static void get_event_text(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", event_at(x, i)->text);
}

static const struct column event_columns[] = {
    {"t", "time", "s", "after the start", 8, 1, 3, 1, 0, 0, get_event_time},
    {"kind", "kind", "", "log, flip, fault, source, parity, reply, export, note, start, end", 10, 1,
     0, 0, 0, 0, get_event_kind},
    {"text", "what happened", "", "", 40, 1, 0, 0, 0, 1, get_event_text},
};

const struct table_def table_events = {
    .id = "events",
    .title = "events",
    .empty = "nothing has happened yet",
    .columns = event_columns,
    .ncolumns = NCOLUMNS(event_columns),
    .count = count_events,
};

/* ---- metrics ---- */

static const struct msg_metric_def *metric(const struct table_ctx *x, uint32_t i)
{
    return &x->session->metrics[i];
}

static uint32_t count_metrics(const struct table_ctx *x)
{
    return x->session->nmetrics;
}

static void get_metric_key(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", metric(x, i)->key);
}

static void get_metric_source(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", metric(x, i)->source);
}

static void get_metric_unit(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", metric(x, i)->unit);
}

static void get_metric_meaning(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", metric(x, i)->meaning);
}

static void get_metric_ncu(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", metric(x, i)->ncu);
}

static const struct column metric_columns[] = {
    {"key", "metric", "", "short key, as in reports", 14, 1, 0, 0, 0, 0, get_metric_key},
    {"source", "source", "", "counter source that gives it", 8, 1, 0, 0, 0, 0, get_metric_source},
    {"unit", "unit", "", "", 6, 2, 0, 0, 0, 0, get_metric_unit},
    {"meaning", "meaning", "", "", 40, 1, 0, 0, 0, 1, get_metric_meaning},
    {"ncu", "name in ncu", "", "as ncu and CUPTI write it", 40, 3, 0, 0, 0, 0, get_metric_ncu},
};

const struct table_def table_metrics = {
    .id = "metrics",
    .title = "metrics",
    .empty = "the engine has defined no metric",
    .columns = metric_columns,
    .ncolumns = NCOLUMNS(metric_columns),
    .count = count_metrics,
};

/* ---- drops: index = frame type ---- */

static uint32_t count_drops(const struct table_ctx *x)
{
    (void)x;
    return FRAME_TYPE_END;
}

static bool keep_drops(const struct table_ctx *x, uint32_t i)
{
    return x->session->drops[i] > 0;
}

static void get_drop_name(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    (void)x;
    cell_text(c, "%s", proto_name(i));
    c->mark = MARK_WARN;
}

static void get_drop_count(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, x->session->drops[i]);
}

static const struct column drop_columns[] = {
    {"frame", "frame", "", "kind of frame that was lost", 16, 1, 0, 0, 0, 1, get_drop_name},
    {"lost", "lost", "", "to a full ring between engine and screen", 10, 1, 0, 1, 1, 0,
     get_drop_count},
};

const struct table_def table_drops = {
    .id = "drops",
    .title = "frames lost",
    .empty = "no frame was lost",
    .columns = drop_columns,
    .ncolumns = NCOLUMNS(drop_columns),
    .sort = "lost",
    .count = count_drops,
    .keep = keep_drops,
};
