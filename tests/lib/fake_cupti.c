/* A CUPTI made of paper: see fake_cupti.h. */
#include "tests/lib/fake_cupti.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_cupti fake_cupti;

enum { MAX_NAMES = 64, MAX_RANGES = 64, MAX_RECORDS = 512 };

struct host {
    size_t names, adds;
    bool poisoned;
};

/* What the fake writes at the head of a counter image or configuration. */
struct image {
    uint64_t magic, first, n;
};
#define MAGIC 0x46414b4543555054ull

static struct {
    size_t pm_pending, pm_next, pm_room;
    bool pm_configured, pm_running;
    bool pc_configured, pc_running, pc_ever_started, pc_dead;
    size_t pc_pending, pc_next;
    struct cupti_pc_data *pc_left;
    bool range_configured, range_running, range_pushed;
    size_t range_pass, range_pushes;
    char range_names[MAX_RANGES][24];
    cupti_buffer_request request;
    cupti_buffer_complete complete;
    struct cupti_kernel_record rec[MAX_RECORDS];
    size_t records, dropped;
    uint32_t correlation;
    uint64_t clock;
} s;

void fake_cupti_reset(void)
{
    memset(&s, 0, sizeof s);
    memset(&fake_cupti, 0, sizeof fake_cupti);
    fake_cupti.pm_samples = 600;
    fake_cupti.pc_pcs = 100;
    fake_cupti.passes = 1;
    s.clock = 1000000000;
}

/* ---- scripting ---- */

static long scripted(const char *what, long missing)
{
    const char *p = getenv("FAKE_CUPTI");
    size_t n = strlen(what);
    for (; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, what, n) == 0 && p[n] == '=') return strtol(p + n + 1, NULL, 10);
    return missing;
}

/* Counts the call; gives the scripted answer. */
static cupti_result called(const char *symbol)
{
    fake_cupti.calls++;
    return (cupti_result)scripted(symbol, 0);
}

static cupti_result wrong(cupti_result r, const char *why)
{
    fake_cupti.violations++;
    snprintf(fake_cupti.last_violation, sizeof fake_cupti.last_violation, "%.79s", why);
    return r;
}

#define ANSWER(symbol)                                                                             \
    do {                                                                                           \
        cupti_result r_ = called(symbol);                                                          \
        if (r_) return r_;                                                                         \
    } while (0)
#define RULE(cond, result)                                                                         \
    do {                                                                                           \
        if (!(cond)) return wrong(result, #cond);                                                  \
    } while (0)

/* ---- target ---- */

static cupti_result fake_get_version(uint32_t *v)
{
    *v = (uint32_t)scripted("version", 130001);
    return 0;
}

static cupti_result fake_result_string(cupti_result r, const char **text)
{
    (void)r;
    *text = "FAKE_RESULT";
    return 0;
}

static cupti_result fake_subscribe(void **sub, cupti_callback f, void *user,
                                   struct cupti_subscriber_params *p)
{
    (void)f, (void)user;
    *sub = NULL;
    cupti_result r = called("cuptiSubscribe_v2");
    if (r == CUPTI_R_MULTIPLE_SUBSCRIBERS && p->old_name)
        snprintf(p->old_name, p->old_size, "Nsight Systems");
    if (r) return r;
    *sub = &s;
    return 0;
}

static cupti_result fake_unsubscribe(void *sub)
{
    (void)sub;
    return called("cuptiUnsubscribe");
}

static cupti_result fake_profiler_init(struct cupti_plain_params *p)
{
    RULE(p->size == sizeof *p, CUPTI_R_INVALID_PARAMETER);
    return called("cuptiProfilerInitialize");
}

static cupti_result fake_profiler_supported(struct cupti_support_params *p)
{
    ANSWER("cuptiProfilerDeviceSupported");
    p->supported = p->architecture = p->sli = p->vgpu = p->confidential = p->cmp = p->wsl =
        CUPTI_SUPPORT_YES;
    if (scripted("confidential", 0)) p->supported = p->confidential = CUPTI_SUPPORT_NO;
    if (scripted("vgpu", 0)) p->supported = p->vgpu = CUPTI_SUPPORT_DISABLED;
    if (scripted("wsl", 0)) p->supported = p->wsl = CUPTI_SUPPORT_NO;
    return 0;
}

static cupti_result fake_chip_name(struct cupti_chip_params *p)
{
    ANSWER("cuptiDeviceGetChipName");
    p->chip = scripted("newchip", 0) ? "GX999" : "GH100";
    return 0;
}

/* ---- activity ---- */

static cupti_result fake_activity_enable(int kind)
{
    ANSWER("cuptiActivityEnable");
    RULE(kind == CUPTI_KIND_CONCURRENT_KERNEL && s.request, CUPTI_R_INVALID_PARAMETER);
    fake_cupti.activity_on = true;
    return 0;
}

static cupti_result fake_activity_disable(int kind)
{
    (void)kind;
    fake_cupti.activity_on = false;
    return called("cuptiActivityDisable");
}

static cupti_result fake_activity_callbacks(cupti_buffer_request q, cupti_buffer_complete c)
{
    ANSWER("cuptiActivityRegisterCallbacks");
    s.request = q;
    s.complete = c;
    return 0;
}

static cupti_result fake_activity_attribute(int a, size_t *size, void *v)
{
    (void)a, (void)size, (void)v;
    return called("cuptiActivitySetAttribute");
}

void fake_cupti_launch(const char *kernel, bool invalid)
{
    s.correlation++;
    s.clock += 1000;
    if (!fake_cupti.activity_on) return;
    if (s.records == MAX_RECORDS) {
        s.dropped++;
        return;
    }
    s.rec[s.records++] = (struct cupti_kernel_record){.kind = CUPTI_KIND_CONCURRENT_KERNEL,
                                                      .start = invalid ? 0 : s.clock,
                                                      .end = invalid ? 0 : s.clock + 5000,
                                                      .grid = {1, 1, 1},
                                                      .block = {32, 1, 1},
                                                      .correlation = s.correlation,
                                                      .name = kernel};
    s.clock += 5000;
}

/* Hands the records over last first: CUPTI promises no order. Buffers hold `room` records each. */
static cupti_result fake_activity_flush(uint32_t flag)
{
    (void)flag;
    ANSWER("cuptiActivityFlushAll");
    size_t per = (size_t)scripted("records_per_buffer", 100);
    while (s.records > 0) {
        uint8_t *b = NULL;
        size_t size = 0, max = 0, n = 0;
        s.request(&b, &size, &max);
        if (!b) {
            s.dropped += s.records;
            s.records = 0;
            break;
        }
        for (; s.records > 0 && n < per && (n + 1) * sizeof s.rec[0] <= size; n++)
            memcpy(b + n * sizeof s.rec[0], &s.rec[--s.records], sizeof s.rec[0]);
        s.complete(NULL, 0, b, size, n * sizeof s.rec[0]);
    }
    return 0;
}

static cupti_result fake_activity_next(uint8_t *b, size_t valid, struct cupti_activity **rec)
{
    uint8_t *next = *rec ? (uint8_t *)*rec + sizeof s.rec[0] : b;
    if (next + sizeof s.rec[0] > b + valid) return CUPTI_R_MAX_LIMIT_REACHED;
    *rec = (struct cupti_activity *)next;
    return 0;
}

static cupti_result fake_activity_dropped(void *ctx, uint32_t stream, size_t *n)
{
    (void)ctx, (void)stream;
    *n = s.dropped;
    s.dropped = 0;
    return 0;
}

/* ---- host ---- */

static cupti_result fake_host_init(struct cupti_host_init_params *p)
{
    ANSWER("cuptiProfilerHostInitialize");
    if (strcmp(p->chip, "GH100") != 0) return CUPTI_R_INVALID_CHIP;
    p->host = calloc(1, sizeof(struct host));
    fake_cupti.hosts++;
    return 0;
}

static cupti_result fake_host_deinit(struct cupti_host_params *p)
{
    free(p->host);
    fake_cupti.hosts--;
    return 0;
}

static cupti_result fake_host_chips(struct cupti_host_chips_params *p)
{
    static const char *const chips[] = {"GH100"};
    p->n = 1;
    p->names = chips;
    return 0;
}

/* One unknown name poisons the object: later adds give 999, the image holds the earlier names only.
 */
static cupti_result fake_host_add(struct cupti_host_add_params *p)
{
    struct host *h = p->host;
    ANSWER("cuptiProfilerHostConfigAddMetrics");
    if (h->poisoned) return wrong(CUPTI_R_UNKNOWN, "add to a poisoned host object");
    h->adds++;
    for (size_t i = 0; i < p->n; i++) {
        if (scripted("nodram", 0) && strstr(p->names[i], "dram")) h->poisoned = true;
        if (scripted("notriage", 0) && strstr(p->names[i], "Triage")) h->poisoned = true;
        if (h->poisoned) return CUPTI_R_INVALID_PARAMETER;
        h->names++;
    }
    return 0;
}

static cupti_result fake_host_image_size(struct cupti_host_image_size_params *p)
{
    p->image_size = sizeof(struct image);
    return 0;
}

static cupti_result fake_host_image(struct cupti_host_image_params *p)
{
    const struct host *h = p->host;
    *(struct image *)p->image = (struct image){MAGIC, h->adds, h->names};
    return 0;
}

/* Names added in calls of their own take a pass each; beyond 12 in one call they don't fit either.
 */
static cupti_result fake_host_passes(struct cupti_host_passes_params *p)
{
    const struct image *i = (const struct image *)p->image;
    RULE(i->magic == MAGIC, CUPTI_R_INVALID_PARAMETER);
    p->passes = i->first > 1 ? i->first : (i->n + 19) / 20;
    return 0;
}

static cupti_result fake_host_eval(struct cupti_host_eval_params *p)
{
    const struct image *i = (const struct image *)p->image;
    RULE(i->magic == MAGIC && p->range < i->n, CUPTI_R_INVALID_PARAMETER);
    for (size_t m = 0; m < p->n; m++)
        p->values[m] = (double)(i->first + p->range) + (double)m / 100;
    return 0;
}

static cupti_result fake_host_range_name(struct cupti_host_range_name_params *p)
{
    size_t i = s.range_pushes - 1 - p->range; /* not in the order of the pushes */
    p->name = p->range < s.range_pushes ? strdup(s.range_names[i]) : NULL;
    return p->name ? 0 : CUPTI_R_INVALID_PARAMETER;
}

/* ---- range profiler ---- */

static cupti_result fake_range_enable(struct cupti_range_enable_params *p)
{
    ANSWER("cuptiRangeProfilerEnable");
    RULE(!fake_cupti.range_enabled, CUPTI_R_INVALID_OPERATION);
    RULE(!fake_cupti.pm_enabled && !fake_cupti.pc_enabled, CUPTI_R_HARDWARE_BUSY);
    fake_cupti.range_enabled = true;
    s.range_configured = s.range_running = s.range_pushed = false;
    s.range_pass = s.range_pushes = 0;
    p->object = &s;
    return 0;
}

static cupti_result fake_range_disable(struct cupti_range_params *p)
{
    (void)p;
    RULE(fake_cupti.range_enabled && !s.range_running, CUPTI_R_INVALID_OPERATION);
    fake_cupti.range_enabled = false;
    return called("cuptiRangeProfilerDisable");
}

static cupti_result fake_range_start(struct cupti_range_params *p)
{
    (void)p;
    ANSWER("cuptiRangeProfilerStart");
    RULE(s.range_configured && !s.range_running, CUPTI_R_INVALID_OPERATION);
    s.range_running = true;
    s.range_pushes = 0;
    return 0;
}

static cupti_result fake_range_stop(struct cupti_range_stop_params *p)
{
    ANSWER("cuptiRangeProfilerStop");
    RULE(s.range_running && !s.range_pushed, CUPTI_R_INVALID_OPERATION);
    s.range_running = false;
    p->all_passes = ++s.range_pass >= fake_cupti.passes;
    return 0;
}

static cupti_result fake_range_push(struct cupti_range_push_params *p)
{
    RULE(s.range_running && !s.range_pushed && s.range_pushes < MAX_RANGES,
         CUPTI_R_INVALID_OPERATION);
    s.range_pushed = true;
    snprintf(s.range_names[s.range_pushes++], sizeof s.range_names[0], "%s", p->name);
    return 0;
}

static cupti_result fake_range_pop(struct cupti_range_params *p)
{
    (void)p;
    RULE(s.range_pushed, CUPTI_R_INVALID_OPERATION);
    s.range_pushed = false;
    return 0;
}

static cupti_result fake_range_config(struct cupti_range_config_params *p)
{
    ANSWER("cuptiRangeProfilerSetConfig");
    RULE(fake_cupti.range_enabled && !s.range_configured, CUPTI_R_INVALID_OPERATION);
    RULE(p->target_nesting == 1 && p->range == CUPTI_USER_RANGE && p->replay == CUPTI_USER_REPLAY,
         CUPTI_R_INVALID_PARAMETER);
    s.range_configured = true;
    return 0;
}

static cupti_result fake_range_decode(struct cupti_range_decode_params *p)
{
    ANSWER("cuptiRangeProfilerDecodeData");
    RULE(s.range_pass >= fake_cupti.passes, CUPTI_R_INVALID_OPERATION);
    p->dropped = (size_t)scripted("range_dropped", 0);
    return 0;
}

static cupti_result fake_range_size(struct cupti_range_size_params *p)
{
    p->image_size = sizeof(struct image);
    return 0;
}

static cupti_result fake_range_image(struct cupti_range_image_params *p)
{
    *(struct image *)p->image = (struct image){MAGIC, 1000, MAX_RANGES};
    return 0;
}

static cupti_result fake_range_info(struct cupti_range_info_params *p)
{
    p->ranges = s.range_pushes;
    return 0;
}

/* ---- PM sampling ---- */

static cupti_result fake_pm_enable(struct cupti_pm_enable_params *p)
{
    ANSWER("cuptiPmSamplingEnable");
    RULE(!fake_cupti.pm_enabled, CUPTI_R_INVALID_OPERATION);
    fake_cupti.pm_enabled = true;
    s.pm_configured = s.pm_running = false;
    s.pm_pending = 0;
    p->object = &s;
    return 0;
}

static cupti_result fake_pm_disable(struct cupti_pm_params *p)
{
    RULE(fake_cupti.pm_enabled && !s.pm_running && p->object == &s, CUPTI_R_INVALID_OPERATION);
    RULE(s.pm_pending == 0, CUPTI_R_SUCCESS); /* legal, but what was not decoded is lost */
    fake_cupti.pm_enabled = false;
    return called("cuptiPmSamplingDisable");
}

static cupti_result fake_pm_config(struct cupti_pm_config_params *p)
{
    RULE(fake_cupti.pm_enabled, CUPTI_R_INVALID_OPERATION);
    ANSWER("cuptiPmSamplingSetConfig");
    if (s.pc_ever_started && fake_cupti.pc_enabled)
        return wrong(CUPTI_R_HARDWARE_BUSY, "pm after pc");
    if (scripted("notimer", 0) && p->trigger == CUPTI_PM_TRIGGER_TIME) return CUPTI_R_NOT_SUPPORTED;
    s.pm_configured = true;
    return 0;
}

static cupti_result fake_pm_start(struct cupti_pm_params *p)
{
    (void)p;
    ANSWER("cuptiPmSamplingStart");
    RULE(s.pm_configured && !s.pm_running && s.pm_pending == 0, CUPTI_R_INVALID_OPERATION);
    s.pm_running = true;
    return 0;
}

static cupti_result fake_pm_stop(struct cupti_pm_params *p)
{
    (void)p;
    ANSWER("cuptiPmSamplingStop");
    RULE(s.pm_running, CUPTI_R_INVALID_OPERATION);
    s.pm_running = false;
    s.pm_pending = fake_cupti.pm_samples;
    s.pm_next = 0;
    return 0;
}

static cupti_result fake_pm_size(struct cupti_pm_size_params *p)
{
    s.pm_room = p->max_samples;
    p->image_size = sizeof(struct image) + 8 * p->max_samples;
    return 0;
}

static cupti_result fake_pm_image(struct cupti_pm_image_params *p)
{
    *(struct image *)p->image = (struct image){.magic = MAGIC};
    return 0;
}

static cupti_result fake_pm_decode(struct cupti_pm_decode_params *p)
{
    struct image *i = (struct image *)p->image;
    RULE(i->magic == MAGIC && i->n == 0, CUPTI_R_INVALID_PARAMETER);
    size_t n = s.pm_pending < s.pm_room ? s.pm_pending : s.pm_room;
    *i = (struct image){MAGIC, s.pm_next, n};
    s.pm_next += n;
    s.pm_pending -= n;
    p->stop_reason = s.pm_pending ? CUPTI_PM_STOP_IMAGE_FULL : CUPTI_PM_STOP_END;
    p->overflow = 0;
    if (scripted("overflow", 0)) {
        s.pm_pending = 0;
        p->overflow = scripted("overflow", 0) == 1;
        return p->overflow ? CUPTI_R_OUT_OF_MEMORY : CUPTI_R_UNKNOWN;
    }
    return called("cuptiPmSamplingDecodeData");
}

static cupti_result fake_pm_info(struct cupti_pm_info_params *p)
{
    const struct image *i = (const struct image *)p->image;
    p->total = s.pm_room;
    p->populated = p->completed = i->n;
    return 0;
}

static cupti_result fake_pm_sample(struct cupti_pm_sample_params *p)
{
    const struct image *i = (const struct image *)p->image;
    p->start = 5000000000ull + (i->first + p->index) * 20000;
    p->end = p->start + 20000;
    return 0;
}

/* ---- PC sampling ---- */

static const char *const raw_reasons[] = {
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
    "smsp__pcsamp_warps_issue_stalled_no_instructions",
    "smsp__pcsamp_warps_issue_stalled_no_instructions_not_issued",
    "smsp__pcsamp_warps_issue_stalled_selected",
};
enum { RAW = sizeof raw_reasons / sizeof raw_reasons[0] };

static cupti_result fake_pc_enable(struct cupti_pc_params *p)
{
    (void)p;
    ANSWER("cuptiPCSamplingEnable");
    RULE(!fake_cupti.pc_enabled, CUPTI_R_INVALID_OPERATION);
    fake_cupti.pc_enabled = true;
    s.pc_configured = s.pc_running = s.pc_ever_started = s.pc_dead = false;
    s.pc_left = NULL;
    s.pc_pending = s.pc_next = 0;
    return 0;
}

static void fill(struct cupti_pc_data *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct cupti_pc_record *r = &d->records[i];
        r->cubin_crc = 77;
        r->pc = (s.pc_next + i) * 16;
        r->function = (s.pc_next + i) % 2 ? "kernel_b" : "kernel_a";
        r->stall_count = RAW;
        for (uint32_t k = 0; k < RAW; k++) r->stalls[k] = (struct cupti_pc_stall){k + 10, k + 1};
    }
    d->pcs = n;
    d->total_samples = n * 15 + 4;
    d->other_samples = 4;
    s.pc_next += n;
}

static cupti_result fake_pc_disable(struct cupti_pc_params *p)
{
    (void)p;
    RULE(fake_cupti.pc_enabled, CUPTI_R_INVALID_OPERATION);
    fake_cupti.pc_enabled = s.pc_running = false;
    if (fake_cupti.pc_late && s.pc_left) fill(s.pc_left, fake_cupti.pc_late);
    return called("cuptiPCSamplingDisable");
}

static cupti_result fake_pc_start(struct cupti_pc_params *p)
{
    (void)p;
    ANSWER("cuptiPCSamplingStart");
    RULE(s.pc_configured && !s.pc_running, CUPTI_R_INVALID_OPERATION);
    if (fake_cupti.pm_enabled) s.pc_dead = true; /* and it stays dead */
    RULE(!s.pc_dead, CUPTI_R_HARDWARE_BUSY);
    s.pc_running = s.pc_ever_started = true;
    return 0;
}

static cupti_result fake_pc_stop(struct cupti_pc_params *p)
{
    (void)p;
    ANSWER("cuptiPCSamplingStop");
    RULE(s.pc_running, CUPTI_R_INVALID_OPERATION);
    s.pc_running = false;
    s.pc_pending += fake_cupti.pc_pcs;
    return 0;
}

static cupti_result fake_pc_config(struct cupti_pc_config_params *p)
{
    ANSWER("cuptiPCSamplingSetConfigurationAttribute");
    RULE(fake_cupti.pc_enabled, CUPTI_R_INVALID_OPERATION);
    for (size_t i = 0; i < p->n; i++)
        if (p->attrs[i].type == CUPTI_PC_ATTR_DATA_BUFFER) s.pc_left = p->attrs[i].v.pointer;
    RULE(s.pc_left, CUPTI_R_INVALID_PARAMETER);
    s.pc_configured = true;
    return 0;
}

static cupti_result fake_pc_data(struct cupti_pc_data_params *p)
{
    struct cupti_pc_data *d = p->data;
    ANSWER("cuptiPCSamplingGetData");
    size_t n = s.pc_pending < d->max_pcs ? s.pc_pending : d->max_pcs;
    fill(d, n);
    s.pc_pending -= n;
    d->remaining_pcs = s.pc_pending;
    d->dropped_samples = (uint64_t)scripted("pc_dropped", 0);
    return 0;
}

static cupti_result fake_pc_reason_count(struct cupti_pc_reason_count_params *p)
{
    *p->n = (size_t)scripted("reasons", RAW);
    return 0;
}

static cupti_result fake_pc_reasons(struct cupti_pc_reasons_params *p)
{
    for (uint32_t i = 0; i < RAW; i++) {
        p->indices[i] = i + 10;
        snprintf(p->names[i], CUPTI_STALL_NAME_SIZE, "%s", raw_reasons[i]);
    }
    return 0;
}

static cupti_result fake_cubin_crc(struct cupti_crc_params *p)
{
    p->crc = p->cubin_size * 3;
    return 0;
}

struct cupti_lib *fake_cupti_open(void)
{
    struct cupti_lib *lib = calloc(1, sizeof *lib);
    if (!lib) return NULL;
#define CALL(field, symbol, args, level) lib->field = fake_##field;
#include "cupti/calls.def"
#undef CALL
    snprintf(lib->chip, sizeof lib->chip, "GH100");
    lib->attached = true;
    lib->version = 130001;
    return lib;
}

#ifdef FAKE_CUPTI_SO
#define CALL(field, symbol, args, level)                                                           \
    extern cupti_result so_##field args __asm__(symbol) __attribute__((alias("fake_" #field)));
#include "cupti/calls.def"
#undef CALL
#endif
