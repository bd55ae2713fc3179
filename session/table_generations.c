/* "generations", "variants" and "parity": what was flipped to, what could be, and what was checked.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/table_priv.h"

/* ---- generations ---- */

static const struct generation *gen(const struct table_ctx *x, uint32_t i)
{
    return &x->session->generations[i];
}

static uint32_t count_generations(const struct table_ctx *x)
{
    return x->session->ngenerations;
}

static void get_gen(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, gen(x, i)->def.generation);
}

static void get_gen_family(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", gen(x, i)->def.family);
}

static void get_gen_variant(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", gen(x, i)->def.variant);
    if (gen(x, i)->faulted) c->mark = MARK_BAD;
}

static void kd_cell(struct cell *c, uint32_t kd)
{
    if (kd)
        cell_count(c, kd);
    else
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "this family has no K-tile depth"));
}

static void get_gen_kd(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    kd_cell(c, gen(x, i)->def.kd);
}

static void get_gen_reason(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s%s", gen(x, i)->def.reason, gen(x, i)->faulted ? ", faulted" : "");
}

static void get_gen_parity(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const char *parity = gen(x, i)->def.parity;
    cell_text(c, "%s", parity[0] ? parity : "unchecked");
    if (strcmp(parity, "ok") == 0)
        c->mark = MARK_GOOD;
    else
        c->mark = strcmp(parity, "failed") == 0 ? MARK_BAD : MARK_WARN;
}

static void get_prefill(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, generation_prefill(x->session, gen(x, i)));
}

static void get_decode(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, generation_decode(x->session, gen(x, i)));
}

static void spread_cell(struct cell *c, struct value v)
{
    cell_spread(c, v, value_missing(VALUE_PENDING, "one round has no spread"));
}

static void get_prefill_spread(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    spread_cell(c, generation_prefill(x->session, gen(x, i)));
}

static void get_decode_spread(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    spread_cell(c, generation_decode(x->session, gen(x, i)));
}

static struct value ratio(const struct table_ctx *x, uint32_t i, bool decode)
{
    if (i == 0) return value_missing(VALUE_UNAVAILABLE, "the first generation has none before it");
    const struct generation *now = gen(x, i), *before = gen(x, i - 1);
    return decode ? generation_decode_ratio(now, before)
                  : generation_prefill_ratio(x->session, now, before);
}

/* Coloured only when the change is larger than its noise. */
static void ratio_cell(struct cell *c, struct value v)
{
    cell_value(c, v);
    if (v.state != VALUE_OK || v.spread < 0) return;
    if (v.v > 1 + v.spread) c->mark = MARK_GOOD;
    if (v.v < 1 - v.spread) c->mark = MARK_BAD;
}

static void get_prefill_ratio(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    ratio_cell(c, ratio(x, i, false));
}

static void get_decode_ratio(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    ratio_cell(c, ratio(x, i, true));
}

static void get_prefill_noise(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    spread_cell(c, ratio(x, i, false));
}

static void get_decode_noise(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    spread_cell(c, ratio(x, i, true));
}

static void get_timed(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, gen(x, i)->timed_rounds);
}

static void get_counted(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, gen(x, i)->counted_rounds);
}

static void get_timed_in(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct generation *g = gen(x, i);
    const char *place = generation_timed_in(g);

    if (!g->timed_rounds)
        cell_value(c, value_missing(VALUE_PENDING, "no round has been timed yet"));
    else if (!place[0])
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "where it was timed was not recorded"));
    else
        cell_text(c, "%s", place);
    if (strcmp(g->timed_in, "here") == 0 || strcmp(g->timed_in, "mixed") == 0) c->mark = MARK_WARN;
}

/* ---- NVML ---- */

static struct value no_nvml(void)
{
    return value_missing(VALUE_UNAVAILABLE, "NVML gave no reading while it ran");
}

static void get_mhz(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, stat_median_value(&gen(x, i)->sm_mhz, "nvml", no_nvml()));
}

static void get_watts(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, stat_median_value(&gen(x, i)->watts, "nvml", no_nvml()));
}

static void get_celsius(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct series *t = &gen(x, i)->celsius;
    cell_value(c, t->n ? value_ok(t->max, "nvml") : no_nvml());
}

static void get_throttle(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct generation *g = gen(x, i);
    if (!g->sm_mhz.n) {
        cell_value(c, no_nvml());
    } else if (!g->throttled) {
        cell_text(c, "none");
    } else {
        cell_text(c, "%s (%u of %llu)", g->throttle, g->throttled, (unsigned long long)g->sm_mhz.n);
        c->mark = MARK_WARN;
    }
}

static const struct column generation_columns[] = {
    {"generation", "gen", "", "counts up with each flip and restart", 3, 1, 0, 1, 0, 0, get_gen},
    {"family", "family", "", "family whose variant it selects", 9, 4, 0, 0, 0, 1, get_gen_family},
    {"variant", "variant", "", "variant that runs", 14, 1, 0, 0, 0, 0, get_gen_variant},
    {"kd", "KD", "", "K-tile depth in 32-value chunks", 2, 1, 0, 1, 0, 0, get_gen_kd},
    {"reason", "why", "", "start, flip or restart", 8, 5, 0, 0, 0, 0, get_gen_reason},
    {"parity", "parity", "", "check against the reference before the flip", 9, 3, 0, 0, 0, 0,
     get_gen_parity},
    {"prefill_tok_s", "prefill/s", "tok/s", "prefill of timed rounds, median", 9, 1, 1, 1, 1, 0,
     get_prefill},
    {"prefill_iqr", "+-", "tok/s", "interquartile range of it", 6, 3, 1, 1, 1, 0,
     get_prefill_spread},
    {"prefill_ratio", "x", "", "prefill by the generation before", 5, 1, 3, 1, 0, 0,
     get_prefill_ratio},
    {"prefill_noise", "noise", "",
     "half the sum of both relative spreads, or how far the control left 1", 5, 2, 3, 1, 0, 0,
     get_prefill_noise},
    {"decode_tok_s", "decode/s", "tok/s", "decode of timed rounds, median", 8, 1, 1, 1, 1, 0,
     get_decode},
    {"decode_iqr", "+-", "tok/s", "interquartile range of it", 6, 3, 1, 1, 1, 0, get_decode_spread},
    {"decode_ratio", "x", "", "decode by the generation before: the control", 5, 2, 3, 1, 0, 0,
     get_decode_ratio},
    {"decode_noise", "noise", "", "half the sum of both relative spreads", 5, 3, 3, 1, 0, 0,
     get_decode_noise},
    {"timed", "timed", "", "timed rounds; the first warms up and enters no figure", 5, 4, 0, 1, 0,
     0, get_timed},
    {"counted", "counted", "", "rounds with a counter on: in no figure here", 7, 5, 0, 1, 0, 0,
     get_counted},
    {"timed_in", "timed in", "",
     "own process: one that never opened CUPTI; with CUPTI: the one that counts, where each launch "
     "costs about 0.4 us more; clean: no CUPTI at all",
     11, 5, 0, 0, 0, 0, get_timed_in},
    {"sm_mhz", "MHz", "MHz", "SM clock while it ran, median of NVML's readings", 5, 6, 0, 1, 0, 0,
     get_mhz},
    {"watts", "W", "W", "power while it ran, median of NVML's readings", 4, 6, 0, 1, 0, 0,
     get_watts},
    {"celsius", "C", "C", "temperature while it ran, the highest", 3, 7, 0, 1, 0, 0, get_celsius},
    {"throttle", "throttled by", "", "why the clock was held down, and in how many readings", 14, 7,
     0, 0, 0, 0, get_throttle},
};

const struct table_def table_generations = {
    .id = "generations",
    .title = "wall clock by generation",
    .empty = "no generation has begun yet",
    .columns = generation_columns,
    .ncolumns = NCOLUMNS(generation_columns),
    .count = count_generations,
};

/* ---- variants ---- */

static const struct msg_variant_def *variant(const struct table_ctx *x, uint32_t i)
{
    return &x->session->variants[i];
}

static uint32_t count_variants(const struct table_ctx *x)
{
    return x->session->nvariants;
}

static void get_variant_family(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", variant(x, i)->family);
}

static void get_variant_name(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", variant(x, i)->variant);
}

static void get_variant_kd(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    kd_cell(c, variant(x, i)->kd);
}

static void get_variant_state(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_variant_def *v = variant(x, i);
    const char *name = "";
    uint32_t kd = 0;

    if (x->session->variant_faulted[i]) {
        cell_text(c, "faulted");
        c->mark = MARK_BAD;
    } else if (!v->ok) {
        cell_text(c, "can't run: %s", v->why);
        c->mark = MARK_DIM;
    } else if (session_selected(x->session, v->family, &name, &kd) && kd == v->kd &&
               strcmp(name, v->variant) == 0) {
        cell_text(c, "selected");
        c->mark = MARK_GOOD;
    } else {
        cell_text(c, "ready");
    }
}

static void get_variant_note(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", variant(x, i)->note);
}

static const struct column variant_columns[] = {
    {"family", "family", "", "", 10, 1, 0, 0, 0, 0, get_variant_family},
    {"variant", "variant", "", "", 14, 1, 0, 0, 0, 0, get_variant_name},
    {"kd", "KD", "", "K-tile depth in 32-value chunks", 2, 1, 0, 1, 0, 0, get_variant_kd},
    {"state", "state", "", "whether it runs, could run, or why not", 14, 1, 0, 0, 0, 0,
     get_variant_state},
    {"note", "idea", "", "its one idea", 30, 2, 0, 0, 0, 1, get_variant_note},
};

const struct table_def table_variants = {
    .id = "variants",
    .title = "variants",
    .empty = "this engine has no kernel variants to flip",
    .columns = variant_columns,
    .ncolumns = NCOLUMNS(variant_columns),
    .count = count_variants,
};

/* ---- parity ---- */

static const struct msg_parity *check(const struct table_ctx *x, uint32_t i)
{
    return &x->session->parities[i];
}

static uint32_t count_parities(const struct table_ctx *x)
{
    return x->session->nparities;
}

static void get_check_family(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", check(x, i)->family);
}

static void get_check_variant(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", check(x, i)->variant);
}

static void get_check_kd(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    kd_cell(c, check(x, i)->kd);
}

static void get_check_shape(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%ux%ux%u", check(x, i)->m, check(x, i)->n, check(x, i)->k);
}

static void get_check_state(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", check(x, i)->state);
    c->mark = strcmp(check(x, i)->state, "ok") == 0 ? MARK_GOOD : MARK_BAD;
}

/* An error measure exists only when outputs were compared. */
static void error_cell(struct cell *c, const struct msg_parity *p, double v)
{
    bool compared = strcmp(p->state, "ok") == 0 || strcmp(p->state, "failed") == 0;
    if (!compared)
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "no output was compared"));
    else if (isnan(v))
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "this check does not give it"));
    else
        cell_text(c, "%.2e", v);
}

static void get_check_nmse(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    error_cell(c, check(x, i), check(x, i)->nmse);
}

static void get_check_worst(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    error_cell(c, check(x, i), check(x, i)->worst);
}

static void get_check_text(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", check(x, i)->text);
}

static const struct column parity_columns[] = {
    {"family", "family", "", "", 10, 2, 0, 0, 0, 0, get_check_family},
    {"variant", "variant", "", "", 14, 1, 0, 0, 0, 0, get_check_variant},
    {"kd", "KD", "", "K-tile depth in 32-value chunks", 2, 1, 0, 1, 0, 0, get_check_kd},
    {"shape", "m x n x k", "", "output rows x tokens x inner length", 15, 1, 0, 0, 0, 0,
     get_check_shape},
    {"state", "state", "", "ok, failed, refused, fault, hang", 11, 1, 0, 0, 0, 0, get_check_state},
    {"nmse", "NMSE", "", "mean square error by the reference's mean square", 8, 1, 0, 1, 0, 0,
     get_check_nmse},
    {"worst", "worst", "", "worst element by the reference's root mean square", 8, 2, 0, 1, 0, 0,
     get_check_worst},
    {"text", "detail", "", "", 20, 3, 0, 0, 0, 1, get_check_text},
};

const struct table_def table_parity = {
    .id = "parity",
    .title = "parity against the reference",
    .empty = "no variant has been checked yet",
    .columns = parity_columns,
    .ncolumns = NCOLUMNS(parity_columns),
    .count = count_parities,
};
