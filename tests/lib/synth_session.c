/*
 * The made-up session, told in order: who runs what, eight generations of rounds, a fault between
 * the seventh and the eighth, the end. Times advance by what the made-up kernels would take.
 *
 * Invariant: everything follows from the seed; no clock, no address, no environment.
 * To add an event to the story: a call in synth_session(), and the fixture is written again with
 * ACCEPT=1.
 */
#include "synth_session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/record.h"
#include "synth_priv.h"

static void log_line(struct synth *g, uint8_t level, const char *text)
{
    struct msg_log m = {.level = level};
    snprintf(m.text, sizeof m.text, "%s", text);
    synth_emit(g, FRAME_LOG, &m);
}

static void hello(struct synth *g)
{
    struct msg_hello m = {.instance = ++g->instance,
                          .wall_ns = 1700000000000000000ull,
                          .session = "synthetic",
                          .backend = "cuda",
                          .device = "synthetic",
                          .chip = "synthetic",
                          .sm = 90,
                          .sms = 132,
                          .driver = "synthetic",
                          .toolkit = "synthetic",
                          .cupti = "synthetic",
                          .commit = "synthetic",
                          .command = "sasstop run --model synth:llama3-8b --bench pp512,tg64",
                          .memory = 80ull << 30,
                          .l2_bytes = 50u << 20,
                          .smem_optin = 227u << 10,
                          .clock_mhz = 1980,
                          .seed = 1};
    synth_emit(g, FRAME_HELLO, &m);
}

static void model(struct synth *g)
{
    struct msg_model m = {.name = "synth:llama3-8b",
                          .arch = "llama",
                          .quant = "Q4_K_M",
                          .layers = 32,
                          .d_model = 4096,
                          .d_ff = 14336,
                          .heads = 32,
                          .kv_heads = 8,
                          .head_dim = 128,
                          .vocab = 128256,
                          .params = 8030261248ull,
                          .bytes = 4912898304ull,
                          .hash = 0x5153544e54484554ull,
                          .workload = "pp512,tg64"};
    synth_emit(g, FRAME_MODEL, &m);
}

static void source(struct synth *g, const char *name, const char *state, const char *why,
                   const char *remedy)
{
    struct msg_source m = {0};
    snprintf(m.name, sizeof m.name, "%s", name);
    snprintf(m.state, sizeof m.state, "%s", state);
    snprintf(m.why, sizeof m.why, "%s", why);
    snprintf(m.remedy, sizeof m.remedy, "%s", remedy);
    synth_emit(g, FRAME_SOURCE, &m);
}

static void sources(struct synth *g)
{
    source(g, "events", "ok", "", "");
    source(g, "activity", "ok", "", "");
    source(g, "pm", "ok", "", "");
    source(g, "pc", "ok", "", "");
    source(g, "range", "ok", "", "");
    source(g, "sassexec", "off", "costs seven times the kernel's time: on request only",
           "sasstop run --sources sassexec");
}

static void kernel_def(struct synth *g, uint32_t number, const struct synth_variant *v,
                       const struct synth_op *op)
{
    struct msg_kernel_def m = {.kernel = number, .arch = 90, .cls = "q8", .threads = 256};

    if (v) {
        snprintf(m.name, sizeof m.name, "%s_kd%u", v->variant, v->kd);
        snprintf(m.family, sizeof m.family, "q4k_gemm");
        snprintf(m.variant, sizeof m.variant, "%s", v->variant);
        snprintf(m.note, sizeof m.note, "%s", v->note);
        m.kd = v->kd;
        m.regs = v->regs;
    } else {
        snprintf(m.name, sizeof m.name, "%s", op->kernel);
        snprintf(m.family, sizeof m.family, "%s", op->family);
        m.regs = 40;
    }
    m.code_hash = 0x1000000000000000ull + number;
    m.cubin_hash = 0x2000000000000000ull + number;
    synth_emit(g, FRAME_KERNEL_DEF, &m);
}

static void census(struct synth *g, uint32_t number, const struct synth_variant *v)
{
    struct buf items = {0};
    struct msg_census m = {.kernel = number, .arch = 90, .padding = 6};
    const struct {
        const char *opcode, *cls;
        uint32_t count, in_loop;
    } rows[] = {
        {"IMMA.16832.S8.S8.SAT", "tensor", v->imma * 2, v->imma},
        {"LDSM.16.M88.4", "shared load", 8, 8},
        {"LDS.32", "shared load", v->lds, v->lds},
        {"LDGSTS.E.BYPASS.128", "async copy", 12, 6},
        {"FFMA", "float", v->lds * 2, v->lds * 2},
        {"I2F.S32", "convert", v->lds, v->lds},
        {"LOP3.LUT", "logic", 74 + v->kd, 40},
        {"IMAD", "integer", 120 + v->kd * 3, 36},
        {"BAR.SYNC.DEFER_BLOCKING", "barrier", strcmp(v->variant, "nb") ? 3 : 2, 1},
        {"STG.E", "global store", 16, 0},
        {"BRA", "branch", 9, 1},
        {"EXIT", "branch", 2, 0},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        m.total += rows[i].count;
        pack_census_item(&items, rows[i].opcode, rows[i].cls, rows[i].count, rows[i].in_loop);
    }
    m.code_hash = 0x1000000000000000ull + number;
    m.items = (struct blob){items.data, (uint32_t)items.len};
    synth_emit(g, FRAME_CENSUS, &m);
    buf_free(&items);
}

static void definitions(struct synth *g)
{
    for (unsigned i = 0; i < synth_nmetrics; i++)
        synth_emit(g, FRAME_METRIC_DEF, &synth_metrics[i]);
    for (unsigned i = 0; i < synth_nvariants; i++) {
        const struct synth_variant *v = &synth_variants[i];
        struct msg_variant_def m = {.family = "q4k_gemm", .kd = v->kd, .ok = 1};
        snprintf(m.variant, sizeof m.variant, "%s", v->variant);
        snprintf(m.note, sizeof m.note, "%s", v->note);
        synth_emit(g, FRAME_VARIANT_DEF, &m);
        kernel_def(g, i, v, NULL);
        census(g, i, v);
    }
    struct msg_variant_def deep = {.family = "q4k_gemm",
                                   .variant = "deep",
                                   .kd = 8,
                                   .note = "three stages in flight",
                                   .why = "asks for 240 KiB of shared memory, 227 KiB are granted"};
    synth_emit(g, FRAME_VARIANT_DEF, &deep);
    for (unsigned i = 0; i < synth_nops; i++)
        if (synth_ops[i].kernel && synth_op_kernel(g, i) == synth_nvariants + i)
            kernel_def(g, synth_nvariants + i, NULL, &synth_ops[i]);
}

/* ---- a generation ---- */

static void rows(struct synth *g)
{
    for (unsigned i = 0; i < synth_nops; i++) {
        const struct synth_op *o = &synth_ops[i];
        bool product = strstr(o->family, "gem") != NULL;
        struct msg_row_def m = {.row = synth_row_number(g, i),
                                .kernel = synth_op_kernel(g, i),
                                .generation = g->generation,
                                .m = o->m,
                                .n = o->n,
                                .k = o->k,
                                .macs = product ? (double)o->m * o->n * o->k : 0,
                                .bytes = product ? o->m * (double)o->k * 0.5625 : 0,
                                .grid_x = o->m / 64 + 1,
                                .grid_y = 1,
                                .grid_z = 1,
                                .blocks_per_sm = 2};
        snprintf(m.role, sizeof m.role, "%s", o->role);
        snprintf(m.phase, sizeof m.phase, "%s", o->phase);
        if (g->generation == 3 && strcmp(o->role, "ffn_down") == 0 && !o->kernel) {
            m.kernel = 1; /* narrow_kd8 */
            snprintf(m.asked, sizeof m.asked, "wide_kd8");
            snprintf(m.why, sizeof m.why, "wide_kd8 asks for 240 KiB of shared memory");
        }
        synth_emit(g, FRAME_ROW_DEF, &m);
    }
}

static void command(struct synth *g, uint8_t force)
{
    struct msg_command m = {.verb = "flip", .family = "q4k_gemm", .kd = g->v->kd, .force = force};
    struct msg_reply r = {.verb = "flip", .ok = 1, .text = "parity ok on 4 shapes"};
    snprintf(m.variant, sizeof m.variant, "%s", g->v->variant);
    snprintf(m.origin, sizeof m.origin, "key");
    synth_emit(g, FRAME_COMMAND, &m);
    for (unsigned i = 0; i < 4; i++) {
        const struct synth_op *o = &synth_ops[i];
        struct msg_parity p = {
            .family = "q4k_gemm", .kd = g->v->kd, .m = o->m, .n = o->n, .k = o->k, .state = "ok"};
        p.nmse = 1e-14 * synth_about(g, 0.3);
        p.worst = 3e-6 * synth_about(g, 0.3);
        snprintf(p.variant, sizeof p.variant, "%s", g->v->variant);
        if (force && i == 3) {
            snprintf(p.state, sizeof p.state, "failed");
            snprintf(p.text, sizeof p.text, "17 outputs are off on the last column tile");
            p.nmse = 0.02;
            p.worst = 3.1;
        }
        g->t_ns += 90 * 1000 * 1000;
        synth_emit(g, FRAME_PARITY, &p);
    }
    if (force) snprintf(r.text, sizeof r.text, "parity failed, flipped by force");
    synth_emit(g, FRAME_REPLY, &r);
}

static void generation(struct synth *g, unsigned variant, const char *reason, uint8_t force)
{
    struct msg_generation m = {.generation = ++g->generation, .family = "q4k_gemm"};

    g->v = &synth_variants[variant];
    if (strcmp(reason, "flip") == 0) command(g, force);
    m.kd = g->v->kd;
    snprintf(m.variant, sizeof m.variant, "%s", g->v->variant);
    snprintf(m.reason, sizeof m.reason, "%s", reason);
    snprintf(m.parity, sizeof m.parity, "%s", force ? "forced" : "ok");
    synth_emit(g, FRAME_GENERATION, &m);
    rows(g);
}

/* ---- the story ---- */

static void fault(struct synth *g)
{
    struct msg_fault m = {.kind = "illegal access",
                          .family = "q4k_gemm",
                          .kd = g->v->kd,
                          .signal = 6,
                          .blames = 1,
                          .text = "the kernel read outside its buffers; everything so far is "
                                  "recorded; the engine starts again with the last good variant"};
    struct msg_drops d = {.type = FRAME_SPAN_AGG, .total = 3};
    snprintf(m.variant, sizeof m.variant, "%s", g->v->variant);
    synth_emit(g, FRAME_DROPS, &d);
    synth_emit(g, FRAME_FAULT, &m);
}

static void start_engine(struct synth *g)
{
    hello(g);
    model(g);
    sources(g);
    definitions(g);
}

enum status synth_session(struct buf *out, uint64_t seed)
{
    static const unsigned flips[] = {2, 5, 4, 1, 5, 3}; /* into synth_variants */
    struct synth g = {.out = out, .rng = seed, .v = synth_variants};
    struct msg_mark note = {.kind = "note", .text = "nb holds its lead at KD 8"};
    struct msg_bye bye = {.status = 0, .text = "asked to leave"};

    start_engine(&g);
    log_line(&g, 0, "weights of 4.9 GB made up in no time");
    generation(&g, 0, "start", 0);
    synth_rounds(&g);
    for (unsigned i = 0; i < sizeof flips / sizeof *flips; i++) {
        generation(&g, flips[i], "flip", i == 5);
        if (i == 5) {
            synth_timed_round(&g);
            break;
        }
        synth_rounds(&g);
        if (i == 4) synth_emit(&g, FRAME_MARK, &note);
    }
    fault(&g);
    g.t_ns += 1200 * 1000 * 1000;
    start_engine(&g);
    generation(&g, 5, "restart", 0);
    synth_rounds(&g);
    log_line(&g, 1, "SM clock fell by 15 MHz");
    synth_emit(&g, FRAME_BYE, &bye);
    return g.st;
}

enum status synth_session_file(const char *path, uint64_t seed)
{
    struct buf b = {0};
    struct recorder *r = NULL;
    struct frame f;
    size_t at = 0, used;

    enum status st = synth_session(&b, seed);
    if (st == OK) st = recorder_open(path, &r);
    while (st == OK && at < b.len && (st = proto_next(b.data + at, b.len - at, &f, &used)) == OK) {
        st = recorder_add(r, b.data + at, used, f.t_ns);
        at += used;
    }
    enum status closed = recorder_close(r);
    buf_free(&b);
    return st == OK ? closed : st;
}

enum status synth_fold(struct session *s, const uint8_t *p, size_t n)
{
    size_t at = 0, used;
    struct frame f;
    enum status st = OK;

    while (st == OK && at < n) {
        enum status next = proto_next(p + at, n - at, &f, &used);
        if (next == ERR_AGAIN) break;
        if (next == OK) st = session_apply(s, &f);
        at += used;
    }
    return st;
}
