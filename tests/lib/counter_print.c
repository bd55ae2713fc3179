/* Tables of what was found: see counter_print.h. */
#include "tests/lib/counter_print.h"

#include <stdio.h>
#include <stdlib.h>

void counter_print_kernels(const struct found *f, const struct found_joined *j)
{
    printf("\n  %-11s %6s %9s %7s %8s %6s %7s %8s %6s %6s | %9s %8s %11s %6s %6s %6s\n", "kernel",
           "spans", "us", "samples", "SM% live", "iqr", "whole", "tensor%", "IPC", "DRAM%",
           "SM% range", "SM act%", "inst", "IPC", "occ%", "DRAM%");
    for (int k = 0; k < f->kernels; k++) {
        double *us = calloc(f->n_spans + 1, sizeof *us);
        size_t n = 0;
        for (size_t i = 0; us && i < f->n_spans; i++)
            if (f->spans[i].kernel == k)
                us[n++] = (double)(f->spans[i].end - f->spans[i].start) * 1e-3;
        const struct found_joined *o = &j[k];
        const double *x = f->exact[k];
        double c = (double)o->n;
        printf("  %-11s %6zu %9.2f %7zu %8.2f %6.2f %7.2f %8.2f %6.2f %6.2f | %9.2f %8.2f %11.0f "
               "%6.2f "
               "%6.2f "
               "%6.2f\n",
               f->names[k], n, found_quantile(us, n, 0.5), o->n, found_quantile(o->sm, o->n, 0.5),
               found_quantile(o->sm, o->n, 0.75) - found_quantile(o->sm, o->n, 0.25), o->whole,
               o->sum[FOUND_TENSOR] / c, o->sum[FOUND_IPC] / c, o->sum[FOUND_DRAM] / c,
               x[METRIC_SM_LAUNCH], x[METRIC_SM_ACTIVE], x[METRIC_INST], x[METRIC_IPC],
               x[METRIC_OCCUPANCY], x[METRIC_DRAM]);
        free(us);
    }
}

void counter_print_stalls(const struct found *f)
{
    printf("\n  stalls: share of plain samples (share of _not_issued samples), above 3%%\n");
    for (int k = 0; k < f->kernels; k++) {
        uint64_t all = 0, not = 0;
        for (size_t r = 0; r < f->n_reasons; r++) all += f->pc[k][r], not += f->pc_not[k][r];
        printf("  %-11s %8llu plain %8llu not issued:", f->names[k], (unsigned long long)all,
               (unsigned long long)not );
        for (size_t r = 0; r < f->n_reasons; r++)
            if (all && (double)f->pc[k][r] > 0.03 * (double)all)
                printf(" %s %.1f%% (%.1f%%)", f->reasons[r],
                       100.0 * (double)f->pc[k][r] / (double)all,
                       not ? 100.0 * (double)f->pc_not[k][r] / (double)not : 0.0);
        putchar('\n');
    }
}

void counter_print_windows(const struct found *f)
{
    printf("\n  %-9s %7s %9s %9s %8s %8s %8s %9s %10s\n", "source", "windows", "items", "reported",
           "dropped", "invalid", "other", "overflows", "decode ms");
    for (int i = 0; i < COUNTER_ROLES; i++) {
        const struct counter_window *w = &f->sum[i];
        printf("  %-9s %7u %9llu %9llu %8llu %8llu %8llu %9u %10.2f\n",
               counter_role_name((enum counter_role)i), f->windows[i], (unsigned long long)w->items,
               (unsigned long long)w->reported, (unsigned long long)w->dropped,
               (unsigned long long)w->invalid, (unsigned long long)w->other, f->overflows[i],
               (double)w->decode_ns * 1e-6);
    }
}

void counter_print_costs(const struct turns *t)
{
    printf("\n  %-15s %4s %10s %10s %10s   (ms of the launching thread)\n", "action", "n", "mean",
           "max", "last");
    for (int a = 0; a < TURNS_ACTIONS; a++) {
        struct turns_cost c = turns_cost(t, (enum turns_action)a);
        if (c.n)
            printf("  %-15s %4u %10.3f %10.3f %10.3f\n", turns_action_name((enum turns_action)a),
                   c.n, (double)c.sum_ns * 1e-6 / c.n, (double)c.max_ns * 1e-6,
                   (double)c.last_ns * 1e-6);
    }
}
