/*
 * pc: continuous PC sampling in windows, with start/stop control: stall reasons per instruction.
 *
 * Arm, start, stop and disarm belong to the launching thread between rounds: a start from another
 * thread, with kernels being launched, never returned. The first start after arm takes about 0.1 s,
 * later ones 0.1 ms. The worker's wake-up is set to 10 ms: at its default of 100 ms nothing had
 * arrived right after a window.
 *
 * Two buffers of equal shape: `left` is given to CUPTI at arm and receives what is left at disable;
 * `get` is what each read fills. Both live from the first arm to close, since CUPTI keeps the
 * pointer. Function names belong to CUPTI and are shared between records: they are never freed
 * here.
 */
#include "cupti/pc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cupti/sources.h"

enum { REASONS_MAX = 128, READS_MAX = 1024, WORKER_MS = 10 };

struct pc {
    struct counter_source src;
    struct counter_config cfg;
    struct cupti_pc_data left, get;
    size_t pcs; /* room in each */
    size_t raw_count;
    uint32_t raw_index[REASONS_MAX]; /* CUPTI's index of raw reason i */
    uint8_t raw_slot[REASONS_MAX];   /* its place in names */
    bool raw_twin[REASONS_MAX];
    size_t n; /* normalised reasons */
    char names[REASONS_MAX][CUPTI_STALL_NAME_SIZE];
    struct counter_window w;
    bool mute; /* priming: nothing is delivered */
};

void pc_reason_name(const char *raw, char *out, size_t size, bool *not_issued)
{
    static const char mark[] = "issue_stalled_", twin[] = "_not_issued";
    static const char *const same[][2] = {
        {"no_instructions", "no_instruction"},
        {"branch_resolve", "branch_resolving"},
        {"dispatch", "dispatch_stall"},
    };
    const char *p = strstr(raw, mark);
    snprintf(out, size, "%s", p ? p + sizeof mark - 1 : raw);
    size_t n = strlen(out), t = sizeof twin - 1;
    *not_issued = n > t && strcmp(out + n - t, twin) == 0;
    if (*not_issued) out[n - t] = '\0';
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (strcmp(out, same[i][0]) == 0) snprintf(out, size, "%s", same[i][1]);
}

enum status pc_cubin_crc(const struct cupti_lib *lib, const void *cubin, size_t size, uint64_t *crc)
{
    if (!lib->cubin_crc) return err_set(ERR_UNAVAILABLE, "this CUPTI has no cuptiGetCubinCrc");
    struct cupti_crc_params p = {
        .size = CUPTI_SIZE(struct cupti_crc_params, crc), .cubin_size = size, .cubin = cubin};
    enum status st = cupti_check(lib, lib->cubin_crc(&p), "checksum of a cubin");
    *crc = p.crc;
    return st;
}

static void probe(struct counter_source *src)
{
    if (!counter_has_lib(src, "pc_") || !counter_supported(src, CUPTI_API_PC)) return;
    counter_set_state(src, COUNTER_READY, NULL, NULL);
}

static enum status configure(struct counter_source *src, const struct counter_config *cfg)
{
    struct pc *p = (struct pc *)src;
    if (cfg->pc_period_log2 && (cfg->pc_period_log2 < 5 || cfg->pc_period_log2 > 31))
        return err_set(ERR_USAGE, "pc: the sampling period is 2^5 to 2^31 cycles");
    p->cfg = *cfg;
    return OK;
}

/* ---- arming ---- */

static enum status make_buffer(struct cupti_pc_data *d, size_t pcs)
{
    struct cupti_pc_record *r = calloc(pcs, sizeof *r);
    struct cupti_pc_stall *s = calloc(pcs * REASONS_MAX, sizeof *s);
    if (!r || !s) {
        free(r);
        free(s);
        return err_set(ERR_NOMEM, "out of memory: buffer of %zu sampled instructions", pcs);
    }
    for (size_t i = 0; i < pcs; i++) r[i].stalls = s + i * REASONS_MAX;
    *d = (struct cupti_pc_data){.size = sizeof *d, .max_pcs = pcs, .records = r};
    return OK;
}

static void free_buffer(struct cupti_pc_data *d)
{
    if (d->records) free(d->records[0].stalls);
    free(d->records);
}

static enum status make_buffers(struct pc *p)
{
    if (p->get.records) return OK;
    p->pcs = counter_pick(p->cfg.pc_max_pcs, PC_MAX_PCS, 64, PC_MAX_PCS_LIMIT);
    enum status st = make_buffer(&p->left, p->pcs);
    return st == OK ? make_buffer(&p->get, p->pcs) : st;
}

static size_t slot_of(struct pc *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->names[i], name) == 0) return i;
    snprintf(p->names[p->n], sizeof p->names[0], "%s", name);
    return p->n++;
}

/* Asks which reasons this GPU has; once. */
static enum status read_reasons(struct pc *p)
{
    const struct cupti_lib *lib = p->src.env.lib;
    if (p->raw_count) return OK;
    size_t n = 0;
    struct cupti_pc_reason_count_params c = {.size = sizeof c, .ctx = p->src.env.ctx, .n = &n};
    enum status st = cupti_check(lib, lib->pc_reason_count(&c), "counting stall reasons");
    if (st != OK) return st;
    if (n == 0 || n > REASONS_MAX)
        return err_set(ERR_UNAVAILABLE, "PC sampling: %zu stall reasons, 1 to %d can be handled", n,
                       REASONS_MAX);
    char *text = calloc(n, CUPTI_STALL_NAME_SIZE);
    char **names = calloc(n, sizeof *names);
    if (!text || !names) {
        st = err_set(ERR_NOMEM, "out of memory: stall reasons");
        goto out;
    }
    for (size_t i = 0; i < n; i++) names[i] = text + i * CUPTI_STALL_NAME_SIZE;
    struct cupti_pc_reasons_params g = {
        .size = sizeof g, .ctx = p->src.env.ctx, .n = n, .indices = p->raw_index, .names = names};
    st = cupti_check(lib, lib->pc_reasons(&g), "naming stall reasons");
    if (st != OK) goto out;
    for (size_t i = 0; i < n; i++) {
        char name[CUPTI_STALL_NAME_SIZE];
        names[i][CUPTI_STALL_NAME_SIZE - 1] = '\0';
        pc_reason_name(names[i], name, sizeof name, &p->raw_twin[i]);
        p->raw_slot[i] = (uint8_t)slot_of(p, name);
    }
    p->raw_count = n;
    snprintf(p->src.state.detail, sizeof p->src.state.detail,
             "%zu stall reasons, every 2^%u cycles", p->n,
             p->cfg.pc_period_log2 ? p->cfg.pc_period_log2 : PC_PERIOD_LOG2);
out:
    free(text);
    free(names);
    return st;
}

static enum status set_config(struct pc *p)
{
    struct cupti_pc_attr a[] = {
        {.type = CUPTI_PC_ATTR_MODE, .v.u32 = CUPTI_PC_CONTINUOUS},
        {.type = CUPTI_PC_ATTR_PERIOD,
         .v.u32 = p->cfg.pc_period_log2 ? p->cfg.pc_period_log2 : PC_PERIOD_LOG2},
        {.type = CUPTI_PC_ATTR_DATA_BUFFER, .v.pointer = &p->left},
        {.type = CUPTI_PC_ATTR_HARDWARE_BUFFER,
         .v.bytes = counter_pick(p->cfg.pc_buffer, COUNTER_BUFFER, 1 << 20, 1ull << 30)},
        {.type = CUPTI_PC_ATTR_START_STOP, .v.u32 = 1},
        {.type = CUPTI_PC_ATTR_WORKER_SLEEP, .v.u32 = WORKER_MS},
    };
    struct cupti_pc_config_params c = {
        .size = sizeof c, .ctx = p->src.env.ctx, .n = sizeof a / sizeof a[0], .attrs = a};
    return cupti_check(p->src.env.lib, p->src.env.lib->pc_config(&c), "configuring PC sampling");
}

static enum status arm(struct counter_source *src)
{
    struct pc *p = (struct pc *)src;
    enum status st = make_buffers(p); /* before enable: enable and config stay adjacent */
    if (st != OK) return st;
    struct cupti_pc_params e = {.size = sizeof e, .ctx = src->env.ctx};
    st = cupti_check(src->env.lib, src->env.lib->pc_enable(&e), "enabling PC sampling");
    if (st != OK) return st;
    p->left.pcs = 0;
    st = read_reasons(p);
    if (st == OK) st = set_config(p);
    if (st != OK) src->env.lib->pc_disable(&e); /* the first message stays */
    return st;
}

/* ---- windows ---- */

static enum status start(struct counter_source *src)
{
    struct pc *p = (struct pc *)src;
    p->w = (struct counter_window){
        .role = COUNTER_PC, .window = src->windows, .start_ns = clock_wall_ns()};
    struct cupti_pc_params s = {.size = sizeof s, .ctx = src->env.ctx};
    return cupti_check(src->env.lib, src->env.lib->pc_start(&s), "starting PC sampling");
}

static size_t raw_of(const struct pc *p, uint32_t index)
{
    for (size_t i = 0; i < p->raw_count; i++)
        if (p->raw_index[i] == index) return i;
    return p->raw_count;
}

static void deliver(struct pc *p, const struct cupti_pc_record *r)
{
    struct counter_stall all[REASONS_MAX] = {{0}}, some[REASONS_MAX];
    size_t count = r->stall_count < REASONS_MAX ? r->stall_count : REASONS_MAX;
    for (size_t k = 0; k < count; k++) {
        size_t raw = raw_of(p, r->stalls[k].reason);
        p->w.items += r->stalls[k].samples;
        if (raw == p->raw_count) continue; /* an index never named: stays in items only */
        struct counter_stall *s = &all[p->raw_slot[raw]];
        *(p->raw_twin[raw] ? &s->not_issued : &s->samples) += r->stalls[k].samples;
    }
    struct counter_pc out = {.window = p->w.window,
                             .function = r->function ? r->function : "",
                             .cubin_crc = r->cubin_crc,
                             .pc = r->pc,
                             .stalls = some};
    for (size_t i = 0; i < p->n; i++)
        if (all[i].samples || all[i].not_issued) {
            all[i].reason = p->names[i];
            some[out.n++] = all[i];
        }
    if (out.n && !p->mute && p->src.env.sink.pc) p->src.env.sink.pc(p->src.env.sink.user, &out);
}

static void take(struct pc *p, const struct cupti_pc_data *d)
{
    size_t n = d->pcs < p->pcs ? d->pcs : p->pcs;
    for (size_t i = 0; i < n; i++) deliver(p, &d->records[i]);
    p->w.reported += d->total_samples;
    p->w.dropped += d->dropped_samples;
    p->w.other += d->other_samples;
    if (d->hardware_full) p->w.overflow = true;
}

/* Reads until nothing remains. */
static enum status drain(struct pc *p)
{
    for (int i = 0; i < READS_MAX; i++) {
        struct cupti_pc_data_params g = {.size = sizeof g, .ctx = p->src.env.ctx, .data = &p->get};
        p->get.pcs = p->get.remaining_pcs = 0;
        p->get.total_samples = p->get.dropped_samples = p->get.other_samples = 0;
        p->get.hardware_full = 0;
        for (size_t k = 0; k < p->pcs; k++) p->get.records[k].stall_count = 0;
        cupti_result r = p->src.env.lib->pc_data(&g);
        if (r == CUPTI_R_OUT_OF_MEMORY) p->w.overflow = true;
        if (r != CUPTI_R_SUCCESS && r != CUPTI_R_OUT_OF_MEMORY)
            return cupti_check(p->src.env.lib, r, "reading PC samples");
        take(p, &p->get);
        if (p->get.remaining_pcs == 0 || p->get.pcs == 0) break;
    }
    return OK;
}

static void report(struct pc *p)
{
    if (!p->mute && p->src.env.sink.window) p->src.env.sink.window(p->src.env.sink.user, &p->w);
}

static enum status stop(struct counter_source *src)
{
    struct pc *p = (struct pc *)src;
    struct cupti_pc_params s = {.size = sizeof s, .ctx = src->env.ctx};
    enum status st = cupti_check(src->env.lib, src->env.lib->pc_stop(&s), "stopping PC sampling");
    p->w.end_ns = clock_wall_ns();
    if (st == OK) st = drain(p);
    p->w.decode_ns = clock_wall_ns() - p->w.end_ns;
    report(p);
    return st;
}

/* What came after the last read. */
static enum status disarm(struct counter_source *src)
{
    struct pc *p = (struct pc *)src;
    struct cupti_pc_params d = {.size = sizeof d, .ctx = src->env.ctx};
    enum status st =
        cupti_check(src->env.lib, src->env.lib->pc_disable(&d), "disabling PC sampling");
    if (p->left.pcs == 0) return st;
    p->w = (struct counter_window){.role = COUNTER_PC,
                                   .window = p->w.window,
                                   .start_ns = p->w.start_ns,
                                   .end_ns = p->w.end_ns};
    take(p, &p->left);
    p->left.pcs = 0;
    report(p);
    return st;
}

enum status pc_prime(struct counter_source *src, enum status (*work)(void *), void *ctx)
{
    struct pc *p = (struct pc *)src;
    if (src->ops != &counter_pc_ops || src->state.health != COUNTER_READY) return OK;
    p->mute = true;
    enum status st = counter_arm(src);
    if (st == OK) st = counter_start(src);
    if (st == OK) st = work(ctx);
    if (src->started && counter_stop(src) != OK && st == OK) st = ERR_FAILED;
    if (src->armed && counter_disarm(src) != OK && st == OK) st = ERR_FAILED;
    p->mute = false;
    src->windows = 0;
    return st;
}

static void close_(struct counter_source *src)
{
    struct pc *p = (struct pc *)src;
    free_buffer(&p->left);
    free_buffer(&p->get);
}

const struct counter_source_ops counter_pc_ops = {
    .name = "pc",
    .role = COUNTER_PC,
    .size = sizeof(struct pc),
    .probe = probe,
    .configure = configure,
    .arm = arm,
    .start = start,
    .stop = stop,
    .disarm = disarm,
    .close = close_,
};
