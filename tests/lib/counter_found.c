/* A sink for tests: see counter_found.h. */
#include "tests/lib/counter_found.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"

static const uint16_t value_ids[FOUND_VALUES] = {METRIC_SM, METRIC_SM_ACTIVE, METRIC_IPC_ELAPSED,
                                                 METRIC_TENSOR, METRIC_DRAM};

static int kernel_of(const struct found *f, const char *name)
{
    for (int k = 0; k < f->kernels; k++)
        if (strcmp(name, f->names[k]) == 0) return k;
    return -1;
}

static int kernel_of_tag(const struct found *f, uint64_t tag)
{
    return tag ? (int)((tag - 1) % (uint64_t)f->kernels) : -1;
}

static void on_span(void *user, const struct counter_span *s)
{
    struct found *f = user;
    int k = kernel_of(f, s->kernel);
    pthread_mutex_lock(&f->lock);
    if (k < 0)
        f->foreign++;
    else if (f->n_spans < f->cap_spans)
        f->spans[f->n_spans++] = (struct found_span){s->start_ns, s->end_ns, s->tag, k};
    if (k >= 0 && kernel_of_tag(f, s->tag) != k) f->bad_tags++;
    pthread_mutex_unlock(&f->lock);
}

static void on_pm(void *user, const struct counter_pm_sample *s)
{
    struct found *f = user;
    pthread_mutex_lock(&f->lock);
    if (f->n_samples < f->cap_samples) {
        struct found_sample *o = &f->samples[f->n_samples++];
        *o = (struct found_sample){.start = s->start_ns, .end = s->end_ns};
        for (int v = 0; v < FOUND_VALUES; v++) {
            o->v[v] = NAN;
            for (unsigned i = 0; i < s->n; i++)
                if (s->ids[i] == value_ids[v]) o->v[v] = s->values[i];
        }
    }
    pthread_mutex_unlock(&f->lock);
}

static void on_exact(void *user, const struct counter_exact *e)
{
    struct found *f = user;
    int k = kernel_of_tag(f, e->tag);
    if (k < 0 || e->id >= FOUND_IDS) return;
    f->exact[k][e->id] = e->value;
    if (e->id != METRIC_INST) return;
    if (f->inst_n[k]++ == 0) f->inst_min[k] = f->inst_max[k] = e->value;
    if (e->value < f->inst_min[k]) f->inst_min[k] = e->value;
    if (e->value > f->inst_max[k]) f->inst_max[k] = e->value;
}

static size_t reason_slot(struct found *f, const char *name)
{
    for (size_t i = 0; i < f->n_reasons; i++)
        if (strcmp(f->reasons[i], name) == 0) return i;
    if (f->n_reasons == FOUND_REASONS) return FOUND_REASONS - 1;
    snprintf(f->reasons[f->n_reasons], sizeof f->reasons[0], "%s", name);
    return f->n_reasons++;
}

static void on_pc(void *user, const struct counter_pc *p)
{
    struct found *f = user;
    int k = kernel_of(f, p->function);
    if (k >= 0) f->pc_records[k]++;
    for (unsigned i = 0; i < p->n; i++) {
        size_t r = reason_slot(f, p->stalls[i].reason);
        if (k < 0) {
            f->pc_foreign += p->stalls[i].samples;
            continue;
        }
        f->pc[k][r] += p->stalls[i].samples;
        f->pc_not[k][r] += p->stalls[i].not_issued;
    }
}

static void on_window(void *user, const struct counter_window *w)
{
    struct found *f = user;
    pthread_mutex_lock(&f->lock);
    struct counter_window *s = &f->sum[w->role];
    f->windows[w->role]++;
    s->start_ns += w->start_ns / 1000; /* sums of microseconds: they fit */
    s->end_ns += w->end_ns / 1000;
    s->items += w->items;
    s->dropped += w->dropped;
    s->invalid += w->invalid;
    s->other += w->other;
    s->reported += w->reported;
    s->decode_ns += w->decode_ns;
    f->overflows[w->role] += w->overflow;
    pthread_mutex_unlock(&f->lock);
}

static void on_state(void *user, const struct counter_state *s)
{
    struct found *f = user;
    pthread_mutex_lock(&f->lock);
    if (s->health == COUNTER_FAILED || s->health == COUNTER_UNAVAILABLE) {
        f->failures++;
        snprintf(f->last_why, sizeof f->last_why, "%s", s->why);
    }
    pthread_mutex_unlock(&f->lock);
}

bool found_init(struct found *f, const char *const *names, int kernels, size_t spans,
                size_t samples)
{
    *f = (struct found){.lock = PTHREAD_MUTEX_INITIALIZER,
                        .names = names,
                        .kernels = kernels,
                        .spans = calloc(spans, sizeof *f->spans),
                        .samples = calloc(samples, sizeof *f->samples),
                        .cap_spans = spans,
                        .cap_samples = samples};
    return kernels <= FOUND_KERNELS && f->spans && f->samples;
}

void found_free(struct found *f)
{
    free(f->spans);
    free(f->samples);
}

struct counter_sink found_sink(struct found *f)
{
    return (struct counter_sink){.user = f,
                                 .span = on_span,
                                 .pm = on_pm,
                                 .exact = on_exact,
                                 .pc = on_pc,
                                 .window = on_window,
                                 .state = on_state};
}

static int span_order(const void *a, const void *b)
{
    const struct found_span *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static int sample_order(const void *a, const void *b)
{
    const struct found_sample *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Both sorted. Only launches that samples cover from end to end. */
static void join_whole(const struct found *f, struct found_joined *out)
{
    double sum[FOUND_KERNELS] = {0}, ns[FOUND_KERNELS] = {0};
    size_t i = 0;
    for (size_t j = 0; j < f->n_spans; j++) {
        const struct found_span *s = &f->spans[j];
        double value = 0, covered = 0;
        while (i < f->n_samples && f->samples[i].end <= s->start) i++;
        for (size_t k = i; k < f->n_samples && f->samples[k].start < s->end; k++) {
            const struct found_sample *o = &f->samples[k];
            uint64_t from = o->start > s->start ? o->start : s->start;
            uint64_t to = o->end < s->end ? o->end : s->end;
            value += o->v[FOUND_SM] * (double)(to - from);
            covered += (double)(to - from);
        }
        if (covered < 0.98 * (double)(s->end - s->start)) continue;
        sum[s->kernel] += value;
        ns[s->kernel] += covered;
    }
    for (int k = 0; k < f->kernels; k++) out[k].whole = ns[k] > 0 ? sum[k] / ns[k] : NAN;
}

size_t found_join(struct found *f, struct found_joined *out)
{
    size_t j = 0, inside = 0;
    qsort(f->spans, f->n_spans, sizeof *f->spans, span_order);
    qsort(f->samples, f->n_samples, sizeof *f->samples, sample_order);
    for (int k = 0; k < f->kernels; k++)
        out[k] = (struct found_joined){.sm = calloc(f->n_samples + 1, sizeof(double))};
    for (size_t i = 0; i < f->n_samples; i++) {
        const struct found_sample *s = &f->samples[i];
        while (j < f->n_spans && f->spans[j].end < s->end) j++;
        if (j == f->n_spans || f->spans[j].start > s->start) continue;
        struct found_joined *o = &out[f->spans[j].kernel];
        for (int v = 0; v < FOUND_VALUES; v++) o->sum[v] += s->v[v];
        if (o->sm) o->sm[o->n] = s->v[FOUND_SM];
        o->n++;
        inside++;
    }
    join_whole(f, out);
    return inside;
}

double found_quantile(double *v, size_t n, double q)
{
    if (n == 0) return NAN;
    sort_doubles(v, n);
    return v[(size_t)(q * (double)(n - 1) + 0.5)];
}
