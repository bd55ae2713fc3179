/* The paper CUPTI's range profiler, PM and PC sampling: see fake_cupti.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fake_state.h"

/* ---- range profiler ---- */

cupti_result fake_range_enable(struct cupti_range_enable_params *p)
{
    ANSWER("cuptiRangeProfilerEnable");
    RULE(!fake_cupti.range_enabled, CUPTI_R_INVALID_OPERATION);
    RULE(!fake_cupti.pm_enabled && !fake_cupti.pc_enabled, CUPTI_R_HARDWARE_BUSY);
    fake_cupti.range_enabled = true;
    fake_state.range_configured = fake_state.range_running = false;
    fake_state.range_pass = fake_state.ranges = 0;
    p->object = &fake_state;
    return 0;
}

cupti_result fake_range_disable(struct cupti_range_params *p)
{
    (void)p;
    RULE(fake_cupti.range_enabled && !fake_state.range_running, CUPTI_R_INVALID_OPERATION);
    fake_cupti.range_enabled = false;
    return fake_called("cuptiRangeProfilerDisable");
}

cupti_result fake_range_start(struct cupti_range_params *p)
{
    (void)p;
    ANSWER("cuptiRangeProfilerStart");
    RULE(fake_state.range_configured && !fake_state.range_running, CUPTI_R_INVALID_OPERATION);
    fake_state.range_running = true;
    fake_state.ranges = 0;
    return 0;
}

cupti_result fake_range_stop(struct cupti_range_stop_params *p)
{
    ANSWER("cuptiRangeProfilerStop");
    RULE(fake_state.range_running, CUPTI_R_INVALID_OPERATION);
    fake_state.range_running = false;
    p->all_passes = ++fake_state.range_pass >= fake_cupti.passes;
    return 0;
}

cupti_result fake_range_config(struct cupti_range_config_params *p)
{
    ANSWER("cuptiRangeProfilerSetConfig");
    RULE(fake_cupti.range_enabled && !fake_state.range_configured, CUPTI_R_INVALID_OPERATION);
    RULE(p->target_nesting == 1 && p->range == CUPTI_AUTO_RANGE && p->replay == CUPTI_USER_REPLAY,
         CUPTI_R_INVALID_PARAMETER);
    fake_state.range_configured = true;
    fake_state.range_room = p->max_ranges;
    return 0;
}

cupti_result fake_range_decode(struct cupti_range_decode_params *p)
{
    ANSWER("cuptiRangeProfilerDecodeData");
    RULE(fake_state.range_pass >= fake_cupti.passes, CUPTI_R_INVALID_OPERATION);
    p->dropped = (size_t)fake_scripted("range_dropped", 0) + fake_state.ranges_lost;
    return 0;
}

cupti_result fake_range_size(struct cupti_range_size_params *p)
{
    p->image_size = sizeof(struct image);
    return 0;
}

cupti_result fake_range_image(struct cupti_range_image_params *p)
{
    *(struct image *)p->image = (struct image){MAGIC, 1000, MAX_RANGES};
    return 0;
}

cupti_result fake_range_info(struct cupti_range_info_params *p)
{
    p->ranges = fake_state.ranges;
    return 0;
}

/* ---- PM sampling ---- */

cupti_result fake_pm_enable(struct cupti_pm_enable_params *p)
{
    ANSWER("cuptiPmSamplingEnable");
    RULE(!fake_cupti.pm_enabled, CUPTI_R_INVALID_OPERATION);
    fake_cupti.pm_enabled = true;
    fake_state.pm_configured = fake_state.pm_running = false;
    fake_state.pm_pending = 0;
    p->object = &fake_state;
    return 0;
}

cupti_result fake_pm_disable(struct cupti_pm_params *p)
{
    RULE(fake_cupti.pm_enabled && !fake_state.pm_running && p->object == &fake_state,
         CUPTI_R_INVALID_OPERATION);
    RULE(fake_state.pm_pending == 0, CUPTI_R_SUCCESS); /* legal, but what was not decoded is lost */
    fake_cupti.pm_enabled = false;
    return fake_called("cuptiPmSamplingDisable");
}

cupti_result fake_pm_config(struct cupti_pm_config_params *p)
{
    RULE(fake_cupti.pm_enabled, CUPTI_R_INVALID_OPERATION);
    ANSWER("cuptiPmSamplingSetConfig");
    if (fake_state.pc_ever_started && fake_cupti.pc_enabled)
        return fake_wrong(CUPTI_R_HARDWARE_BUSY, "pm after pc");
    if (fake_scripted("notimer", 0) && p->trigger == CUPTI_PM_TRIGGER_TIME)
        return CUPTI_R_NOT_SUPPORTED;
    fake_state.pm_configured = true;
    return 0;
}

cupti_result fake_pm_start(struct cupti_pm_params *p)
{
    (void)p;
    ANSWER("cuptiPmSamplingStart");
    RULE(fake_state.pm_configured && !fake_state.pm_running && fake_state.pm_pending == 0,
         CUPTI_R_INVALID_OPERATION);
    fake_state.pm_running = true;
    return 0;
}

cupti_result fake_pm_stop(struct cupti_pm_params *p)
{
    (void)p;
    ANSWER("cuptiPmSamplingStop");
    RULE(fake_state.pm_running, CUPTI_R_INVALID_OPERATION);
    fake_state.pm_running = false;
    fake_state.pm_pending = fake_cupti.pm_samples;
    fake_state.pm_next = 0;
    return 0;
}

cupti_result fake_pm_size(struct cupti_pm_size_params *p)
{
    fake_state.pm_room = p->max_samples;
    p->image_size = sizeof(struct image) + 8 * p->max_samples;
    return 0;
}

cupti_result fake_pm_image(struct cupti_pm_image_params *p)
{
    *(struct image *)p->image = (struct image){.magic = MAGIC};
    return 0;
}

cupti_result fake_pm_decode(struct cupti_pm_decode_params *p)
{
    struct image *i = (struct image *)p->image;
    RULE(i->magic == MAGIC && i->n == 0, CUPTI_R_INVALID_PARAMETER);
    size_t n =
        fake_state.pm_pending < fake_state.pm_room ? fake_state.pm_pending : fake_state.pm_room;
    *i = (struct image){MAGIC, fake_state.pm_next, n};
    fake_state.pm_next += n;
    fake_state.pm_pending = 0; /* what did not fit is lost, as on an H200 */
    p->stop_reason = CUPTI_PM_STOP_END;
    p->overflow = 0;
    if (fake_scripted("overflow", 0)) {
        fake_state.pm_pending = 0;
        p->overflow = fake_scripted("overflow", 0) == 1;
        return p->overflow ? CUPTI_R_OUT_OF_MEMORY : CUPTI_R_UNKNOWN;
    }
    return fake_called("cuptiPmSamplingDecodeData");
}

cupti_result fake_pm_info(struct cupti_pm_info_params *p)
{
    const struct image *i = (const struct image *)p->image;
    p->total = fake_state.pm_room;
    p->populated = p->completed = i->n;
    return 0;
}

cupti_result fake_pm_sample(struct cupti_pm_sample_params *p)
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

cupti_result fake_pc_enable(struct cupti_pc_params *p)
{
    (void)p;
    ANSWER("cuptiPCSamplingEnable");
    RULE(!fake_cupti.pc_enabled, CUPTI_R_INVALID_OPERATION);
    fake_cupti.pc_enabled = true;
    fake_state.pc_configured = fake_state.pc_running = fake_state.pc_ever_started =
        fake_state.pc_dead = false;
    fake_state.pc_left = NULL;
    fake_state.pc_pending = fake_state.pc_next = 0;
    return 0;
}

static void fill(struct cupti_pc_data *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct cupti_pc_record *r = &d->records[i];
        r->cubin_crc = 77;
        r->pc = (fake_state.pc_next + i) * 16;
        r->function = (fake_state.pc_next + i) % 2 ? "kernel_b" : "kernel_a";
        r->stall_count = RAW;
        for (uint32_t k = 0; k < RAW; k++) r->stalls[k] = (struct cupti_pc_stall){k + 10, k + 1};
    }
    d->pcs = n;
    d->total_samples = n * 15 + 4;
    d->other_samples = 4;
    fake_state.pc_next += n;
}

cupti_result fake_pc_disable(struct cupti_pc_params *p)
{
    (void)p;
    RULE(fake_cupti.pc_enabled, CUPTI_R_INVALID_OPERATION);
    fake_cupti.pc_enabled = fake_state.pc_running = false;
    if (fake_cupti.pc_late && fake_state.pc_left) fill(fake_state.pc_left, fake_cupti.pc_late);
    return fake_called("cuptiPCSamplingDisable");
}

cupti_result fake_pc_start(struct cupti_pc_params *p)
{
    (void)p;
    ANSWER("cuptiPCSamplingStart");
    RULE(fake_state.pc_configured && !fake_state.pc_running, CUPTI_R_INVALID_OPERATION);
    if (fake_cupti.pm_enabled) fake_state.pc_dead = true; /* and it stays dead */
    RULE(!fake_state.pc_dead, CUPTI_R_HARDWARE_BUSY);
    fake_state.pc_running = fake_state.pc_ever_started = true;
    return 0;
}

cupti_result fake_pc_stop(struct cupti_pc_params *p)
{
    (void)p;
    ANSWER("cuptiPCSamplingStop");
    RULE(fake_state.pc_running, CUPTI_R_INVALID_OPERATION);
    fake_state.pc_running = false;
    fake_state.pc_pending += fake_cupti.pc_pcs;
    return 0;
}

cupti_result fake_pc_config(struct cupti_pc_config_params *p)
{
    ANSWER("cuptiPCSamplingSetConfigurationAttribute");
    RULE(fake_cupti.pc_enabled, CUPTI_R_INVALID_OPERATION);
    for (size_t i = 0; i < p->n; i++)
        if (p->attrs[i].type == CUPTI_PC_ATTR_DATA_BUFFER)
            fake_state.pc_left = p->attrs[i].v.pointer;
    RULE(fake_state.pc_left, CUPTI_R_INVALID_PARAMETER);
    fake_state.pc_configured = true;
    return 0;
}

cupti_result fake_pc_data(struct cupti_pc_data_params *p)
{
    struct cupti_pc_data *d = p->data;
    ANSWER("cuptiPCSamplingGetData");
    size_t n = fake_state.pc_pending < d->max_pcs ? fake_state.pc_pending : d->max_pcs;
    fill(d, n);
    fake_state.pc_pending -= n;
    d->remaining_pcs = fake_state.pc_pending;
    d->dropped_samples = (uint64_t)fake_scripted("pc_dropped", 0);
    return 0;
}

cupti_result fake_pc_reason_count(struct cupti_pc_reason_count_params *p)
{
    *p->n = (size_t)fake_scripted("reasons", RAW);
    return 0;
}

cupti_result fake_pc_reasons(struct cupti_pc_reasons_params *p)
{
    for (uint32_t i = 0; i < RAW; i++) {
        p->indices[i] = i + 10;
        snprintf(p->names[i], CUPTI_STALL_NAME_SIZE, "%s", raw_reasons[i]);
    }
    return 0;
}

cupti_result fake_cubin_crc(struct cupti_crc_params *p)
{
    p->crc = p->cubin_size * 3;
    return 0;
}
