/*
 * "best": of each family that was flipped, the variant with the best wall clock, what it won over
 * the one that the family started with and over the next best, what the control said meanwhile, and
 * what limits the kernel that takes most of its time. What a report says first.
 *
 * Invariant: a row is a family, by the index of its first generation; rates, ratios and words are
 * those of the other tables and of the screen. To add a column: a getter and a row in `columns`.
 */
#include <string.h>

#include "session/regime.h"
#include "session/table_priv.h"

/* A rate counts from so many rounds on; where no generation has them, every known rate does. */
static bool settled(const struct value *rate, bool any)
{
    return rate->state == VALUE_OK && (any || rate->n >= RATIO_ROUNDS);
}

static const struct generation *start(const struct table_ctx *x, uint32_t i)
{
    return &x->session->generations[i];
}

static bool same_family(const struct generation *a, const struct generation *b)
{
    return !strcmp(a->def.family, b->def.family);
}

static bool same_variant(const struct generation *a, const struct generation *b)
{
    return a->def.kd == b->def.kd && !strcmp(a->def.variant, b->def.variant);
}

/* Which phase its family works in most. */
static bool in_decode(const struct session *s, const struct generation *g)
{
    uint64_t ns[2] = {0};
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *r = &s->rows[i];
        if (r->def.generation != g->def.generation || r->def.kernel >= s->nkernels) continue;
        if (strcmp(s->kernels[r->def.kernel].def.family, g->def.family)) continue;
        ns[!strcmp(r->def.phase, "decode")] += r->total_ns;
    }
    return ns[1] > ns[0];
}

static struct value rate_of(const struct session *s, const struct generation *g, bool decode)
{
    return decode ? generation_decode(s, g) : generation_prefill(s, g);
}

static struct value ratio_of(const struct session *s, const struct generation *now,
                             const struct generation *before)
{
    return in_decode(s, now) ? generation_decode_ratio(now, before)
                             : generation_prefill_ratio(s, now, before);
}

/* The fastest of g's family, the variant of `but` left out; NULL = none has a rate. */
static const struct generation *fastest(const struct session *s, const struct generation *g,
                                        const struct generation *but)
{
    const struct generation *best = NULL;
    bool decode = in_decode(s, g);
    double most = 0;
    for (int any = 0; any < 2 && !best; any++)
        for (uint32_t i = 0; i < s->ngenerations; i++) {
            const struct generation *o = &s->generations[i];
            if (!same_family(o, g) || o->faulted || (but && same_variant(o, but))) continue;
            struct value v = rate_of(s, o, decode);
            if (!settled(&v, any) || !(v.v > most)) continue;
            most = v.v;
            best = o;
        }
    return best;
}

static const struct generation *first(const struct session *s, const struct generation *g)
{
    for (uint32_t i = 0; i < s->ngenerations; i++)
        if (same_family(&s->generations[i], g)) return &s->generations[i];
    return g;
}

/* What a row is about; kept rows have one. */
static const struct generation *won(const struct table_ctx *x, uint32_t i)
{
    return fastest(x->session, start(x, i), NULL);
}

static const struct generation *next_best(const struct table_ctx *x, uint32_t i)
{
    return fastest(x->session, start(x, i), won(x, i));
}

/* What it is held against: the variant that the session started with; of a family that was flipped
 * later, the generation before that. */
static const struct generation *base(const struct table_ctx *x, uint32_t i)
{
    return start(x, i ? i - 1 : 0);
}

static uint32_t count(const struct table_ctx *x)
{
    return x->session->ngenerations;
}

static bool keep(const struct table_ctx *x, uint32_t i)
{
    const struct generation *g = start(x, i);
    return g->def.variant[0] && first(x->session, g) == g && won(x, i);
}

static void put_variant(struct cell *c, const struct generation *g)
{
    if (g->def.kd)
        cell_text(c, "%s KD %u", g->def.variant, g->def.kd);
    else
        cell_text(c, "%s", g->def.variant);
}

static void get_family(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", won(x, i)->def.family);
}

static void get_variant(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    put_variant(c, won(x, i));
}

static void get_generation(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, won(x, i)->def.generation);
}

static void get_phase(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", in_decode(x->session, won(x, i)) ? "decode" : "prefill");
}

static struct value own_rate(const struct table_ctx *x, uint32_t i)
{
    return rate_of(x->session, won(x, i), in_decode(x->session, won(x, i)));
}

static void get_rate(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, own_rate(x, i));
}

static void put_spread(struct cell *c, struct value v, const char *why)
{
    cell_spread(c, v, value_missing(VALUE_UNAVAILABLE, why));
}

static void get_rate_spread(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    put_spread(c, own_rate(x, i), "one round has no spread");
}

static void get_first(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    if (i)
        cell_text(c, "generation %u", base(x, i)->def.generation);
    else
        put_variant(c, base(x, i));
}

static struct value against(const struct table_ctx *x, uint32_t i, const struct generation *o)
{
    if (!o) return value_missing(VALUE_UNAVAILABLE, "no other variant of the family was timed");
    if (o == won(x, i))
        return value_missing(VALUE_UNAVAILABLE, "it is what the family started with");
    return ratio_of(x->session, won(x, i), o);
}

static void put_word(struct cell *c, struct value v, bool control)
{
    if (v.state == VALUE_OK)
        cell_text(c, "%s", stat_says_words(stat_ratio_says(&v, control)));
    else
        cell_text(c, "%s", v.why ? v.why : value_state_name(v.state));
}

static void get_ratio(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, against(x, i, base(x, i)));
}

static void get_noise(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    put_spread(c, against(x, i, base(x, i)), "its noise isn't known");
}

static void get_word(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    put_word(c, against(x, i, base(x, i)), false);
}

static void get_control(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct generation *g = won(x, i), *o = base(x, i);
    if (o == g || !generation_controls(x->session, g)) {
        cell_text(c, o == g ? "-" : "none: the family has a part in decode too");
        return;
    }
    struct value v = generation_decode_ratio(g, o);
    if (v.state != VALUE_OK || v.spread < 0) {
        put_word(c, v, true);
        return;
    }
    cell_text(c, "decode x%.3f +-%.3f %s", v.v, v.spread,
              stat_says_words(stat_ratio_says(&v, true)));
    for (char *p = c->text; *p; p++)
        if (*p == ',') *p = '.';
}

static void get_next(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct generation *o = next_best(x, i);
    if (o)
        put_variant(c, o);
    else
        cell_text(c, "-");
}

static void get_next_ratio(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, against(x, i, next_best(x, i)));
}

static void get_next_noise(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    put_spread(c, against(x, i, next_best(x, i)), "its noise isn't known");
}

static void get_next_word(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct generation *o = next_best(x, i);
    if (o)
        put_word(c, against(x, i, o), false);
    else
        cell_text(c, "-");
}

/* Of the kernel that takes most of a generation's time; "" = none of the family ran in it. */
static const char *class_of(const struct session *s, const struct generation *g)
{
    uint32_t row = session_costliest(s, g);
    return row < s->nrows && s->rows[row].def.kernel < s->nkernels
               ? s->kernels[s->rows[row].def.kernel].def.cls
               : "";
}

static void get_class(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const char *now = class_of(x->session, won(x, i)), *was = class_of(x->session, base(x, i));
    if (*was && strcmp(now, was))
        cell_text(c, "%s (was %s)", now, was);
    else
        cell_text(c, "%s", now);
}

static void get_limit(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct session *s = x->session;
    uint32_t row = session_costliest(s, won(x, i));
    struct regime r;
    if (row >= s->nrows) {
        cell_text(c, "no launch of it was timed");
        return;
    }
    row_regime(s, &s->rows[row], &r);
    cell_text(c, "%s", r.decided);
}

static const struct column columns[] = {
    {"family", "family", "", "kernels that do the same work", 10, 1, 0, 0, 0, 0, get_family},
    {"variant", "best", "", "the variant with the best wall clock, and its K-tile depth", 18, 1, 0,
     0, 0, 0, get_variant},
    {"generation", "gen", "", "the generation in which it ran", 3, 2, 0, 1, 0, 0, get_generation},
    {"phase", "phase", "", "the phase that the family works in most", 7, 2, 0, 0, 0, 0, get_phase},
    {"tok_s", "tok/s", "tok/s", "tokens a second of that phase, median of timed rounds", 9, 1, 1, 1,
     1, 0, get_rate},
    {"tok_iqr", "+-", "tok/s", "interquartile range of it", 6, 3, 1, 1, 1, 0, get_rate_spread},
    {"first", "against", "", "what the family ran first", 18, 2, 0, 0, 0, 0, get_first},
    {"ratio", "x", "", "its rate by that one's", 5, 1, 3, 1, 0, 0, get_ratio},
    {"noise", "noise", "", "half the sum of both relative spreads, or how far the control left 1",
     5, 2, 3, 1, 0, 0, get_noise},
    {"verdict", "verdict", "", "whether the ratio passes its noise", 12, 1, 0, 0, 0, 0, get_word},
    {"control", "control", "", "the phase in which nothing was flipped, over the same time", 30, 2,
     0, 0, 0, 0, get_control},
    {"next", "next best", "", "the fastest of its other variants", 18, 3, 0, 0, 0, 0, get_next},
    {"next_ratio", "x next", "", "its rate by the next best's", 6, 3, 3, 1, 0, 0, get_next_ratio},
    {"next_noise", "noise", "", "the same of that ratio", 5, 4, 3, 1, 0, 0, get_next_noise},
    {"next_verdict", "verdict", "", "whether that ratio passes its noise", 12, 3, 0, 0, 0, 0,
     get_next_word},
    {"class", "numbers", "",
     "numeric class: another one rounds otherwise, and may make other tokens", 14, 2, 0, 0, 0, 0,
     get_class},
    {"limit", "limited by", "", "what sets the time of its costliest kernel", 30, 4, 0, 0, 0, 1,
     get_limit},
};

const struct table_def table_best = {
    .id = "best",
    .title = "best variant of each flipped family",
    .empty = "no variant has been timed yet",
    .columns = columns,
    .ncolumns = NCOLUMNS(columns),
    .count = count,
    .keep = keep,
};
