/*
 * Figures that follow from exact counters; see exact_derived.h. To add one: a function and a row in
 * exact_derived[].
 */
#include "session/exact_derived.h"

#include <string.h>

/* a / b x scale; the reason of the one that is missing. */
static struct value quotient(struct value a, struct value b, double scale, const char *why)
{
    if (a.state != VALUE_OK) return a;
    if (b.state != VALUE_OK) return b;
    if (!(b.v > 0)) return value_missing(VALUE_UNAVAILABLE, why);
    struct value v = value_ok(a.v / b.v * scale, a.source);
    v.n = a.n;
    return v;
}

/* Spread and value by the same factor. */
static struct value scaled(struct value v, double factor)
{
    if (v.state != VALUE_OK) return v;
    v.v *= factor;
    if (v.spread > 0) v.spread *= factor;
    return v;
}

static struct value by_work(const struct session *s, const struct row *r, const char *key)
{
    if (!(r->def.macs > 0))
        return value_missing(VALUE_UNAVAILABLE, "it is no matrix product: its work is not known");
    return scaled(row_metric_exact(s, r, key), 1e9 / r->def.macs);
}

static struct value inst_by_work(const struct session *s, const struct row *r)
{
    return by_work(s, r, "inst");
}

static struct value cycles_by_work(const struct session *s, const struct row *r)
{
    return by_work(s, r, "cycles_elapsed");
}

static struct value conflicts_by_work(const struct session *s, const struct row *r)
{
    return by_work(s, r, "bank_conflicts");
}

/* A scheduler issues at most one instruction a cycle. */
static struct value issue(const struct session *s, const struct row *r)
{
    return scaled(row_metric_exact(s, r, "issue_pct"), 0.01);
}

static struct value lanes(const struct session *s, const struct row *r)
{
    return quotient(row_metric_exact(s, r, "thread_inst"), row_metric_exact(s, r, "inst"), 1,
                    "it executed no instruction");
}

/* ---- the mix of pipes ---- */

static struct value part(const struct session *s, const struct row *r, const char *key)
{
    return quotient(row_metric_exact(s, r, key), row_metric_exact(s, r, "inst"), 100,
                    "it executed no instruction");
}

static struct value mix_alu(const struct session *s, const struct row *r)
{
    return part(s, r, "alu_inst");
}

static struct value mix_fma(const struct session *s, const struct row *r)
{
    return part(s, r, "fma_inst");
}

static struct value mix_tensor(const struct session *s, const struct row *r)
{
    return part(s, r, "tensor_inst");
}

static struct value mix_lsu(const struct session *s, const struct row *r)
{
    return part(s, r, "lsu_inst");
}

static struct value mix_xu(const struct session *s, const struct row *r)
{
    return part(s, r, "xu_inst");
}

static struct value mix_uniform(const struct session *s, const struct row *r)
{
    return part(s, r, "uniform_inst");
}

static struct value mix_cbu(const struct session *s, const struct row *r)
{
    return part(s, r, "cbu_inst");
}

/* ---- occupancy ---- */

static struct value occupancy_most(const struct session *s, const struct row *r)
{
    static const char *const words[][2] = {
        {"registers", "bound by registers"},
        {"shared memory", "bound by shared memory"},
        {"threads", "bound by the threads of an SM"},
        {"blocks", "bound by the blocks of an SM"},
    };
    (void)s;
    if (!r->def.warps_per_sm || !r->def.max_warps)
        return value_missing(VALUE_UNAVAILABLE, "the engine did not say how many warps fit");
    struct value v = value_ok(100.0 * r->def.warps_per_sm / r->def.max_warps, "driver");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(r->def.limiter, words[i][0])) v.why = words[i][1];
    return v;
}

static struct value occupancy_part(const struct session *s, const struct row *r)
{
    struct value most = occupancy_most(s, r);
    struct value v =
        quotient(row_metric_exact(s, r, "occupancy_pct"), most, 100, "no warp of it fits");
    if (v.state == VALUE_OK) v.why = most.why;
    return v;
}

/* ---- memory ---- */

static struct value conflicts(const struct session *s, const struct row *r)
{
    return quotient(row_metric_exact(s, r, "bank_conflicts"),
                    row_metric_exact(s, r, "shared_wavefronts"), 100,
                    "it used no shared memory through the load and store pipe");
}

static struct value dram(const struct session *s, const struct row *r)
{
    struct value v = row_metric_exact(s, r, "dram_read_bytes");
    struct value w = row_metric_exact(s, r, "dram_write_bytes");
    if (v.state != VALUE_OK) return v;
    if (w.state != VALUE_OK) return w;
    v.v += w.v;
    v.spread = -1; /* of a sum: not known */
    return v;
}

static struct value dram_by_least(const struct session *s, const struct row *r)
{
    if (!(r->def.bytes > 0)) return value_missing(VALUE_UNAVAILABLE, "its bytes are not known");
    return quotient(dram(s, r), value_ok(r->def.bytes, NULL), 1, "");
}

static struct value macs_by_byte(const struct session *s, const struct row *r)
{
    if (!(r->def.macs > 0))
        return value_missing(VALUE_UNAVAILABLE, "it is no matrix product: its work is not known");
    return quotient(value_ok(r->def.macs, "range"), dram(s, r), 1, "it moved nothing");
}

const struct exact_derived exact_derived[] = {
    {"inst_per_gmac", "inst by work", "/GMAC", "inst", "warp instructions for 10^9 multiply-adds",
     inst_by_work},
    {"cycles_per_gmac", "cycles by work", "/GMAC", "cycles_elapsed",
     "elapsed cycles for 10^9 multiply-adds", cycles_by_work},
    {"issue_per_scheduler", "issue a scheduler", "/cycle", "issue_pct",
     "instructions that a scheduler issues in a cycle with work, at most 1", issue},
    {"lanes", "lanes an inst", "", "thread_inst", "threads that take part in an instruction",
     lanes},
    {"mix_alu_pct", "mix: ALU", "%", "alu_inst", "part of the executed instructions", mix_alu},
    {"mix_fma_pct", "mix: FMA", "%", "fma_inst", "part of the executed instructions", mix_fma},
    {"mix_tensor_pct", "mix: tensor", "%", "tensor_inst", "part of the executed instructions",
     mix_tensor},
    {"mix_lsu_pct", "mix: load, store", "%", "lsu_inst", "part of the executed instructions",
     mix_lsu},
    {"mix_xu_pct", "mix: XU", "%", "xu_inst", "part of the executed instructions", mix_xu},
    {"mix_uniform_pct", "mix: uniform", "%", "uniform_inst", "part of the executed instructions",
     mix_uniform},
    {"mix_cbu_pct", "mix: branches", "%", "cbu_inst", "part of the executed instructions", mix_cbu},
    {"occupancy_most_pct", "occ% possible", "%", "occupancy_pct",
     "theoretical occupancy: warps that fit over the most that an SM holds", occupancy_most},
    {"occupancy_part_pct", "occ% of possible", "%", "occupancy_pct",
     "achieved occupancy over the theoretical one", occupancy_part},
    {"bank_conflict_pct", "bank conflicts", "%", "shared_wavefronts",
     "part of the shared memory wavefronts that conflicts cost", conflicts},
    {"conflicts_per_gmac", "conflicts by work", "/GMAC", "bank_conflicts",
     "extra shared memory cycles for 10^9 multiply-adds", conflicts_by_work},
    {"dram_bytes", "DRAM traffic", "B", "dram_read_bytes", "bytes read and written", dram},
    {"dram_over_least", "DRAM by least", "x", "dram_read_bytes",
     "DRAM traffic over the bytes that a launch must move at least; below 1 it came from L2",
     dram_by_least},
    {"macs_per_byte", "MAC a byte", "", "dram_read_bytes",
     "multiply-adds for a byte of DRAM traffic", macs_by_byte},
};

const uint32_t nexact_derived = sizeof exact_derived / sizeof exact_derived[0];
