/*
 * What sources find, sorted to rows and kernels. Each function runs inside a call of its source:
 * spans, exacts and PCs on the launching thread, pm on the decode thread.
 */
#include "engine/collect_priv.h"

#include "base/value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *collect_label(const struct collect *c, enum counter_role role)
{
    return c->src[role] && c->src[role]->state.synthetic ? "synth" : counter_role_name(role);
}

/* The row of a span: by tag, held against the kernel's name. */
static uint32_t span_row(struct collect *c, const struct counter_span *s)
{
    if (s->tag == 0 || s->tag > c->nlaunches) {
        c->tagless++;
        return 0;
    }
    const struct launch_note *n = &c->launches[s->tag - 1];
    if (n->kernel >= c->nkernels || strcmp(c->kernels[n->kernel].name, s->kernel)) {
        c->mismatched++;
        return 0;
    }
    return n->row;
}

static void on_span(void *user, const struct counter_span *s)
{
    struct collect *c = user;
    uint64_t dur = s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0;
    uint32_t row = span_row(c, s);
    struct span_item it = {row, s->start_ns, dur};
    rows_add(c->e->rows, row, dur);
    window_span(c, &it);
}

static void on_pm(void *user, const struct counter_pm_sample *s)
{
    window_sample(user, s);
}

/* Where (row, metric) is or would be in the hash table: a place of exact_slots. */
static uint32_t *exact_slot(struct collect *c, uint32_t row, uint16_t metric)
{
    const uint32_t n = 2 * COLLECT_EXACTS;
    uint32_t at = (row * 2654435761u ^ metric * 40503u) % n;
    for (; c->exact_slots[at]; at = (at + 1) % n) {
        const struct exact_sum *x = &c->exacts[c->exact_slots[at] - 1];
        if (x->row == row && x->metric == metric) break;
    }
    return &c->exact_slots[at];
}

static void on_exact(void *user, const struct counter_exact *x)
{
    struct collect *c = user;
    if (x->tag == 0 || x->tag > c->nlaunches) {
        c->tagless++;
        return;
    }
    uint32_t row = c->launches[x->tag - 1].row, *slot = exact_slot(c, row, x->id);
    if (!*slot) {
        if (row == 0 || c->nexacts == COLLECT_EXACTS) return;
        c->exacts[c->nexacts++] = (struct exact_sum){.row = row, .metric = x->id};
        *slot = c->nexacts;
    }
    struct exact_sum *sum = &c->exacts[*slot - 1];
    if (isnan(x->value)) {
        sum->missing = true;
    } else {
        sum->sum += x->value;
        sum->n++;
    }
}

void collect_drop_exacts(struct collect *c)
{
    c->nexacts = 0;
    memset(c->exact_slots, 0, 2 * COLLECT_EXACTS * sizeof *c->exact_slots);
}

void collect_send_exacts(struct collect *c)
{
    for (uint32_t i = 0; i < c->nexacts; i++) {
        const struct exact_sum *x = &c->exacts[i];
        struct msg_counter m = {.row = x->row, .metric = x->metric, .spread = -1, .n = x->n};
        snprintf(m.source, sizeof m.source, "%s", collect_label(c, COUNTER_RANGE));
        if (x->n) {
            m.state = VALUE_OK;
            m.v = x->sum / x->n;
        } else {
            m.state = VALUE_UNAVAILABLE;
            snprintf(m.why, sizeof m.why, "the chip gave no value for this metric");
        }
        emit_send(c->e->emit, FRAME_COUNTER, &m);
    }
    if (c->nexacts) collect_drop_exacts(c);
}

/* The kernel's sums in this window; NULL when it is none of ours or the table is full. */
static struct stall_kernel *stall_kernel(struct collect *c, const char *function)
{
    uint32_t k = 0, i = 0;
    while (k < c->nkernels && strcmp(c->kernels[k].name, function)) k++;
    if (k == c->nkernels) return NULL;
    while (i < c->nstalls && c->stalls[i].kernel != k) i++;
    if (i < c->nstalls) return &c->stalls[i];
    if (i == COLLECT_STALL_KERNELS) return NULL;
    c->nstalls++;
    memset(&c->stalls[i], 0, sizeof c->stalls[i]);
    c->stalls[i].kernel = k;
    return &c->stalls[i];
}

/* `at`: the instruction, NULL when it is past the limit. */
static void add_reason(struct stall_kernel *k, struct heat_pc *at, const struct counter_stall *s)
{
    uint32_t i = 0;
    while (i < k->nreasons && strcmp(k->reasons[i].reason, s->reason)) i++;
    if (i == COLLECT_REASONS) return;
    if (i == k->nreasons) {
        k->nreasons++;
        memset(&k->reasons[i], 0, sizeof k->reasons[i]);
        snprintf(k->reasons[i].reason, sizeof k->reasons[i].reason, "%s", s->reason);
    }
    k->reasons[i].samples += s->samples;
    k->reasons[i].not_issued += s->not_issued;
    k->samples += s->samples;
    if (!at) return;
    at->by[i] += s->samples;
    at->samples += s->samples;
    at->not_issued += s->not_issued;
}

static void on_pc(void *user, const struct counter_pc *p)
{
    struct collect *c = user;
    struct stall_kernel *k = stall_kernel(c, p->function);
    struct heat_pc *at = k ? heat_at(c, k, p->pc) : NULL;
    for (unsigned i = 0; i < p->n; i++) {
        if (k)
            add_reason(k, at, &p->stalls[i]);
        else
            c->stall_other += p->stalls[i].samples;
    }
}

void collect_send_stalls(struct collect *c)
{
    struct buf b = {0};
    uint64_t named = c->stall_other;
    for (uint32_t i = 0; i < c->nstalls; i++) {
        const struct stall_kernel *k = &c->stalls[i];
        struct msg_stalls m = {.kernel = k->kernel,
                               .generation = c->e->generation,
                               .round = c->round,
                               .samples = k->samples,
                               .dropped = c->stall_dropped};
        named += k->samples;
        snprintf(m.source, sizeof m.source, "%s", collect_label(c, COUNTER_PC));
        buf_reset(&b);
        for (uint32_t r = 0; r < k->nreasons; r++)
            pack_stall(&b, k->reasons[r].reason, k->reasons[r].samples, k->reasons[r].not_issued);
        m.reasons = (struct blob){b.data, (uint32_t)b.len};
        if (!b.failed) emit_send(c->e->emit, FRAME_STALLS, &m);
        collect_send_heat(c, k);
    }
    if (c->stall_other)
        emit_log(c->e->emit, 0, "PC sampling: %llu samples were of no kernel of this engine",
                 (unsigned long long)c->stall_other);
    if (c->stall_unnamed)
        emit_log(c->e->emit, c->stall_unnamed > named / 20,
                 "PC sampling: %llu samples of %llu could not be named: the driver's own kernels, "
                 "or some whose first run no window of it saw",
                 (unsigned long long)c->stall_unnamed,
                 (unsigned long long)(named + c->stall_unnamed));
    heat_drop(c);
    c->nstalls = 0;
    c->stall_other = c->stall_dropped = c->stall_unnamed = 0;
    buf_free(&b);
}

static void on_executed(void *user, const struct counter_executed *x)
{
    exec_found(user, x);
}

static void on_window(void *user, const struct counter_window *w)
{
    struct collect *c = user;
    tally_window(c, w);
    switch (w->role) {
    case COUNTER_PM:
        window_samples_done(c, w);
        break;
    case COUNTER_PC:
        c->stall_dropped += w->dropped;
        c->stall_unnamed += w->other;
        collect_send_stalls(c);
        break;
    case COUNTER_EXEC:
        emit_log(c->e->emit, 0,
                 "executed counts: %llu instructions in %.0f ms, %.0f of them to read and to take "
                 "the patches out",
                 (unsigned long long)w->items, (double)(w->end_ns - w->start_ns) * 1e-6,
                 (double)w->decode_ns * 1e-6);
        if (w->dropped)
            emit_log(c->e->emit, 1, "executed counts: %llu instructions were lost",
                     (unsigned long long)w->dropped);
        break;
    case COUNTER_RANGE:
        break; /* sent when the last pass has ended */
    case COUNTER_EVENTS:
    case COUNTER_ACTIVITY:
        if (w->dropped || w->invalid)
            emit_log(c->e->emit, 1, "round %u: %llu kernel spans lost, %llu without usable times",
                     c->round, (unsigned long long)w->dropped, (unsigned long long)w->invalid);
        break;
    case COUNTER_ROLES:
        break;
    }
}

void collect_send_state(struct collect *c, const struct counter_state *s)
{
    static const char *const names[] = {[COUNTER_OFF] = "off",
                                        [COUNTER_READY] = "ok",
                                        [COUNTER_UNAVAILABLE] = "unavailable",
                                        [COUNTER_FAILED] = "failed"};
    struct msg_source m = {.name = ""};
    snprintf(m.name, sizeof m.name, "%s", s->name ? s->name : counter_role_name(s->role));
    snprintf(m.state, sizeof m.state, "%s", names[s->health]);
    snprintf(m.why, sizeof m.why, "%s", *s->why ? s->why : s->detail);
    snprintf(m.remedy, sizeof m.remedy, "%s", s->remedy);
    emit_send(c->e->emit, FRAME_SOURCE, &m);
}

static void on_state(void *user, const struct counter_state *s)
{
    struct collect *c = user;
    if (!c->opening) collect_send_state(c, s);
}

struct counter_sink collect_sink(struct collect *c)
{
    return (struct counter_sink){.user = c,
                                 .span = on_span,
                                 .pm = on_pm,
                                 .exact = on_exact,
                                 .pc = on_pc,
                                 .executed = on_executed,
                                 .window = on_window,
                                 .state = on_state};
}
