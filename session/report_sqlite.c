/*
 * The SQLite report: a database file with the tables of screens and reports, for queries. It is
 * made in memory and serialised, so that a report is bytes here as elsewhere.
 *
 * Tables: about(name, value); figures(table_id, focus, row, column_id, text, value, unit, state,
 * source, spread, n, why), one row a cell, as in the CSV; pairs(experiment, pair, kind, swapped,
 * a_us, b_us, ...); mechanism(experiment, name, unit, source, a, b, why); experiments(...);
 * spans(t_ns, dur_ns, kernel, m, n, k, role, phase). What isn't known is NULL.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "session/executed.h"
#include "session/report_fmt.h"
#include "session/report_priv.h"

static const char schema[] =
    "BEGIN;"
    "CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT);"
    "CREATE TABLE figures(table_id TEXT, focus TEXT, row INTEGER, column_id TEXT, text TEXT,"
    " value REAL, unit TEXT, state TEXT, source TEXT, spread REAL, n INTEGER, why TEXT);"
    "CREATE TABLE experiments(experiment INTEGER PRIMARY KEY, a TEXT, b TEXT, control TEXT,"
    " workload TEXT, shape TEXT, hypothesis TEXT, claim TEXT, bar TEXT, bar_gain REAL,"
    " verdict TEXT, firm INTEGER, gain REAL, lo REAL, hi REAL, noise REAL, why TEXT,"
    " sentence TEXT);"
    "CREATE TABLE pairs(experiment INTEGER, pair INTEGER, kind TEXT, swapped INTEGER, a_us REAL,"
    " b_us REAL, a_cold_us REAL, b_cold_us REAL, a_cycles REAL, b_cycles REAL, a_mhz REAL,"
    " b_mhz REAL, dropped TEXT);"
    "CREATE TABLE mechanism(experiment INTEGER, name TEXT, unit TEXT, source TEXT, a REAL, b REAL,"
    " why TEXT);"
    "CREATE TABLE spans(t_ns INTEGER, dur_ns INTEGER, kernel TEXT, m INTEGER, n INTEGER,"
    " k INTEGER, role TEXT, phase TEXT);";

struct db {
    sqlite3 *db;
    sqlite3_stmt *stmt;
    int at;
    bool failed;
};

static void prepare(struct db *d, const char *sql)
{
    sqlite3_finalize(d->stmt);
    d->stmt = NULL;
    d->at = 0;
    d->failed |= sqlite3_prepare_v2(d->db, sql, -1, &d->stmt, NULL) != SQLITE_OK;
}

static void text(struct db *d, const char *v)
{
    char clean[512];
    snprintf(clean, sizeof clean, "%s", v ? v : "");
    fmt_utf8(clean);
    sqlite3_bind_text(d->stmt, ++d->at, clean, -1, SQLITE_TRANSIENT);
}

/* NULL unless `known` and finite. */
static void real(struct db *d, bool known, double v)
{
    d->at++;
    if (known && isfinite(v))
        sqlite3_bind_double(d->stmt, d->at, v);
    else
        sqlite3_bind_null(d->stmt, d->at);
}

static void whole(struct db *d, uint64_t v)
{
    sqlite3_bind_int64(d->stmt, ++d->at, (sqlite3_int64)v);
}

static void step(struct db *d)
{
    if (!d->stmt) return;
    d->failed |= sqlite3_step(d->stmt) != SQLITE_DONE;
    sqlite3_reset(d->stmt);
    d->at = 0;
}

/* ---- what goes in ---- */

static void put_about(struct db *d, const struct session *s)
{
    const char *const about[][2] = {{"session", s->hello.session}, {"device", s->hello.device},
                                    {"driver", s->hello.driver},   {"toolkit", s->hello.toolkit},
                                    {"commit", s->hello.commit},   {"command", s->hello.command},
                                    {"model", s->model.name},      {"workload", s->model.workload}};
    prepare(d, "INSERT INTO about VALUES(?,?)");
    for (size_t i = 0; i < sizeof about / sizeof *about; i++) {
        text(d, about[i][0]);
        text(d, about[i][1]);
        step(d);
    }
}

static void put_cell(void *ctx, const struct table *t, const char *focus, uint32_t row,
                     uint32_t col)
{
    struct db *d = ctx;
    const struct column *k = &t->def->columns[col];
    struct cell c;
    table_cell(t, row, col, &c);
    const struct value *v = &c.value;
    bool known = !c.is_text && value_known(v);
    text(d, t->def->id);
    text(d, focus);
    whole(d, row + 1);
    text(d, k->id);
    text(d, c.is_text ? c.text : "");
    real(d, known, v->v);
    text(d, k->unit);
    text(d, c.is_text ? "ok" : value_state_name(v->state));
    text(d, c.is_text ? "" : v->source);
    real(d, known && v->spread > 0, v->spread);
    real(d, known && v->n > 0, v->n);
    text(d, c.is_text ? "" : v->why);
    step(d);
}

static enum status put_figures(struct db *d, const struct session *s)
{
    static const char *const plain[] = {"generations", "rows",  "sources", "variants", "parity",
                                        "events",      "drops", "costs",   "regime",   "ceilings"};
    const struct cell_sink to = {put_cell, d};
    enum status st = OK;
    prepare(d, "INSERT INTO figures VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
    for (unsigned i = 0; st == OK && i < sizeof plain / sizeof *plain; i++)
        st = report_cells(s, plain[i], NULL, "", &to);
    return st == OK ? report_kernel_cells(s, &to) : st;
}

static void put_experiments(struct db *d, const struct session *s)
{
    prepare(d, "INSERT INTO experiments VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < s->nexperiments; i++) {
        const struct lab_experiment *x = &s->experiments[i];
        const char *const words[] = {x->def.a,        x->def.b,     x->def.control,
                                     x->def.workload, x->def.shape, x->def.hypothesis,
                                     x->def.claim,    x->def.bar};
        whole(d, x->def.experiment);
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) text(d, words[k]);
        real(d, true, x->def.gain);
        text(d, x->closed ? x->verdict.verdict : "open");
        whole(d, x->verdict.firm);
        real(d, x->closed, x->verdict.gain);
        real(d, x->closed, x->verdict.lo);
        real(d, x->closed, x->verdict.hi);
        real(d, x->closed, x->verdict.band);
        text(d, x->verdict.why);
        text(d, x->verdict.sentence);
        step(d);
    }
}

static void put_pairs(struct db *d, const struct lab_experiment *x)
{
    for (uint32_t i = 0; i < x->npairs; i++) {
        const struct msg_pair *p = &x->pairs[i];
        const double v[] = {p->a_us,     p->b_us,     p->a_cold_us, p->b_cold_us,
                            p->a_cycles, p->b_cycles, p->a_mhz,     p->b_mhz};
        whole(d, p->experiment);
        whole(d, p->pair);
        text(d, p->kind);
        whole(d, p->swapped);
        for (size_t k = 0; k < sizeof v / sizeof *v; k++) real(d, v[k] > 0, v[k]);
        text(d, p->dropped);
        step(d);
    }
}

static void put_samples(struct db *d, const struct session *s)
{
    prepare(d, "INSERT INTO pairs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < s->nexperiments; i++) put_pairs(d, &s->experiments[i]);
    prepare(d, "INSERT INTO mechanism VALUES(?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < s->nexperiments; i++)
        for (uint32_t k = 0; k < s->experiments[i].nfigures; k++) {
            const struct msg_mechanism *m = &s->experiments[i].figures[k];
            whole(d, m->experiment);
            text(d, m->name);
            text(d, m->unit);
            text(d, m->source);
            real(d, true, m->a);
            real(d, true, m->b);
            text(d, m->why);
            step(d);
        }
}

static void put_span(struct db *d, const struct session *s, const struct trace_span *t)
{
    const struct row *r = t->row && t->row <= s->nrows ? &s->rows[t->row - 1] : NULL;
    whole(d, t->t_ns);
    whole(d, t->dur_ns);
    text(d, r ? s->kernels[r->def.kernel].def.name : "");
    whole(d, r ? r->def.m : 0);
    whole(d, r ? r->def.n : 0);
    whole(d, r ? r->def.k : 0);
    text(d, r ? r->def.role : "");
    text(d, r ? r->def.phase : "");
    step(d);
}

static void put_spans(struct db *d, const struct session *s)
{
    prepare(d, "INSERT INTO spans VALUES(?,?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < s->ntrace; i++)
        for (uint32_t k = 0; k < s->trace[i].nspans; k++) put_span(d, s, &s->trace[i].spans[k]);
}

static enum status write_sqlite(const struct session *s, struct buf *out)
{
    struct db d = {0};
    sqlite3_int64 size = 0;
    enum status st = OK;
    unsigned char *bytes = NULL;
    if (sqlite3_open(":memory:", &d.db) != SQLITE_OK ||
        sqlite3_exec(d.db, schema, NULL, NULL, NULL) != SQLITE_OK)
        d.failed = true;
    if (!d.failed) {
        put_about(&d, s);
        st = put_figures(&d, s);
        put_experiments(&d, s);
        put_samples(&d, s);
        put_spans(&d, s);
        sqlite3_finalize(d.stmt);
        d.failed |= sqlite3_exec(d.db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK;
        bytes = sqlite3_serialize(d.db, "main", &size, 0);
    }
    if (st == OK && (d.failed || !bytes))
        st = err_set(ERR_FAILED, "the database can't be made: %s", sqlite3_errmsg(d.db));
    if (st == OK) buf_put(out, bytes, (size_t)size);
    sqlite3_free(bytes);
    sqlite3_close(d.db);
    if (st == OK && out->failed) st = err_set(ERR_NOMEM, "out of memory for the report");
    return st;
}

const struct report_ops report_sqlite_ops = {
    .ext = "sqlite",
    .title = "SQLite database, for queries",
    .write = write_sqlite,
};
