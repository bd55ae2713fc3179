/* Made-up figures of plausible size; see synth_priv.h. */
#include <stddef.h>
#include <string.h>

#include "synth_priv.h"

const struct synth_variant synth_variants[] = {
    {"narrow", "one 8-bit dot a lane, the plain one", 4, 21.0, 51.5, 2.10, 30.0, 9.0, 96, 64, 32},
    {"narrow", "one 8-bit dot a lane, the plain one", 8, 20.2, 53.0, 2.16, 31.2, 9.4, 104, 64, 32},
    {"wide", "two column tiles a warp share one weight load", 4, 17.4, 58.2, 2.31, 37.5, 10.8, 128,
     48, 32},
    {"wide", "two column tiles a warp share one weight load", 8, 18.8, 55.1, 2.20, 34.8, 10.1, 168,
     48, 32},
    {"nb", "block scales folded once a tile, no barrier between", 4, 14.6, 64.9, 2.52, 44.1, 12.7,
     122, 32, 32},
    {"nb", "block scales folded once a tile, no barrier between", 8, 13.9, 66.4, 2.61, 46.3, 13.2,
     126, 16, 32},
};
const unsigned synth_nvariants = sizeof synth_variants / sizeof *synth_variants;

const struct synth_op synth_ops[] = {
    {NULL, "q4k_gemm", "attn_q", "prefill", 4096, 512, 4096, 0, 0, 0, 0, 0, 64, 2},
    {NULL, "q4k_gemm", "attn_k", "prefill", 1024, 512, 4096, 0, 0, 0, 0, 0, 64, 1},
    {NULL, "q4k_gemm", "ffn_up", "prefill", 14336, 512, 4096, 0, 0, 0, 0, 0, 64, 2},
    {NULL, "q4k_gemm", "ffn_down", "prefill", 4096, 512, 14336, 0, 0, 0, 0, 0, 32, 1},
    {"gemv", "q4k_gemv", "attn_q", "decode", 4096, 1, 4096, 6.8, 0, 0, 0, 0, 4096, 0},
    {"gemv", "q4k_gemv", "ffn_up", "decode", 14336, 1, 4096, 15.2, 0, 0, 0, 0, 4096, 0},
    {"gemv", "q4k_gemv", "ffn_down", "decode", 4096, 1, 14336, 14.9, 0, 0, 0, 0, 2048, 0},
    {"attn_prefill", "ops", "attention", "prefill", 4096, 512, 512, 61.0, 38.0, 1.62, 21.0, 4.0, 32,
     1},
    {"attn_decode", "ops", "attention", "decode", 4096, 1, 576, 9.4, 0, 0, 0, 0, 2048, 0},
    {"rmsnorm", "ops", "rmsnorm", "prefill", 4096, 512, 0, 5.6, 21.0, 0.80, 0, 34.0, 64, 2},
    {"quantize_q8", "ops", "quantize", "prefill", 4096, 512, 0, 4.2, 18.0, 0.95, 0, 41.0, 128, 2},
    {"swiglu", "ops", "swiglu", "prefill", 14336, 512, 0, 12.8, 24.0, 0.70, 0, 52.0, 32, 1},
};
const unsigned synth_nops = sizeof synth_ops / sizeof *synth_ops;

const char *const synth_words[] = {
    " the", " tile", " of",   " a",    " warp", " holds",       " eight", " rows",
    ",",    " and",  " each", " lane", " adds", " its",         " share", ".",
    " so",  " no",   " sum",  " is",   " lost", " na\xc3\xafve"};
const unsigned synth_nwords = sizeof synth_words / sizeof *synth_words;

const struct msg_metric_def synth_metrics[] = {
    {1, "sm_pct", "SM%", "TriageCompute.sm__throughput.avg.pct_of_peak_sustained_elapsed", "%",
     "pm", "throughput of the SM inside the kernel"},
    {5, "ipc_elapsed", "IPC el", "sm__inst_executed.avg.per_cycle_elapsed", "/cycle", "pm",
     "warp instructions an SM and elapsed cycle"},
    {6, "tensor_pct", "tensor%", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
     "%", "pm", "time in which the tensor pipe is busy"},
    {11, "dram_pct", "DRAM%", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "pm",
     "DRAM traffic of its peak"},
    {23, "inst", "inst", "smsp__inst_executed.sum", "", "range", "executed warp instructions"},
    {25, "ipc", "IPC", "sm__inst_executed.avg.per_cycle_active", "/cycle", "range",
     "warp instructions an SM and active cycle"},
    {22, "cycles_active", "act cyc", "sm__cycles_active.avg", "cycles", "range",
     "cycles in which an SM had a warp"},
};
const unsigned synth_nmetrics = sizeof synth_metrics / sizeof *synth_metrics;

uint64_t synth_draw(struct synth *g)
{
    uint64_t z = g->rng += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

double synth_uniform(struct synth *g)
{
    return (double)(synth_draw(g) >> 11) / 9007199254740992.0;
}

/* Around 1, within 1 +- part. */
double synth_about(struct synth *g, double part)
{
    return 1 + part * (synth_uniform(g) + synth_uniform(g) - 1);
}

void synth_emit(struct synth *g, enum frame_type type, const void *msg)
{
    if (g->st == OK) g->st = proto_encode(g->out, type, g->t_ns, msg);
    g->t_ns += 1000;
}

/* Kernel numbers: variants first, then the operators that are not the GEMM. */
uint32_t synth_op_kernel(const struct synth *g, unsigned op)
{
    if (!synth_ops[op].kernel) return (uint32_t)(g->v - synth_variants);
    for (unsigned i = 0; i < op; i++) /* rows of one kernel share its number */
        if (synth_ops[i].kernel && strcmp(synth_ops[i].kernel, synth_ops[op].kernel) == 0)
            return synth_nvariants + i;
    return synth_nvariants + op;
}

uint32_t synth_row_number(const struct synth *g, unsigned op)
{
    return g->generation * OP_STEP + op + 1;
}

double synth_op_us(const struct synth *g, unsigned op)
{
    const struct synth_op *o = &synth_ops[op];
    return o->kernel ? o->us : g->v->us_per_gmac * o->m * o->n * o->k / 1e9;
}
