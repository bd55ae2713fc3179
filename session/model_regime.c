/* The fold's ceilings and duty cycle, and what a row's figures say of its regime: regime_of() fed
 * from a session.
 */
#include <stdio.h>
#include <string.h>

#include "session/model_priv.h"

enum status fold_ceiling(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_ceiling *d = &m->ceiling;
    uint32_t i = 0;

    (void)f;
    while (i < s->nceilings && strcmp(s->ceilings[i].key, d->key) != 0) i++;
    if (i == MAX_CEILINGS) {
        s->overflowed++;
        return OK;
    }
    if (i == s->nceilings) s->nceilings++;
    s->ceilings[i] = *d;
    return OK;
}

enum status fold_duty(struct session *s, const struct frame *f, const union msg_any *m)
{
    (void)f;
    s->duty = m->duty;
    s->has_duty = true;
    return OK;
}

struct value session_ceiling(const struct session *s, const char *key)
{
    for (uint32_t i = 0; i < s->nceilings; i++) {
        const struct msg_ceiling *c = &s->ceilings[i];
        if (strcmp(c->key, key) != 0) continue;
        if (c->state == VALUE_OK) return value_spread(c->v, c->spread, c->n, c->source);
        return value_missing(VALUE_UNAVAILABLE, c->why);
    }
    return value_missing(VALUE_UNAVAILABLE, "not measured in this session");
}

/* The highest ceiling of a numeric class that was measured. */
static struct value compute_ceiling(const struct session *s, const char *cls, const char **name)
{
    static const struct {
        const char *cls, *key, *name;
    } rows[] = {{"q8", "int8_mma", "int8 mma"},
                {"q8", "int8_wgmma", "int8 wgmma"},
                {"bf16", "bf16_mma", "bf16 mma"},
                {"bf16", "bf16_wgmma", "bf16 wgmma"}};
    struct value best = value_missing(VALUE_UNAVAILABLE, "no ceiling for its numeric class");

    *name = "compute";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].cls, cls) != 0) continue;
        struct value v = session_ceiling(s, rows[i].key);
        if (value_known(&best) && !(value_known(&v) && v.v > best.v)) continue;
        best = v;
        *name = rows[i].name;
    }
    return best;
}

static struct value dram_ceiling(const struct session *s)
{
    struct value read = session_ceiling(s, "dram_read"), copy = session_ceiling(s, "dram_copy");
    if (!value_known(&read)) return copy;
    return value_known(&copy) && copy.v > read.v ? copy : read;
}

/* Issue slots: counted exactly, else by samples inside launches, of elapsed cycles. */
static struct value issue_of(const struct session *s, const struct row *r, bool *elapsed)
{
    struct value v = row_metric_best(s, r, "issue_pct");
    if (!value_known(&v)) v = row_metric_best(s, r, "issue_slots_pct");
    if (!value_known(&v)) {
        struct value inst = row_metric_best(s, r, "inst_pct");
        if (value_known(&inst)) {
            *elapsed = true;
            return inst;
        }
    }
    return v;
}

void row_regime(const struct session *s, const struct row *r, struct regime *out)
{
    char stall[40];
    struct regime_in in = {.macs = r->def.macs,
                           .least_bytes = r->def.bytes,
                           .us = row_us(s, r),
                           .dram_rate = row_metric_best(s, r, "dram_bytes_per_s"),
                           .dram = row_metric_best(s, r, "dram_pct"),
                           .l1 = row_metric_best(s, r, "l1_pct"),
                           .l2 = row_metric_best(s, r, "l2_pct"),
                           .tensor = row_metric_best(s, r, "tensor_pct"),
                           .alu = row_metric_best(s, r, "alu_pct"),
                           .fma = row_metric_best(s, r, "fma_pct"),
                           .sm_active = row_metric_best(s, r, "sm_active_pct"),
                           .stall = row_top_stall(s, r, stall, sizeof stall),
                           .stall_name = stall,
                           .dram_ceiling = dram_ceiling(s)};
    in.issue = issue_of(s, r, &in.issue_elapsed);
    in.compute_ceiling = compute_ceiling(s, s->kernels[r->def.kernel].def.cls, &in.compute_name);
    regime_of(&in, out);
}
