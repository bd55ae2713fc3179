/* See lab_ledger.h. To keep another field: an add and a get, in entry_json() and take_entry(). */
#include "session/lab_ledger.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "session/report_fmt.h"

/* ---- writing ---- */

static void add_text(cJSON *o, const char *key, const char *text)
{
    char clean[512];
    snprintf(clean, sizeof clean, "%s", text);
    fmt_utf8(clean);
    cJSON_AddStringToObject(o, key, clean);
}

static void add_number(cJSON *o, const char *key, double v)
{
    if (isfinite(v))
        cJSON_AddNumberToObject(o, key, v);
    else
        cJSON_AddNullToObject(o, key);
}

static void add_hash(cJSON *o, const char *key, uint64_t v)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, v);
    if (v)
        cJSON_AddStringToObject(o, key, text);
    else
        cJSON_AddNullToObject(o, key);
}

static void add_about(cJSON *o, const struct msg_hello *h)
{
    add_text(o, "device", h->device);
    add_text(o, "driver", h->driver);
    add_text(o, "toolkit", h->toolkit);
    add_text(o, "commit", h->commit);
    add_text(o, "command", h->command);
}

static void add_definition(cJSON *o, const struct msg_experiment *d)
{
    cJSON_AddNumberToObject(o, "experiment", d->experiment);
    add_text(o, "a", d->a);
    add_text(o, "b", d->b);
    add_text(o, "control", d->control);
    add_text(o, "family", d->family);
    add_hash(o, "code_a", d->code_a);
    add_hash(o, "code_b", d->code_b);
    add_text(o, "workload", d->workload);
    add_text(o, "shape", d->shape);
    add_text(o, "metric", d->metric);
    add_text(o, "hypothesis", d->hypothesis);
    add_text(o, "claim", d->claim);
    add_text(o, "bar", d->bar);
    add_number(o, "bar_gain", d->gain);
    cJSON_AddNumberToObject(o, "pairs_wanted", d->pairs);
    add_number(o, "precision", d->precision);
    add_number(o, "seconds", d->seconds);
    cJSON_AddNumberToObject(o, "seed", (double)d->seed);
    add_text(o, "retry", d->retry);
}

static void add_verdict(cJSON *o, const struct msg_verdict *v)
{
    add_text(o, "verdict", v->verdict);
    cJSON_AddBoolToObject(o, "firm", v->firm);
    add_number(o, "gain", v->gain);
    add_number(o, "lo", v->lo);
    add_number(o, "hi", v->hi);
    add_number(o, "noise", v->band);
    add_number(o, "detectable", v->detectable > 0 ? v->detectable : (double)NAN);
    cJSON_AddNumberToObject(o, "pairs", v->pairs);
    cJSON_AddNumberToObject(o, "aa_pairs", v->aa);
    cJSON_AddNumberToObject(o, "dropped", v->dropped);
    cJSON_AddNumberToObject(o, "more", v->more);
    add_text(o, "why", v->why);
    add_text(o, "sentence", v->sentence);
}

static void add_interval(cJSON *o, const char *key, const struct lab_experiment *x,
                         enum lab_series s)
{
    struct lab_interval i;
    if (lab_series_interval(x, s, &i) != OK || i.n == 0) return;
    cJSON *v = cJSON_AddObjectToObject(o, key);
    add_number(v, "gain", lab_gain(i.est));
    add_number(v, "lo", i.known ? lab_gain(i.lo) : (double)NAN);
    add_number(v, "hi", i.known ? lab_gain(i.hi) : (double)NAN);
    cJSON_AddNumberToObject(v, "pairs", i.n);
}

static void add_gates(cJSON *o, const struct lab_experiment *x)
{
    cJSON *list = cJSON_AddArrayToObject(o, "gates");
    for (uint32_t i = 0; i < x->ngates; i++) {
        cJSON *g = cJSON_CreateObject();
        add_text(g, "gate", x->gates[i].gate);
        add_text(g, "state", x->gates[i].state);
        add_text(g, "text", x->gates[i].text);
        cJSON_AddItemToArray(list, g);
    }
}

static double known(double v)
{
    return v > 0 ? v : (double)NAN;
}

static void add_samples(cJSON *o, const struct lab_experiment *x)
{
    cJSON *list = cJSON_AddArrayToObject(o, "samples");
    for (uint32_t i = 0; i < x->npairs; i++) {
        const struct msg_pair *p = &x->pairs[i];
        cJSON *s = cJSON_CreateObject();
        cJSON_AddNumberToObject(s, "pair", p->pair);
        add_text(s, "kind", p->kind);
        cJSON_AddBoolToObject(s, "swapped", p->swapped);
        add_number(s, "a_us", known(p->a_us));
        add_number(s, "b_us", known(p->b_us));
        add_number(s, "a_cold_us", known(p->a_cold_us));
        add_number(s, "b_cold_us", known(p->b_cold_us));
        add_number(s, "a_cycles", known(p->a_cycles));
        add_number(s, "b_cycles", known(p->b_cycles));
        add_number(s, "a_also_us", known(p->a_also_us));
        add_number(s, "b_also_us", known(p->b_also_us));
        add_number(s, "a_mhz", known(p->a_mhz));
        add_number(s, "b_mhz", known(p->b_mhz));
        add_number(s, "power_mw", known(p->power_mw));
        add_text(s, "dropped", p->dropped);
        cJSON_AddItemToArray(list, s);
    }
    list = cJSON_AddArrayToObject(o, "mechanism");
    for (uint32_t i = 0; i < x->nfigures; i++) {
        const struct msg_mechanism *m = &x->figures[i];
        cJSON *s = cJSON_CreateObject();
        add_text(s, "name", m->name);
        add_text(s, "unit", m->unit);
        add_text(s, "source", m->source);
        add_number(s, "a", m->a);
        add_number(s, "b", m->b);
        add_text(s, "why", m->why);
        cJSON_AddItemToArray(list, s);
    }
}

static cJSON *entry_json(const char *recording, const struct msg_hello *hello,
                         const struct lab_experiment *x, bool samples)
{
    char time[40];
    cJSON *o = cJSON_CreateObject();
    add_text(o, "session", hello->session);
    add_text(o, "state", x->closed ? "closed" : "open");
    fmt_time(x->def.wall_ns, time, sizeof time);
    add_text(o, "time", time);
    add_about(o, hello);
    add_definition(o, &x->def);
    if (x->closed) add_verdict(o, &x->verdict);
    add_interval(o, "un_warmed", x, LAB_COLD);
    add_interval(o, "cycles", x, LAB_CYCLES);
    add_interval(o, "other_phase", x, LAB_ALSO);
    add_gates(o, x);
    if (samples) add_samples(o, x);
    add_text(o, "recording", recording);
    return o;
}

char *ledger_json(const char *recording, const struct msg_hello *hello,
                  const struct lab_experiment *x, bool samples, bool pretty)
{
    cJSON *o = entry_json(recording, hello, x, samples);
    char *text = pretty ? cJSON_Print(o) : cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    return text;
}

/* The stream's buffer is larger than a line, so that closing it is the one write. */
static enum status append_line(const char *path, const char *text)
{
    enum status st = OK;
    size_t n = strlen(text);
    char *room = malloc(n + 4096);
    FILE *f = fopen(path, "ae");
    if (!room)
        st = err_set(ERR_NOMEM, "out of memory for a line of the ledger");
    else if (!f)
        st = err_set(ERR_IO, "%s: the ledger can't be written: %s", path, strerror(errno));
    if (st == OK) {
        setvbuf(f, room, _IOFBF, n + 4096);
        if (fwrite(text, 1, n, f) != n || fputc('\n', f) == EOF) st = ERR_IO;
    }
    if (f && fclose(f) != 0 && st == OK) st = ERR_IO;
    if (st == ERR_IO && f)
        err_set(st, "%s: the ledger's line is not whole: %s", path, strerror(errno));
    free(room);
    return st;
}

enum status ledger_append(const char *path, const char *recording, const struct msg_hello *hello,
                          const struct lab_experiment *x)
{
    char *text = ledger_json(recording, hello, x, false, false);
    if (!text) return err_set(ERR_NOMEM, "out of memory for a line of the ledger");
    enum status st = append_line(path, text);
    cJSON_free(text);
    return st;
}

enum status ledger_close_entry(const char *path, const struct ledger_entry *e, const char *why)
{
    struct lab_experiment x = {.def = e->def, .closed = true};
    struct msg_hello h = {0};
    struct lab_result none = {.verdict = LAB_INVALID};
    snprintf(none.why, sizeof none.why, "%s", why);
    lab_fill_verdict(&x, &none, &x.verdict);
    snprintf(h.session, sizeof h.session, "%s", e->session);
    snprintf(h.device, sizeof h.device, "%s", e->device);
    snprintf(h.driver, sizeof h.driver, "%s", e->driver);
    snprintf(h.toolkit, sizeof h.toolkit, "%s", e->toolkit);
    snprintf(h.commit, sizeof h.commit, "%s", e->commit);
    snprintf(h.command, sizeof h.command, "%s", e->command);
    return ledger_append(path, e->recording, &h, &x);
}

/* ---- reading ---- */

static uint32_t get_count(const cJSON *o, const char *key)
{
    double v = json_number(o, key);
    return v >= 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
}

static uint64_t get_hash(const cJSON *o, const char *key)
{
    char text[20];
    json_line(o, key, text, sizeof text);
    return strtoull(text, NULL, 16);
}

#define TEXT(o, key, field) json_line(o, key, field, sizeof(field))

static void take_definition(const cJSON *o, struct msg_experiment *d)
{
    d->experiment = get_count(o, "experiment");
    TEXT(o, "a", d->a);
    TEXT(o, "b", d->b);
    TEXT(o, "control", d->control);
    TEXT(o, "family", d->family);
    d->code_a = get_hash(o, "code_a");
    d->code_b = get_hash(o, "code_b");
    TEXT(o, "workload", d->workload);
    TEXT(o, "shape", d->shape);
    TEXT(o, "metric", d->metric);
    TEXT(o, "hypothesis", d->hypothesis);
    TEXT(o, "claim", d->claim);
    TEXT(o, "bar", d->bar);
    d->gain = json_number(o, "bar_gain");
    d->pairs = get_count(o, "pairs_wanted");
    double p = json_number(o, "precision"), s = json_number(o, "seconds");
    d->precision = p > 0 ? p : 0;
    d->seconds = s > 0 ? s : 0;
    double seed = json_number(o, "seed");
    d->seed = seed > 0 && seed < 9e15 ? (uint64_t)seed : 0;
    TEXT(o, "retry", d->retry);
}

static void take_verdict(const cJSON *o, struct msg_verdict *v)
{
    TEXT(o, "verdict", v->verdict);
    v->firm = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "firm"));
    v->gain = json_number(o, "gain");
    v->lo = json_number(o, "lo");
    v->hi = json_number(o, "hi");
    v->band = json_number(o, "noise");
    v->detectable = json_number(o, "detectable");
    v->pairs = get_count(o, "pairs");
    v->aa = get_count(o, "aa_pairs");
    v->dropped = get_count(o, "dropped");
    v->more = get_count(o, "more");
    TEXT(o, "why", v->why);
    TEXT(o, "sentence", v->sentence);
}

static void take_gates(const cJSON *o, char *out, size_t size)
{
    const cJSON *g;
    size_t at = 0;
    out[0] = '\0';
    cJSON_ArrayForEach(g, cJSON_GetObjectItemCaseSensitive(o, "gates"))
    {
        char gate[32], state[32];
        TEXT(g, "gate", gate);
        TEXT(g, "state", state);
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s %s", at ? ", " : "", gate, state);
    }
}

static bool take_entry(const cJSON *o, struct ledger_entry *e)
{
    memset(e, 0, sizeof *e);
    TEXT(o, "session", e->session);
    TEXT(o, "state", e->state);
    TEXT(o, "time", e->time);
    TEXT(o, "device", e->device);
    TEXT(o, "driver", e->driver);
    TEXT(o, "toolkit", e->toolkit);
    TEXT(o, "commit", e->commit);
    TEXT(o, "command", e->command);
    TEXT(o, "recording", e->recording);
    take_definition(o, &e->def);
    take_verdict(o, &e->verdict);
    take_gates(o, e->gates, sizeof e->gates);
    return e->session[0] && e->def.a[0] && e->def.b[0];
}

static struct ledger_entry *find(struct ledger *l, const struct ledger_entry *e)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (!strcmp(l->entries[i].session, e->session) &&
            l->entries[i].def.experiment == e->def.experiment)
            return &l->entries[i];
    return NULL;
}

static enum status add_entry(struct ledger *l, const struct ledger_entry *e)
{
    struct ledger_entry *old = find(l, e);
    if (old) {
        *old = *e;
        return OK;
    }
    if (l->n == LEDGER_MAX) return err_set(ERR_LIMIT, "the ledger has over %d entries", LEDGER_MAX);
    if (l->n % 64 == 0) {
        struct ledger_entry *p = realloc(l->entries, (l->n + 64) * sizeof *p);
        if (!p) return err_set(ERR_NOMEM, "out of memory for the ledger");
        l->entries = p;
    }
    l->entries[l->n++] = *e;
    return OK;
}

enum status ledger_read(const char *path, struct ledger *out)
{
    struct ledger_entry e;
    enum status st = OK;
    char *line;
    *out = (struct ledger){0};
    FILE *f = fopen(path, "re");
    if (!f && errno == ENOENT) return OK;
    if (!f) return err_set(ERR_IO, "%s: the ledger can't be read: %s", path, strerror(errno));
    line = malloc(LEDGER_LINE_MAX);
    if (!line) st = err_set(ERR_NOMEM, "out of memory for the ledger");
    while (st == OK && fgets(line, LEDGER_LINE_MAX, f)) {
        cJSON *o = cJSON_Parse(line);
        if (cJSON_IsObject(o) && take_entry(o, &e))
            st = add_entry(out, &e);
        else
            out->damaged++;
        cJSON_Delete(o);
    }
    free(line);
    fclose(f);
    if (st != OK) ledger_free(out);
    return st;
}

void ledger_free(struct ledger *l)
{
    free(l->entries);
    *l = (struct ledger){0};
}

bool ledger_retry(const char *retry, unsigned i, char *out, size_t size)
{
    for (; i; i--) {
        retry = strchr(retry, ';');
        if (!retry) return false;
        retry++;
    }
    while (isspace((unsigned char)*retry)) retry++;
    size_t n = strcspn(retry, ";");
    while (n && isspace((unsigned char)retry[n - 1])) n--;
    snprintf(out, size, "%.*s", (int)n, retry);
    return out[0] != '\0';
}
