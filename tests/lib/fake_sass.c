/*
 * The paper CUPTI's SASS metrics: see fake_cupti.h. Instruction i of a counted launch ran 10 (i +
 * 1) times with all its threads, 20 of 32 of them predicated on; the third one never. Scripted:
 * nosass=1, nopred=1 (metrics that the chip lacks), sass_foreign=1 (a record of another function),
 * sass_spread=1 (instances are those of one metric, not of all).
 */
#include <string.h>

#include "tests/lib/fake_state.h"

enum { ID_INST = 101, ID_THREADS, ID_PRED_ON };

void fake_sass_launch(const char *kernel)
{
    if (!fake_cupti.sass_enabled) return;
    fake_state.sass_kernel = kernel;
    fake_cupti.sass_launches++;
}

cupti_result fake_sass_properties(struct cupti_sass_properties_params *p)
{
    ANSWER("cuptiSassMetricsGetProperties");
    if (strcmp(p->chip, "GH100") != 0 || fake_scripted("nosass", 0)) return CUPTI_R_NOT_SUPPORTED;
    if (!strcmp(p->name, "smsp__sass_inst_executed"))
        p->metric.id = ID_INST;
    else if (!strcmp(p->name, "smsp__sass_thread_inst_executed"))
        p->metric.id = ID_THREADS;
    else if (strstr(p->name, "pred_on") && !fake_scripted("nopred", 0))
        p->metric.id = ID_PRED_ON;
    else
        return CUPTI_R_INVALID_PARAMETER;
    return 0;
}

cupti_result fake_sass_config(struct cupti_sass_config_params *p)
{
    ANSWER("cuptiSassMetricsSetConfig");
    RULE(!fake_cupti.sass_configured && p->n >= 1 && p->n <= 3, CUPTI_R_INVALID_OPERATION);
    if (fake_state.sass_metrics) return CUPTI_R_OUT_OF_MEMORY;
    fake_cupti.sass_configured = true;
    fake_state.sass_metrics = p->n;
    for (size_t i = 0; i < p->n; i++) fake_state.sass_ids[i] = p->configs[i].id;
    return 0;
}

cupti_result fake_sass_unconfig(struct cupti_sass_unconfig_params *p)
{
    (void)p;
    RULE(fake_cupti.sass_configured && !fake_cupti.sass_enabled, CUPTI_R_INVALID_OPERATION);
    fake_cupti.sass_configured = false;
    return fake_called("cuptiSassMetricsUnsetConfig");
}

/* With kernel activity on it hung elsewhere; next to a sampler or a range pass it was never tried.
 */
cupti_result fake_sass_enable(struct cupti_sass_enable_params *p)
{
    ANSWER("cuptiSassMetricsEnable");
    RULE(fake_cupti.sass_configured && !fake_cupti.sass_enabled, CUPTI_R_INVALID_OPERATION);
    RULE(p->lazy == 1, CUPTI_R_INVALID_PARAMETER);
    RULE(!fake_cupti.activity_on && !fake_cupti.pm_enabled && !fake_cupti.pc_enabled &&
             !fake_cupti.range_enabled,
         CUPTI_R_INVALID_OPERATION);
    fake_cupti.sass_enabled = true;
    fake_state.sass_kernel = NULL;
    return 0;
}

cupti_result fake_sass_disable(struct cupti_sass_disable_params *p)
{
    RULE(fake_cupti.sass_enabled, CUPTI_R_INVALID_OPERATION);
    fake_cupti.sass_enabled = false;
    p->dropped = (size_t)fake_scripted("sass_dropped", 0);
    return fake_called("cuptiSassMetricsDisable");
}

/* Values of a record. */
static size_t width(void)
{
    return fake_scripted("sass_joined", 0) ? fake_state.sass_metrics : 1;
}

static size_t insns(void)
{
    return fake_cupti.sass_insns + (size_t)fake_scripted("sass_foreign", 0);
}

cupti_result fake_sass_size(struct cupti_sass_size_params *p)
{
    ANSWER("cuptiSassMetricsGetDataProperties");
    RULE(fake_cupti.sass_enabled, CUPTI_R_INVALID_OPERATION);
    p->records = fake_state.sass_kernel ? insns() * fake_state.sass_metrics / width() : 0;
    p->instances = width();
    return 0;
}

static struct cupti_sass_value value(size_t insn, size_t metric)
{
    uint64_t id = fake_state.sass_ids[metric], inst = insn == 2 ? 0 : 10 * (insn + 1);
    return (struct cupti_sass_value){id, inst * (id == ID_INST ? 1 : id == ID_THREADS ? 32 : 20)};
}

cupti_result fake_sass_flush(struct cupti_sass_flush_params *p)
{
    ANSWER("cuptiSassMetricsFlushData");
    RULE(fake_cupti.sass_enabled && fake_state.sass_kernel, CUPTI_R_INVALID_OPERATION);
    for (size_t i = 0; i < p->records; i++) {
        struct cupti_sass_record *r = &p->data[i];
        size_t insn = width() > 1 ? i : i % insns();
        RULE(r->size == sizeof *r && r->values, CUPTI_R_INVALID_PARAMETER);
        r->cubin_crc = 77;
        r->pc = (uint32_t)insn * 16;
        r->function = insn < fake_cupti.sass_insns ? fake_state.sass_kernel : "library_kernel";
        for (size_t m = 0; m < width(); m++)
            r->values[m] = value(insn, width() > 1 ? width() - 1 - m : i / insns());
    }
    return 0;
}
