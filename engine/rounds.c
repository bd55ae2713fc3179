/*
 * One round: a prefill of the workload's tokens, then decoding, timed or counted, never both.
 *
 * Invariants: a timed round asks the backend for no per-launch times and opens no counter; only
 * whole rounds are told (ROUND), one given up for a command is not. Every round starts at position
 * 0, so a round or a counter's pass repeats the same work: its output hash must be the same.
 */
#include "engine/engine.h"

#include "base/clock.h"
#include "engine/collect.h"
#include "engine/faults.h"
#include "engine/timer.h"
#include "engine/tokenizer.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* What a round has done so far. */
struct pass {
    enum timing timing;
    XXH64_state_t *hash;
    uint32_t pos, made;
    uint64_t prefill_ns, decode_ns;
    struct step_result last;
    bool quiet; /* a repeated pass: its text was told already */
};

bool rounds_interrupted(struct engine *e)
{
    return commands_stopping(e->cmds) || commands_waiting(e->cmds) || emit_broken(e->emit);
}

void engine_progress(struct engine *e, const char *phase, uint32_t done, uint32_t total)
{
    struct msg_progress p = {.round = e->round, .done = done, .total = total};
    snprintf(p.phase, sizeof p.phase, "%s", phase);
    e->progress_ns = clock_mono_ns();
    emit_send(e->emit, FRAME_PROGRESS, &p);
}

static void tell_token(struct engine *e, uint32_t pos, uint32_t token, double gap)
{
    struct msg_text t = {.round = e->round, .pos = pos, .token = token, .gap = gap};
    size_t n =
        tokenizer_decode(model_tokenizer(e->model), (int32_t)token, t.piece, sizeof t.piece - 1);
    if (n >= sizeof t.piece) n = sizeof t.piece - 1;
    t.piece[n] = '\0';
    emit_send(e->emit, FRAME_TEXT, &t);
}

/* Keeps the token that a step made; whether to go on. */
static bool keep_token(struct engine *e, struct pass *p)
{
    uint8_t bytes[4] = {(uint8_t)p->last.token, (uint8_t)(p->last.token >> 8),
                        (uint8_t)(p->last.token >> 16), (uint8_t)(p->last.token >> 24)};
    XXH64_update(p->hash, bytes, sizeof bytes);
    if (!p->quiet) tell_token(e, p->pos, p->last.token, (double)p->last.top1 - p->last.top2);
    return !(e->work.prompt && tokenizer_is_end(model_tokenizer(e->model), (int32_t)p->last.token));
}

static enum status prefill(struct engine *e, struct pass *p)
{
    const struct workload *w = &e->work;
    engine_progress(e, "prefill", 0, w->n);
    enum status st = faults_check(e, FAULT_AT_PREFILL);
    uint64_t start = clock_mono_ns();
    while (st == OK && p->pos < w->n) {
        const struct forward *f = w->n - p->pos >= e->max_step ? &e->chunk : &e->rest;
        st = e->bo->run(e->b, f->ops, f->nops, w->tokens + p->pos, f->n, p->pos, false, p->timing,
                        &p->last);
        p->pos += f->n;
        if (st == OK && p->pos < w->n) {
            engine_progress(e, "prefill", p->pos, w->n);
            if (rounds_interrupted(e)) return ERR_AGAIN;
        }
    }
    if (st == OK) st = e->bo->sync(e->b);
    p->prefill_ns = clock_mono_ns() - start;
    return st;
}

static enum status decode(struct engine *e, struct pass *p)
{
    const struct workload *w = &e->work;
    engine_progress(e, "decode", 0, w->decode);
    enum status st = faults_check(e, FAULT_AT_DECODE);
    uint64_t start = clock_mono_ns();
    bool more = keep_token(e, p);
    while (st == OK && more && p->made < w->decode) {
        uint32_t token = p->last.token;
        if (rounds_interrupted(e)) return ERR_AGAIN;
        st = e->bo->run(e->b, e->decode.ops, e->decode.nops, &token, 1, p->pos, true, p->timing,
                        &p->last);
        if (st != OK) break;
        p->made++;
        p->pos++;
        more = keep_token(e, p);
        if (clock_mono_ns() - e->progress_ns > ENGINE_TEXT_TIME)
            engine_progress(e, "decode", p->made, w->decode);
    }
    if (st == OK) st = e->bo->sync(e->b);
    p->decode_ns = clock_mono_ns() - start;
    return st;
}

/* Prefill and decode once; *hash is of the tokens made. */
static enum status run_pass(struct engine *e, struct pass *p, uint64_t *hash)
{
    p->hash = XXH64_createState();
    if (!p->hash) return err_set(ERR_NOMEM, "out of memory for a hash");
    XXH64_reset(p->hash, 0);
    collect_phase(e->collect, "prefill");
    enum status st = prefill(e, p);
    collect_phase(e->collect, "decode");
    if (st == OK) st = decode(e, p);
    *hash = XXH64_digest(p->hash);
    XXH64_freeState(p->hash);
    return st;
}

/* The same work gives the same tokens, whatever watches it; another variant of the same numeric
 * class should too. */
static void compare_hash(struct engine *e, uint64_t hash, const char *source)
{
    if (!e->hash_generation || hash == e->last_hash) {
        if (e->hash_generation && e->hash_generation != e->generation)
            emit_log(e->emit, 0, "generation %u makes the same tokens as generation %u",
                     e->generation, e->hash_generation);
    } else if (e->hash_generation == e->generation) {
        emit_log(e->emit, 1,
                 "round %u (%s) made other tokens than the round before it: the output hash is "
                 "%016llx, was %016llx; its figures are of other work",
                 e->round, *source ? source : "timed", (unsigned long long)hash,
                 (unsigned long long)e->last_hash);
    } else {
        emit_log(e->emit, 1, "generation %u makes other tokens than generation %u", e->generation,
                 e->hash_generation);
    }
    e->last_hash = hash;
    e->hash_generation = e->generation;
}

/* `source`: for the log, where tokens differ. */
static void send_round(struct engine *e, struct msg_round *r, const char *source)
{
    r->round = e->round;
    r->generation = e->generation;
    compare_hash(e, r->output_hash, source);
    emit_send(e->emit, FRAME_ROUND, r);
}

static void tell_round(struct engine *e, const struct pass *p, const struct collect_plan *plan,
                       uint64_t hash)
{
    struct msg_round r = {.counted = plan->counted,
                          .prefill_tokens = e->work.n,
                          .prefill_ns = p->prefill_ns,
                          .decode_tokens = p->made,
                          .decode_ns = p->made ? p->decode_ns : 0,
                          .output_hash = hash};
    snprintf(r.source, sizeof r.source, "%s", plan->source);
    if (!plan->counted) snprintf(r.timed_in, sizeof r.timed_in, "%s", e->cupti ? "here" : "clean");
    send_round(e, &r, plan->source);
}

/* A timed round that runs elsewhere. */
static enum status round_there(struct engine *e)
{
    struct msg_round r;
    enum status st = timer_round(e, &r);
    if (st != OK) return st;
    r.counted = 0;
    snprintf(r.timed_in, sizeof r.timed_in, "own");
    send_round(e, &r, "timed in its own process");
    return OK;
}

static void tell_prompt(struct engine *e)
{
    for (uint32_t i = 0; e->show_prompt && e->work.prompt && i < e->work.n; i++)
        tell_token(e, i, e->work.tokens[i], -1);
    e->show_prompt = false;
}

enum status rounds_run(struct engine *e)
{
    struct pass p = {0};
    struct collect_plan plan;
    uint64_t hash = 0, again = 0;
    bool same = true; /* all passes, and the round before, where there was one */
    e->round++;
    enum status st = faults_check(e, FAULT_AT_ROUND);
    if (st != OK) return st;
    tell_prompt(e);
    collect_begin(e->collect, e->round, &plan);
    if (plan.exact) return exact_round(e);
    if (!plan.counted && timer_runs(e)) return round_there(e);
    p.timing = plan.timing;
    st = run_pass(e, &p, &hash);
    while (plan.counted && st == OK && (st = collect_end_pass(e->collect)) == ERR_AGAIN) {
        struct pass more = {.timing = p.timing, .quiet = true};
        if (rounds_interrupted(e)) break;
        st = run_pass(e, &more, &again);
        same &= again == hash;
        if (st == OK && again != hash)
            emit_log(e->emit, 1, "round %u: a repeated pass of %s made other tokens", e->round,
                     plan.source);
    }
    if (e->hash_generation == e->generation) same &= e->last_hash == hash;
    if (plan.counted) collect_end(e->collect, st == OK);
    if (plan.counted && st == OK && e->hash_generation == e->generation)
        collect_output(e->collect, same, hash);
    if (st == OK) tell_round(e, &p, &plan, hash);
    return st;
}
