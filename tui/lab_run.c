/*
 * See lab_run.h. Invariants: the bar is a frame in the recording before the first pair; only one
 * process runs work at a time; a pair that isn't whole is not written.
 *
 * Order: pairs come in blocks of BLOCK_AB A/B pairs with half as many A/A pairs and a quarter as
 * many of the third kernel mixed in by a seeded draw. Within a kind the order alternates AB BA, by
 * the same draw, so that each block holds as many of either. Each block has fresh processes; A/A
 * pairs are made of two processes of A, so that what differs between processes is part of the noise
 * band.
 */
#include "tui/lab_run.h"

#include "base/clock.h"
#include "base/version.h"
#include "session/lab_ledger.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_AB = 10, SLOTS_MAX = 32 };

/* ---- frames ---- */

static uint64_t run_ns(const struct lab_run *r)
{
    return clock_mono_ns() - r->epoch_ns;
}

enum status lab_emit_bytes(struct lab_run *r, const struct buf *b)
{
    struct frame f;
    size_t used;
    enum status st = proto_next(b->data, b->len, &f, &used);
    if (st == OK) st = session_apply(&r->session, &f);
    if (st == OK && r->recorder) st = recorder_add(r->recorder, b->data, b->len, clock_mono_ns());
    /* Written out at once: a kill loses no finished pair. */
    if (st == OK && r->recorder) st = recorder_tick(r->recorder, clock_mono_ns() + CHUNK_AGE_NS);
    if (st == OK && r->o->frames_fd >= 0 &&
        write(r->o->frames_fd, b->data, b->len) != (ssize_t)b->len)
        r->o->frames_fd = -1; /* the screen is gone; the experiment goes on */
    return st;
}

enum status lab_emit(struct lab_run *r, enum frame_type type, const void *msg)
{
    struct buf b = {0};
    enum status st = proto_encode(&b, type, run_ns(r), msg);
    if (st == OK) st = lab_emit_bytes(r, &b);
    buf_free(&b);
    return st;
}

enum status lab_put_gate(struct lab_run *r, const char *gate, const char *state, const char *fmt,
                         ...)
{
    struct msg_gate g = {.experiment = r->def.experiment};
    va_list ap;
    snprintf(g.gate, sizeof g.gate, "%s", gate);
    snprintf(g.state, sizeof g.state, "%s", state);
    va_start(ap, fmt);
    vsnprintf(g.text, sizeof g.text, fmt, ap);
    va_end(ap);
    if (!r->o->quiet) fprintf(stderr, "gate %-10s %-9s %s\n", g.gate, g.state, g.text);
    return lab_emit(r, FRAME_GATE, &g);
}

const struct lab_experiment *lab_run_experiment(const struct lab_run *r)
{
    return session_experiment(&r->session, r->def.experiment);
}

static enum status to_ledger(const struct lab_run *r)
{
    return ledger_append(r->o->ledger ? r->o->ledger : LEDGER_FILE, r->path, &r->session.hello,
                         lab_run_experiment(r));
}

/* ---- opening ---- */

static void name_file(struct lab_run *r)
{
    time_t now = (time_t)(clock_wall_ns() / 1000000000u);
    struct tm tm;
    char stamp[32] = "";
    if (r->o->record) {
        snprintf(r->path, sizeof r->path, "%s", r->o->record);
        return;
    }
    if (localtime_r(&now, &tm)) strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    snprintf(r->path, sizeof r->path, "sasstop-ab-%s.sasstop", stamp);
    for (int i = 2; access(r->path, F_OK) == 0 && i < 100; i++)
        snprintf(r->path, sizeof r->path, "sasstop-ab-%s-%d.sasstop", stamp, i);
}

static void make_hello(const struct lab_run *r, struct msg_hello *h)
{
    const struct lab_child *c = &r->child[LAB_A];
    if (c->has_hello)
        *h = c->hello;
    else
        *h = (struct msg_hello){.sm = (uint32_t)c->sm,
                                .sms = (uint32_t)c->sms,
                                .clock_mhz = (uint32_t)c->clock_mhz,
                                .l2_bytes = (uint64_t)c->l2_bytes,
                                .seed = r->o->seed,
                                .backend = "cuda"};
    h->instance = 1;
    h->wall_ns = clock_wall_ns() - run_ns(r);
    snprintf(h->session, sizeof h->session, "%llx-%x", (unsigned long long)h->wall_ns / 1000,
             (unsigned)getpid());
    snprintf(h->device, sizeof h->device, "%s", c->device);
    snprintf(h->driver, sizeof h->driver, "%s", c->driver);
    snprintf(h->commit, sizeof h->commit, "%s %s", version_string(), version_commit());
    snprintf(h->command, sizeof h->command, "%s", r->o->engine_options.command);
    if (r->o->a.has_code) snprintf(h->toolkit, sizeof h->toolkit, "%s", r->o->a.code.cubin.toolkit);
}

static void make_definition(struct lab_run *r)
{
    const struct lab_options *o = r->o;
    struct msg_experiment *d = &r->def;
    *d = (struct msg_experiment){.experiment = o->number ? o->number : 1,
                                 .gain = o->gain,
                                 .pairs = o->pairs,
                                 .precision = o->precision,
                                 .seconds = o->seconds,
                                 .seed = o->seed,
                                 .wall_ns = clock_wall_ns()};
    snprintf(d->a, sizeof d->a, "%s", o->a.text);
    snprintf(d->b, sizeof d->b, "%s", o->b.text);
    if (o->has_control) snprintf(d->control, sizeof d->control, "%.63s", o->control.text);
    snprintf(d->family, sizeof d->family, "%s", o->a.v ? o->a.v->family : "q4k_gemm");
    d->code_a = o->a.v ? o->a.v->code_hash : 0;
    d->code_b = o->b.v ? o->b.v->code_hash : 0;
    snprintf(d->workload, sizeof d->workload, "%s", o->engine ? "engine" : "kernel");
    snprintf(d->shape, sizeof d->shape, "%s", o->shape);
    snprintf(d->hypothesis, sizeof d->hypothesis, "%s", o->hypothesis);
    snprintf(d->claim, sizeof d->claim, "%s", o->claim);
    snprintf(d->bar, sizeof d->bar, "%s", o->bar);
    snprintf(d->metric, sizeof d->metric, "%s", o->metric);
    snprintf(d->retry, sizeof d->retry, "%s", o->retry ? o->retry : "");
}

enum status lab_start_child(struct lab_run *r, enum lab_place p)
{
    const struct lab_options *o = r->o;
    struct lab_child_options co = {
        .side = p == LAB_B   ? &o->b
                : p == LAB_C ? &o->control
                             : &o->a,
        .engine = o->engine,
        .decode = !strcmp(o->metric, "decode"),
        .shape = o->shape,
        .engine_options = o->engine_options,
        .rounds = o->rounds,
    };
    return lab_child_start(&co, &r->child[p]);
}

void lab_end_children(struct lab_run *r)
{
    for (int p = 0; p < LAB_PLACES; p++) lab_child_end(&r->child[p]);
}

static bool wanted(const struct lab_run *r, int p)
{
    return p != LAB_C || r->o->has_control;
}

/* Fresh processes, all loading at once; then one sample each that is thrown away. */
static enum status start_block(struct lab_run *r)
{
    struct lab_sample unused;
    enum status st = OK;
    lab_end_children(r);
    for (int p = 0; st == OK && p < LAB_PLACES; p++)
        if (wanted(r, p)) st = lab_start_child(r, (enum lab_place)p);
    for (int p = 0; st == OK && p < LAB_PLACES; p++)
        if (wanted(r, p)) st = lab_child_ready(&r->child[p]);
    for (int p = 0; st == OK && p < LAB_PLACES; p++)
        if (wanted(r, p)) st = lab_child_sample(&r->child[p], &unused);
    return st;
}

/* ---- pairs ---- */

static uint64_t draw(struct lab_run *r)
{
    r->rng += 0x9e3779b97f4a7c15ull;
    uint64_t z = r->rng;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

struct slot {
    enum { SLOT_AB, SLOT_AA, SLOT_CC } kind;
    bool swapped;
};

/* `n` of one kind, half of them swapped; which half comes first is drawn for every two. */
static unsigned add_slots(struct lab_run *r, struct slot *s, unsigned at, int kind, unsigned n)
{
    bool first = draw(r) & 1;
    for (unsigned i = 0; i < n && at < SLOTS_MAX; i++) {
        if (i % 2 == 0) first = draw(r) & 1;
        s[at].kind = (unsigned)kind;
        s[at++].swapped = i % 2 ? !first : first;
    }
    return at;
}

static uint32_t counting(const struct lab_run *r, const char *kind)
{
    double d[LAB_PAIRS_MAX];
    return lab_ratios(lab_run_experiment(r), kind, LAB_WARM, d, LAB_PAIRS_MAX);
}

/* The last block brings the A/A pairs up to what a noise band needs. */
static unsigned plan_block(struct lab_run *r, struct slot *s)
{
    uint32_t left = r->o->pairs - counting(r, "AB"), have = counting(r, "AA");
    unsigned ab = left < BLOCK_AB ? left : BLOCK_AB, aa = (ab + 1) / 2;
    if (left <= BLOCK_AB && have + aa < LAB_MIN_AA) aa = LAB_MIN_AA - have;
    unsigned n = add_slots(r, s, 0, SLOT_AB, ab);
    n = add_slots(r, s, n, SLOT_AA, aa);
    if (r->o->has_control) n = add_slots(r, s, n, SLOT_CC, (ab + 3) / 4);
    for (unsigned i = n; i > 1; i--) {
        unsigned j = (unsigned)(draw(r) % i);
        struct slot t = s[i - 1];
        s[i - 1] = s[j];
        s[j] = t;
    }
    return n;
}

static void check_pair(const struct lab_sample *a, const struct lab_sample *b, struct msg_pair *p)
{
    if (a->mhz && b->mhz && fabs((double)a->mhz / b->mhz - 1) > LAB_PAIR_CLOCK)
        snprintf(p->dropped, sizeof p->dropped, "clocks differ: %u and %u MHz", a->mhz, b->mhz);
    /* A power cap holds both alike and shows in the clocks; the rest is out of the ordinary. */
    const char *t = a->throttle[0] && strcmp(a->throttle, "power cap") ? a->throttle : b->throttle;
    if (t[0] && strcmp(t, "power cap") != 0)
        snprintf(p->dropped, sizeof p->dropped, "throttled: %.50s", t);
}

/* The third kernel is timed after A in one half and after B in the other: its two figures are those
 * beside A and beside B. */
static enum status sample_slot(struct lab_run *r, const struct slot *s, struct lab_sample *x,
                               struct lab_sample *y)
{
    struct lab_sample unused;
    struct lab_child *first = &r->child[LAB_A];
    struct lab_child *second = &r->child[s->kind == SLOT_AA ? LAB_A2 : LAB_B];
    enum status st = OK;
    for (int i = 0; st == OK && i < 2; i++) {
        bool one = (i == 0) != s->swapped;
        struct lab_child *c = one ? first : second;
        if (s->kind == SLOT_CC) {
            st = lab_child_sample(c, &unused);
            c = &r->child[LAB_C];
        }
        if (st == OK) st = lab_child_sample(c, one ? x : y);
    }
    return st;
}

static enum status measure_pair(struct lab_run *r, const struct slot *s)
{
    static const char *const kinds[] = {"AB", "AA", "CC"};
    struct lab_sample x = {0}, y = {0};
    enum status st = sample_slot(r, s, &x, &y);
    if (st != OK) return st;
    struct msg_pair p = {.experiment = r->def.experiment,
                         .pair = ++r->npairs,
                         .swapped = s->swapped,
                         .a_us = x.us,
                         .b_us = y.us,
                         .a_cold_us = x.cold_us,
                         .b_cold_us = y.cold_us,
                         .a_cycles = x.cycles,
                         .b_cycles = y.cycles,
                         .a_also_us = x.also_us,
                         .b_also_us = y.also_us,
                         .a_mhz = x.mhz,
                         .b_mhz = y.mhz,
                         .power_mw = (x.mw + y.mw) / 2};
    snprintf(p.kind, sizeof p.kind, "%s", kinds[s->kind]);
    check_pair(&x, &y, &p);
    return lab_emit(r, FRAME_PAIR, &p);
}

static void say_progress(const struct lab_run *r, bool end)
{
    struct lab_result res;
    char more[40];
    const struct lab_experiment *x = lab_run_experiment(r);
    bool tty = isatty(2);
    if (r->o->quiet || (!tty && !end && r->npairs % 10)) return;
    if (lab_evaluate(x, &res) != OK) return;
    fprintf(stderr, "%spairs %u of %u", tty ? "\r\033[K" : "", res.ab.n, r->o->pairs);
    if (res.ab.known)
        fprintf(stderr, "  %+.2f %% (%+.2f to %+.2f)", 100 * lab_gain(res.ab.est),
                100 * lab_gain(res.ab.lo), 100 * lab_gain(res.ab.hi));
    if (res.aa.known) fprintf(stderr, "  noise +-%.2f %%", 100 * lab_gain(res.band));
    /* Before the fewest pairs that give a verdict there is nothing to forecast from. */
    if (res.more && res.ab.n >= LAB_MIN_PAIRS && res.aa.n >= LAB_MIN_AA)
        fprintf(stderr, "  %s would settle it", lab_more_text(res.more, more, sizeof more));
    if (!tty || end) fputc('\n', stderr);
    fflush(stderr);
}

/* Whether the rule of stopping is met; it was frozen with the bar. */
static bool enough(const struct lab_run *r)
{
    struct lab_result res;
    const struct lab_options *o = r->o;
    if (lab_evaluate(lab_run_experiment(r), &res) != OK) return true;
    if (res.ab.n >= o->pairs && res.aa.n >= LAB_MIN_AA) return true;
    if (o->seconds > 0 && (double)(clock_mono_ns() - r->started_ns) > o->seconds * 1e9) return true;
    return o->precision > 0 && res.ab.known && res.aa.known && res.ab.n >= LAB_MIN_PAIRS &&
           0.5 * (res.ab.hi - res.ab.lo) <= o->precision;
}

/* Dropped pairs are measured again, but not for ever. */
static enum status measure(struct lab_run *r)
{
    struct slot slots[SLOTS_MAX];
    enum status st = OK;
    r->started_ns = clock_mono_ns();
    for (unsigned block = 0; st == OK && !enough(r) && r->npairs + SLOTS_MAX < LAB_ALL_PAIRS;
         block++) {
        if (lab_dropped(lab_run_experiment(r)) > r->o->pairs) break;
        st = start_block(r);
        unsigned n = plan_block(r, slots);
        for (unsigned i = 0; st == OK && i < n; i++) {
            st = measure_pair(r, &slots[i]);
            if (st == OK) say_progress(r, false);
            if (st == OK && (r->o->seconds > 0 || r->o->precision > 0) && enough(r)) break;
        }
    }
    if (st == OK) say_progress(r, true);
    lab_end_children(r);
    return st;
}

/* ---- the whole ---- */

static enum status close_experiment(struct lab_run *r)
{
    const struct lab_experiment *x = lab_run_experiment(r);
    struct lab_result res;
    struct msg_verdict v;
    enum status st = lab_evaluate(x, &res);
    if (st != OK) return st;
    if (r->stop[0]) {
        res.verdict = LAB_INVALID;
        res.firm = false;
        snprintf(res.why, sizeof res.why, "%s after %u pairs", r->stop, res.ab.n);
    }
    lab_fill_verdict(x, &res, &v);
    lab_sentence(x, &res, v.sentence, sizeof v.sentence);
    return lab_emit(r, FRAME_VERDICT, &v);
}

static enum status open_run(struct lab_run *r)
{
    struct msg_hello h;
    enum status st = session_init(&r->session);
    r->epoch_ns = clock_mono_ns();
    r->rng = r->o->seed * 0x2545f4914f6cdd1dull + 1;
    if (st == OK) st = lab_start_child(r, LAB_A);
    if (st == OK) st = lab_child_ready(&r->child[LAB_A]);
    if (st != OK) return err_prefix(st, "A (%s)", r->o->a.text);
    lab_side_resolve(&r->o->a, r->child[LAB_A].sm);
    lab_side_resolve(&r->o->b, r->child[LAB_A].sm);
    name_file(r);
    make_definition(r);
    if (r->o->resume && (st = lab_resume_check(r, r->o->resume)) != OK) return st;
    st = recorder_open(r->path, &r->recorder);
    if (st != OK) return st;
    if (r->o->resume) return lab_resume_copy(r, r->o->resume);
    make_hello(r, &h);
    st = lab_emit(r, FRAME_HELLO, &h);
    if (st == OK) st = lab_emit(r, FRAME_EXPERIMENT, &r->def);
    if (st == OK) st = to_ledger(r);
    return st;
}

enum status lab_run(struct lab_options *o, struct lab_run *r)
{
    *r = (struct lab_run){.o = o};
    enum status st = open_run(r);
    if (st != OK) goto out;
    if (!o->resume) st = lab_gates(r);
    bool go = st == OK && !lab_failed_gate(lab_run_experiment(r));
    if (go) st = measure(r);
    if (lab_interrupted)
        snprintf(r->stop, sizeof r->stop, "stopped by its user");
    else if (st != OK)
        snprintf(r->stop, sizeof r->stop, "a side failed (%.100s)", err_msg());
    if (go && !r->stop[0]) st = lab_figures(r);
    st = close_experiment(r);
    if (st == OK) st = to_ledger(r);
out:
    lab_end_children(r);
    if (r->recorder) {
        enum status closed = recorder_close(r->recorder);
        r->recorder = NULL;
        if (st == OK) st = closed;
    }
    return st;
}

void lab_run_free(struct lab_run *r)
{
    session_free(&r->session);
    lab_side_close(&r->o->a);
    lab_side_close(&r->o->b);
    lab_side_close(&r->o->control);
}
