/*
 * The fold's part for what a run gives: generations, rounds, times, exact figures, stalls, text.
 *
 * Invariants: only timed rounds enter the statistics of tokens/s, and not the first one after a
 * flip, which warms up; times of one row come from one source only, the best that was seen.
 */
#include <stdio.h>
#include <string.h>

#include "session/model_priv.h"

enum status fold_generation(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_generation *d = &m->generation;
    struct generation *g = fold_find_generation(s, d->generation);
    const struct generation *last = session_current(s);

    s->ended = false;
    if (g) {
        g->def = *d; /* its parity came later */
        return OK;
    }
    if (d->generation == 0 || (last && d->generation < last->def.generation))
        return fold_garbled(s);
    if (s->ngenerations == MAX_GENERATIONS) {
        s->overflowed++;
        return OK;
    }
    enum status st = fold_grow(&s->generations, s->ngenerations, sizeof *s->generations);
    if (st != OK) return st;
    g = &s->generations[s->ngenerations++];
    memset(g, 0, sizeof *g);
    g->def = *d;
    g->t_ns = f->t_ns;
    g->instance = (uint32_t)s->hello.instance;
    char kd[24] = "";
    if (d->kd) snprintf(kd, sizeof kd, " KD %u", d->kd);
    fold_event(s, f->t_ns, strcmp(d->reason, "flip") == 0 ? "flip" : "generation",
               strcmp(d->parity, "failed") == 0, "generation %u: %s %s%s (%s), parity %s%s%s",
               d->generation, d->family, d->variant[0] ? d->variant : "-", kd, d->reason,
               d->parity[0] ? d->parity : "unchecked", d->parity_text[0] ? ": " : "",
               d->parity_text);
    return OK;
}

static void spark_add(struct session *s, double prefill, double decode)
{
    if (s->nspark == MAX_SPARK) {
        memmove(s->spark_prefill, s->spark_prefill + 1, (MAX_SPARK - 1) * sizeof(float));
        memmove(s->spark_decode, s->spark_decode + 1, (MAX_SPARK - 1) * sizeof(float));
        s->nspark--;
    }
    s->spark_prefill[s->nspark] = (float)prefill;
    s->spark_decode[s->nspark++] = (float)decode;
}

/* Tokens a second; 0 tokens or no time means that the round had no such part. */
static double rate(uint32_t tokens, uint64_t ns)
{
    return tokens && ns ? tokens * 1e9 / (double)ns : 0;
}

enum status fold_round(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_round *d = &m->round;
    struct generation *g = fold_find_generation(s, d->generation);
    double prefill = rate(d->prefill_tokens, d->prefill_ns);
    double decode = rate(d->decode_tokens, d->decode_ns);

    (void)f;
    if (!g) return fold_garbled(s);
    s->ended = false;
    s->last_round = *d;
    if (d->counted) {
        g->counted_rounds++;
        if (prefill > 0) stat_add(&g->prefill_counted, prefill);
        if (decode > 0) stat_add(&g->decode_counted, decode);
        return OK;
    }
    if (g->timed_rounds == 0)
        memcpy(g->timed_in, d->timed_in, sizeof g->timed_in);
    else if (strcmp(g->timed_in, d->timed_in) != 0)
        snprintf(g->timed_in, sizeof g->timed_in, "mixed");
    if (g->timed_rounds++ == 0) return OK;
    if (prefill > 0) stat_add(&g->prefill, prefill);
    if (decode > 0) stat_add(&g->decode, decode);
    spark_add(s, prefill, decode);
    return OK;
}

/* Which source of times is to be preferred: spans of the GPU, its events, a clock on the host. */
static int time_rank(const char *source)
{
    if (strcmp(source, "activity") == 0) return 3;
    if (strcmp(source, "events") == 0) return 2;
    return source[0] ? 1 : 0;
}

/* Forgets the times of a lesser source; the calls it counted go with them. */
static void restart_times(struct session *s, struct row *r, const char *source)
{
    struct generation *g = fold_find_generation(s, r->def.generation);
    if (g) g->rows_ns -= r->total_ns;
    r->calls = r->total_ns = r->min_ns = r->max_ns = 0;
    r->rounds = 0;
    memset(&r->us, 0, sizeof r->us);
    memset(r->hist, 0, sizeof r->hist);
    snprintf(r->time_source, sizeof r->time_source, "%s", source);
}

enum status fold_span_agg(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_span_agg *d = &m->span_agg;
    struct row *r = fold_row(s, d->row);
    struct rd rd = rd_make(d->hist.data, d->hist.len);
    uint8_t bin;
    uint32_t count;

    (void)f;
    /* Over a year of nanoseconds in a frame is noise; the bound keeps the sums from wrapping. */
    if (!r || d->calls == 0 || d->sum_ns > 1ull << 55 || d->min_ns > d->max_ns)
        return fold_garbled(s);
    if (strcmp(r->time_source, d->source) != 0) {
        if (time_rank(d->source) <= time_rank(r->time_source)) return OK;
        restart_times(s, r, d->source);
    }
    struct generation *g = fold_find_generation(s, r->def.generation);
    if (r->total_ns > 1ull << 62 || (g && g->rows_ns > 1ull << 62)) {
        s->overflowed++;
        return OK;
    }
    if (g) g->rows_ns += d->sum_ns;
    if (r->calls == 0 || d->min_ns < r->min_ns) r->min_ns = d->min_ns;
    if (d->max_ns > r->max_ns) r->max_ns = d->max_ns;
    r->calls += d->calls;
    r->total_ns += d->sum_ns;
    r->rounds++;
    r->t_ns = s->t_ns;
    stat_add(&r->us, (double)d->sum_ns / 1e3 / d->calls);
    while (unpack_hist(&rd, &bin, &count))
        r->hist[bin] = r->hist[bin] > UINT32_MAX - count ? UINT32_MAX : r->hist[bin] + count;
    return OK;
}

enum status fold_counter(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_counter *d = &m->counter;
    struct row *r = fold_row(s, d->row);
    int metric = fold_find_metric(s, d->metric);
    struct row_metric *rm;

    (void)f;
    if (!r || metric < 0 || d->state > VALUE_FAULT) return fold_garbled(s);
    enum status st = fold_row_metric(s, r, (uint16_t)metric, &rm);
    if (st != OK || !rm) return st;
    rm->has_exact = true;
    rm->exact_t_ns = s->t_ns;
    memcpy(rm->exact_source, d->source, sizeof rm->exact_source);
    memcpy(rm->exact_why, d->why, sizeof rm->exact_why);
    /* The texts' addresses may change with the array: row_metric_exact() puts them in. */
    rm->exact = value_spread(d->v, d->spread, d->n, NULL);
    rm->exact.state = (enum value_state)d->state;
    return OK;
}

static enum status find_stalls(struct session *s, uint32_t kernel, uint32_t generation,
                               struct kernel_stalls **out)
{
    *out = (struct kernel_stalls *)session_stalls(s, kernel, generation);
    if (*out) return OK;
    if (s->nstalls == MAX_STALLS) {
        s->overflowed++;
        return OK;
    }
    enum status st = fold_grow(&s->stalls, s->nstalls, sizeof *s->stalls);
    if (st != OK) return st;
    *out = &s->stalls[s->nstalls++];
    memset(*out, 0, sizeof **out);
    (*out)->kernel = kernel;
    (*out)->generation = generation;
    return OK;
}

static void add_stall(struct session *s, struct kernel_stalls *ks, const struct stall_item *it)
{
    uint32_t i = 0;
    while (i < ks->nreasons && strcmp(ks->reasons[i].reason, it->reason) != 0) i++;
    if (i == MAX_REASONS) {
        s->overflowed++;
        return;
    }
    struct stall_sum *sum = &ks->reasons[i];
    if (i == ks->nreasons) {
        ks->nreasons++;
        memcpy(sum->reason, it->reason, sizeof sum->reason);
    }
    sum->samples = fold_add(sum->samples, it->samples);
    sum->not_issued = fold_add(sum->not_issued, it->not_issued);
}

enum status fold_stalls(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_stalls *d = &m->stalls;
    struct kernel *k = fold_kernel(s, d->kernel);
    struct rd rd = rd_make(d->reasons.data, d->reasons.len);
    struct kernel_stalls *ks;
    struct stall_item it;

    (void)f;
    if (!k) return fold_garbled(s);
    enum status st = find_stalls(s, (uint32_t)(k - s->kernels), d->generation, &ks);
    if (st != OK || !ks) return st;
    memcpy(ks->source, d->source, sizeof ks->source);
    ks->samples = fold_add(ks->samples, d->samples);
    ks->dropped = fold_add(ks->dropped, d->dropped);
    ks->t_ns = s->t_ns;
    while (unpack_stall(&rd, &it)) add_stall(s, ks, &it);
    return rd.bad ? fold_garbled(s) : OK;
}

/* The oldest half leaves when the text is full, at a UTF-8 boundary. */
static void text_add(struct session *s, const char *piece, uint32_t n)
{
    if (s->text_len + n > MAX_TEXT) {
        uint32_t cut = MAX_TEXT / 2 < s->text_len ? MAX_TEXT / 2 : s->text_len;
        while (cut < s->text_len && ((uint8_t)s->text[cut] & 0xc0) == 0x80) cut++;
        memmove(s->text, s->text + cut, s->text_len - cut);
        s->text_len -= cut;
    }
    memcpy(s->text + s->text_len, piece, n);
    s->text_len += n;
    s->text[s->text_len] = '\0';
}

enum status fold_text(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_text *d = &m->text;

    (void)f;
    if (s->text_len && d->pos <= s->last_pos) text_add(s, "\n", 1); /* another sequence begins */
    text_add(s, d->piece, (uint32_t)strlen(d->piece));
    s->last_token = d->token;
    s->last_pos = d->pos;
    s->last_gap = d->gap;
    return OK;
}

enum status fold_progress(struct session *s, const struct frame *f, const union msg_any *m)
{
    (void)f;
    s->progress = m->progress;
    s->ended = false;
    return OK;
}

/* Adds those of `reasons` ("a, b") that the generation has not seen yet, as far as they fit. */
static void throttle_add(struct generation *g, const char *reasons)
{
    for (const char *p = reasons; *p; p += strspn(p, ", ")) {
        char one[64];
        size_t n = strcspn(p, ","), have = strlen(g->throttle);
        snprintf(one, sizeof one, "%.*s", (int)n, p);
        p += n;
        if (strstr(g->throttle, one) || have + n + 3 > sizeof g->throttle) continue;
        snprintf(g->throttle + have, sizeof g->throttle - have, "%s%s", have ? ", " : "", one);
    }
    g->throttled++;
}

/* A reading of 0 is one that NVML did not give. */
enum status fold_clocks(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_clocks *d = &m->clocks;
    struct generation *g = s->ngenerations ? &s->generations[s->ngenerations - 1] : NULL;

    (void)f;
    s->clocks = *d;
    s->has_clocks = true;
    if (!g) return OK;
    if (d->sm_mhz) stat_add(&g->sm_mhz, d->sm_mhz);
    if (d->power_mw) stat_add(&g->watts, d->power_mw / 1e3);
    if (d->temp_c) stat_add(&g->celsius, d->temp_c);
    if (d->throttle[0]) throttle_add(g, d->throttle);
    return OK;
}

enum status fold_drops(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_drops *d = &m->drops;

    (void)f;
    if (d->type >= FRAME_TYPE_END) return fold_garbled(s);
    s->drops[d->type] = fold_add(s->drops_before[d->type], d->total);
    return OK;
}
