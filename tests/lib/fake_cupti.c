/* A CUPTI made of paper: see fake_cupti.h. */
#include "tests/lib/fake_cupti.h"
#include "tests/lib/fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_cupti fake_cupti;

struct fake_state fake_state;

void fake_cupti_reset(void)
{
    memset(&fake_state, 0, sizeof fake_state);
    memset(&fake_cupti, 0, sizeof fake_cupti);
    fake_cupti.pm_samples = 600;
    fake_cupti.pc_pcs = 100;
    fake_cupti.passes = 1;
    fake_cupti.sass_insns = 3;
    fake_state.clock = 1000000000;
}

/* ---- scripting ---- */

long fake_scripted(const char *what, long missing)
{
    const char *p = getenv("FAKE_CUPTI");
    size_t n = strlen(what);
    for (; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, what, n) == 0 && p[n] == '=') return strtol(p + n + 1, NULL, 10);
    return missing;
}

/* Counts the call; gives the scripted answer. */
cupti_result fake_called(const char *symbol)
{
    fake_cupti.calls++;
    return (cupti_result)fake_scripted(symbol, 0);
}

cupti_result fake_wrong(cupti_result r, const char *why)
{
    fake_cupti.violations++;
    snprintf(fake_cupti.last_violation, sizeof fake_cupti.last_violation, "%.79s", why);
    return r;
}

/* ---- target ---- */

cupti_result fake_get_version(uint32_t *v)
{
    *v = (uint32_t)fake_scripted("version", 130001);
    return 0;
}

cupti_result fake_result_string(cupti_result r, const char **text)
{
    (void)r;
    *text = "FAKE_RESULT";
    return 0;
}

cupti_result fake_subscribe(void **sub, cupti_callback f, void *user,
                            struct cupti_subscriber_params *p)
{
    (void)f, (void)user;
    *sub = NULL;
    cupti_result r = fake_called("cuptiSubscribe_v2");
    if (r == CUPTI_R_MULTIPLE_SUBSCRIBERS && p->old_name)
        snprintf(p->old_name, p->old_size, "Nsight Systems");
    if (r) return r;
    *sub = &fake_state;
    return 0;
}

cupti_result fake_unsubscribe(void *sub)
{
    (void)sub;
    return fake_called("cuptiUnsubscribe");
}

cupti_result fake_profiler_init(struct cupti_plain_params *p)
{
    RULE(p->size == sizeof *p, CUPTI_R_INVALID_PARAMETER);
    return fake_called("cuptiProfilerInitialize");
}

cupti_result fake_profiler_supported(struct cupti_support_params *p)
{
    ANSWER("cuptiProfilerDeviceSupported");
    p->supported = p->architecture = p->sli = p->vgpu = p->confidential = p->cmp = p->wsl =
        CUPTI_SUPPORT_YES;
    if (fake_scripted("confidential", 0)) p->supported = p->confidential = CUPTI_SUPPORT_NO;
    if (fake_scripted("vgpu", 0)) p->supported = p->vgpu = CUPTI_SUPPORT_DISABLED;
    if (fake_scripted("wsl", 0)) p->supported = p->wsl = CUPTI_SUPPORT_NO;
    return 0;
}

cupti_result fake_chip_name(struct cupti_chip_params *p)
{
    ANSWER("cuptiDeviceGetChipName");
    p->chip = fake_scripted("newchip", 0) ? "GX999" : "GH100";
    return 0;
}

/* ---- activity ---- */

cupti_result fake_activity_enable(int kind)
{
    ANSWER("cuptiActivityEnable");
    if (kind == CUPTI_KIND_OVERHEAD) {
        fake_state.overhead_on = !fake_scripted("nooverhead", 0);
        return fake_state.overhead_on ? 0 : CUPTI_R_INVALID_PARAMETER;
    }
    RULE(kind == CUPTI_KIND_CONCURRENT_KERNEL && fake_state.request, CUPTI_R_INVALID_PARAMETER);
    fake_cupti.activity_on = true;
    return 0;
}

cupti_result fake_activity_disable(int kind)
{
    if (kind == CUPTI_KIND_OVERHEAD)
        fake_state.overhead_on = false;
    else
        fake_cupti.activity_on = false;
    return fake_called("cuptiActivityDisable");
}

cupti_result fake_activity_callbacks(cupti_buffer_request q, cupti_buffer_complete c)
{
    ANSWER("cuptiActivityRegisterCallbacks");
    fake_state.request = q;
    fake_state.complete = c;
    return 0;
}

cupti_result fake_activity_attribute(int a, size_t *size, void *v)
{
    (void)a, (void)size, (void)v;
    return fake_called("cuptiActivitySetAttribute");
}

/* Puts the scripted number of overhead records of 2 us each in front of a buffer. */
static size_t put_overheads(uint8_t *b, size_t size)
{
    size_t n = fake_state.overhead_on ? (size_t)fake_scripted("overheads", 0) : 0;
    for (size_t i = 0; i < n && (i + 1) * sizeof fake_state.rec[0] <= size; i++) {
        struct cupti_overhead_record o = {.kind = CUPTI_KIND_OVERHEAD,
                                          .overhead = i ? CUPTI_OVERHEAD_COMMANDS_FULL : 1 << 16,
                                          .start = fake_state.clock,
                                          .end = i ? fake_state.clock + 2000 : 0,
                                          .data = i ? malloc(16) : (void *)&fake_state};
        memcpy(b + i * sizeof fake_state.rec[0], &o, sizeof o);
    }
    return n;
}

/* Hands the records over last first: CUPTI promises no order. Buffers hold records_per_buffer each.
 * hold=N: it keeps up to N of them before it gives them back, as it does with many contexts. */
static void hand_over(void)
{
    enum { HELD = 512 };
    struct {
        uint8_t *b;
        size_t size, valid;
    } held[HELD];
    size_t per = (size_t)fake_scripted("records_per_buffer", 100), nheld = 0;
    size_t hold = (size_t)fake_scripted("hold", 1);
    while (fake_state.records > 0) {
        uint8_t *b = NULL;
        size_t size = 0, max = 0, n = 0;
        fake_state.request(&b, &size, &max);
        if (b) {
            n = put_overheads(b, size);
        } else {
            fake_state.dropped += fake_state.records;
            fake_state.records = 0;
        }
        for (; fake_state.records > 0 && n < per && (n + 1) * sizeof fake_state.rec[0] <= size; n++)
            memcpy(b + n * sizeof fake_state.rec[0], &fake_state.rec[--fake_state.records],
                   sizeof fake_state.rec[0]);
        if (b) {
            held[nheld].b = b;
            held[nheld].size = size;
            held[nheld++].valid = n * sizeof fake_state.rec[0];
        }
        if (fake_state.records > 0 && nheld < hold && nheld < HELD) continue;
        while (nheld) {
            nheld--;
            fake_state.complete(NULL, 0, held[nheld].b, held[nheld].size, held[nheld].valid);
        }
    }
}

/* Without the flag only full buffers come. */
cupti_result fake_activity_flush(uint32_t flag)
{
    ANSWER("cuptiActivityFlushAll");
    RULE(flag == CUPTI_FLUSH_FORCED, CUPTI_R_SUCCESS);
    hand_over();
    return 0;
}

static void launch(const char *kernel, bool invalid, uint64_t node)
{
    fake_state.clock += 1000;
    if (fake_state.range_running && fake_state.ranges < fake_state.range_room)
        fake_state.ranges++;
    else if (fake_state.range_running)
        fake_state.ranges_lost++;
    fake_sass_launch(kernel);
    if (!fake_cupti.activity_on) return;
    if (fake_state.records == MAX_RECORDS) {
        fake_state.dropped++;
        return;
    }
    fake_state.rec[fake_state.records++] =
        (struct cupti_kernel_record){.kind = CUPTI_KIND_CONCURRENT_KERNEL,
                                     .start = invalid ? 0 : fake_state.clock,
                                     .end = invalid ? 0 : fake_state.clock + 5000,
                                     .grid = {1, 1, 1},
                                     .block = {32, 1, 1},
                                     .correlation = fake_state.correlation,
                                     .graph_node = node,
                                     .graph = node ? 1 : 0,
                                     .name = kernel};
    fake_state.clock += 5000;
    if (fake_state.records >= (size_t)fake_scripted("flush_every", MAX_RECORDS + 1))
        hand_over(); /* as CUPTI's worker does */
}

void fake_cupti_launch(const char *kernel, bool invalid)
{
    fake_state.correlation++;
    launch(kernel, invalid, 0);
}

void fake_cupti_graph(const char *const *kernels, size_t n, size_t invalid)
{
    fake_state.correlation++;
    for (size_t i = 0; i < n; i++) launch(kernels[i], i == invalid, i + 1);
}

cupti_result fake_activity_next(uint8_t *b, size_t valid, struct cupti_activity **rec)
{
    uint8_t *next = *rec ? (uint8_t *)*rec + sizeof fake_state.rec[0] : b;
    if (next + sizeof fake_state.rec[0] > b + valid) return CUPTI_R_MAX_LIMIT_REACHED;
    *rec = (struct cupti_activity *)next;
    return 0;
}

cupti_result fake_activity_dropped(void *ctx, uint32_t stream, size_t *n)
{
    (void)ctx, (void)stream;
    if (fake_scripted("callback_in_dropped", 0)) hand_over();
    *n = fake_state.dropped;
    fake_state.dropped = 0;
    return 0;
}

/* ---- host ---- */

cupti_result fake_host_init(struct cupti_host_init_params *p)
{
    ANSWER("cuptiProfilerHostInitialize");
    if (strcmp(p->chip, "GH100") != 0) return CUPTI_R_INVALID_CHIP;
    p->host = calloc(1, sizeof(struct host));
    fake_cupti.hosts++;
    return 0;
}

cupti_result fake_host_deinit(struct cupti_host_params *p)
{
    free(p->host);
    fake_cupti.hosts--;
    return 0;
}

cupti_result fake_host_chips(struct cupti_host_chips_params *p)
{
    static const char *const chips[] = {"GH100"};
    p->n = 1;
    p->names = chips;
    return 0;
}

/* One unknown name poisons the object: later adds give 999, the image holds the earlier names only.
 */
cupti_result fake_host_add(struct cupti_host_add_params *p)
{
    struct host *h = p->host;
    ANSWER("cuptiProfilerHostConfigAddMetrics");
    if (h->poisoned) return fake_wrong(CUPTI_R_UNKNOWN, "add to a poisoned host object");
    h->adds++;
    for (size_t i = 0; i < p->n; i++) {
        if (fake_scripted("nodram", 0) && strstr(p->names[i], "dram")) h->poisoned = true;
        if (fake_scripted("notriage", 0) && strstr(p->names[i], "Triage")) h->poisoned = true;
        if (h->poisoned) return CUPTI_R_INVALID_PARAMETER;
        h->names++;
    }
    return 0;
}

cupti_result fake_host_image_size(struct cupti_host_image_size_params *p)
{
    p->image_size = sizeof(struct image);
    return 0;
}

cupti_result fake_host_image(struct cupti_host_image_params *p)
{
    const struct host *h = p->host;
    *(struct image *)p->image = (struct image){MAGIC, h->adds, h->names};
    return 0;
}

/* Names added in calls of their own take a pass each; beyond 12 in one call they don't fit either.
 */
cupti_result fake_host_passes(struct cupti_host_passes_params *p)
{
    const struct image *i = (const struct image *)p->image;
    RULE(i->magic == MAGIC, CUPTI_R_INVALID_PARAMETER);
    p->passes = i->first > 1 ? i->first : (i->n + 19) / 20;
    return 0;
}

cupti_result fake_host_eval(struct cupti_host_eval_params *p)
{
    const struct image *i = (const struct image *)p->image;
    RULE(i->magic == MAGIC && p->range < i->n, CUPTI_R_INVALID_PARAMETER);
    for (size_t m = 0; m < p->n; m++)
        p->values[m] = (double)(i->first + p->range) + (double)m / 100;
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
