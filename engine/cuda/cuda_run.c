/*
 * A step: state up, operators, result down; and the decode step as a graph.
 *
 * The graph: a list of operators is run plainly once (which loads modules, grows scratch and proves
 * the kernels), captured the second time, and replayed from then on. What the kernels read that
 * changes from step to step (position, token) lies in device memory, so the graph stays good until
 * a variant is selected or memory moves. Its key is a hash of the list's bytes.
 */
#include "engine/cuda/cuda_priv.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void cuda_graph_drop(struct backend *b)
{
    if (b->graph) b->drv->GraphExecDestroy(b->graph);
    b->graph = NULL;
    b->graph_list = b->seen_list = 0;
}

static enum status run_all(struct backend *b, const struct op *ops, uint32_t nops)
{
    b->q8_of = 0;
    for (uint32_t i = 0, done; i < nops; i += done) {
        enum status st = cuda_fuse(b, ops + i, nops - i, &done);
        if (st == OK && done == 0) {
            st = cuda_run_op(b, &ops[i]);
            done = 1;
        }
        if (st != OK) return st;
    }
    return OK;
}

/* Captures the list; a capture is always ended, or the stream would stay in it. */
static enum status capture(struct backend *b, const struct op *ops, uint32_t nops)
{
    struct drv_graph *g = NULL;
    enum status st = driver_check(
        b->drv, b->drv->StreamBeginCapture(b->stream, DRV_CAPTURE_RELAXED), "capturing a step");
    if (st != OK) return st;
    b->capturing = true;
    st = run_all(b, ops, nops);
    b->capturing = false;
    drv_result r = b->drv->StreamEndCapture(b->stream, &g);
    if (st == OK) st = driver_check(b->drv, r, "capturing a step");
    if (st == OK)
        st = driver_check(b->drv, b->drv->GraphInstantiate(&b->graph, g, 0), "making a graph");
    if (st != OK) b->graph = NULL;
    if (g) b->drv->GraphDestroy(g);
    return st;
}

static enum status run_decode(struct backend *b, const struct op *ops, uint32_t nops)
{
    uint64_t list = XXH3_64bits(ops, nops * sizeof *ops) | 1; /* 0 = none */
    if (b->graph && b->graph_list == list)
        return driver_check(b->drv, b->drv->GraphLaunch(b->graph, b->stream), "a decode step");
    if (b->seen_list != list) {
        cuda_graph_drop(b);
        enum status st = run_all(b, ops, nops);
        if (st == OK) b->seen_list = list;
        return st;
    }
    enum status st = capture(b, ops, nops);
    if (st != OK) return st;
    b->graph_list = list;
    return driver_check(b->drv, b->drv->GraphLaunch(b->graph, b->stream), "a decode step");
}

static enum status check_step(const struct backend *b, uint32_t n, uint32_t pos0)
{
    if (n == 0 || n > b->o.max_tokens)
        return err_set(ERR_LIMIT, "a step of %u tokens; this engine was opened for 1 to %u", n,
                       b->o.max_tokens);
    if (pos0 > b->o.context || n > b->o.context - pos0)
        return err_set(ERR_LIMIT, "position %u is past the context of %u: raise --context",
                       pos0 + n, b->o.context);
    return OK;
}

/* Positions and tokens to the device. The pinned copy is written only when no step reads it. */
static enum status state_up(struct backend *b, const uint32_t *tokens, uint32_t n, uint32_t pos0)
{
    enum status st = b->in_flight ? cuda_wait(b) : OK;
    if (st != OK) return st;
    memset(b->host_state, 0, OPS_STATE_TOKENS);
    b->host_state[0] = pos0;
    b->host_state[1] = n;
    if (tokens) memcpy(b->host_state + OPS_STATE_TOKENS / 4, tokens, n * sizeof *tokens);
    b->in_flight = true;
    return driver_check(b->drv,
                        b->drv->MemcpyHtoDAsync(b->state, b->host_state,
                                                OPS_STATE_TOKENS + n * sizeof *tokens, b->stream),
                        "a step's state");
}

static enum status result_down(struct backend *b, struct step_result *out)
{
    enum status st = driver_check(
        b->drv, b->drv->MemcpyDtoHAsync(b->host_best, b->best, sizeof *b->host_best, b->stream),
        "a step's result");
    if (st == OK) st = cuda_wait(b);
    if (st != OK) return st;
    *out = (struct step_result){b->host_best->token, b->host_best->top1, b->host_best->top2};
    return OK;
}

static bool has_result(const struct op *ops, uint32_t nops)
{
    for (uint32_t i = nops; i > 0; i--)
        if (ops[i - 1].kind == OP_ARGMAX) return true;
    return false;
}

enum status cuda_run(struct backend *b, const struct op *ops, uint32_t nops, const uint32_t *tokens,
                     uint32_t n, uint32_t pos0, bool decode, enum timing timing,
                     struct step_result *result)
{
    enum status st = check_step(b, n, pos0);
    if (st == OK) st = state_up(b, tokens, n, pos0);
    if (st == OK) st = cuda_timing_start(b, timing);
    if (st != OK) return st;
    bool graph = decode && b->o.graphs && timing == TIMING_NONE;
    st = graph ? run_decode(b, ops, nops) : run_all(b, ops, nops);
    if (st != OK) return st;
    if (result && has_result(ops, nops))
        st = result_down(b, result);
    else if (result || timing == TIMING_LAUNCH)
        st = cuda_wait(b);
    if (st == OK && timing == TIMING_LAUNCH) st = cuda_timing_tell(b);
    return st;
}
