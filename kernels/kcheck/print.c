/* kcheck's output: text for people, one JSON object a line for programs. See kcheck.h. */
#include "kernels/kcheck/kcheck.h"

#include "base/quote.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_bench(const struct bench_figures *b, double gmac)
{
    printf("  cold %8.2f us +-%.2f (n %u)  hot %8.2f +-%.2f  %7.2f us/GMAC  %6.1f TOP/s", b->us,
           b->iqr, b->n, b->hot_us, b->hot_iqr, b->us / gmac, 2e3 * gmac / b->us);
    if (b->cycles > 0) printf("  %.0f cycles at %u-%u MHz", b->cycles, b->mhz_before, b->mhz_after);
    if (b->ratio > 0) printf("  ratio %.3f +-%.3f", b->ratio, b->ratio_iqr);
    if (b->rotated < 4) printf("  (inputs only %.1f x the L2)", b->rotated);
    if (b->throttle[0]) printf("  [%s]", b->throttle);
}

static void print_shape(const struct check_report *r, const struct check_result *s)
{
    const struct kernel_family *fam = family_find(r->variant->family);
    printf("  %6d x %4d x %5d  %-8s", s->shape.m, s->shape.n, s->shape.k,
           check_disposition_name(s->disposition));
    if (s->measured) printf("  nmse %8.2e  worst %5.3f of its limit", s->nmse, s->worst);
    if (s->bench.n && fam) print_bench(&s->bench, fam->macs(&s->shape) * 1e-9);
    printf("%s%s\n", s->why[0] ? "  " : "", s->why);
}

static void print_summary(const struct check_report *r)
{
    const struct variant *v = r->variant;
    int n[CHECK_SKIPPED + 1] = {0};
    for (int i = 0; i < r->n_results; i++) n[r->results[i].disposition]++;
    printf("%-24s", v->kernel);
    for (int d = 0; d <= CHECK_SKIPPED; d++)
        if (n[d]) printf(" %d %s", n[d], check_disposition_name((enum disposition)d));
    if (v->broken)
        printf("; found: %s, expected: %s", r->symptom[0] ? r->symptom : "nothing wrong",
               v->desc.expect);
    printf(" -> %s\n", r->ok ? (v->broken ? "caught" : "ok") : "FAILED");
}

void check_print_text(const struct check_report *r)
{
    print_summary(r);
    for (int i = 0; i < r->n_results; i++) {
        const struct check_result *s = &r->results[i];
        bool quiet = s->disposition == CHECK_OK && !s->bench.n && !s->why[0];
        if (!quiet && !(r->variant->broken && s->disposition == CHECK_SKIPPED)) print_shape(r, s);
    }
    fflush(stdout);
}

/* JSON has no infinity: a ratio against a limit of zero is null, and `why` says it. */
static void add_number(cJSON *o, const char *key, bool known, double v)
{
    if (known && isfinite(v))
        cJSON_AddNumberToObject(o, key, v);
    else
        cJSON_AddNullToObject(o, key);
}

static cJSON *bench_json(const struct bench_figures *f)
{
    cJSON *b = cJSON_CreateObject();
    cJSON_AddNumberToObject(b, "us", f->us);
    cJSON_AddNumberToObject(b, "iqr_us", f->iqr);
    cJSON_AddNumberToObject(b, "hot_us", f->hot_us);
    cJSON_AddNumberToObject(b, "hot_iqr_us", f->hot_iqr);
    cJSON_AddNumberToObject(b, "n", f->n);
    cJSON_AddNumberToObject(b, "launches", f->launches);
    cJSON_AddNumberToObject(b, "rotated_l2", f->rotated);
    add_number(b, "cycles", f->cycles > 0, f->cycles);
    add_number(b, "mhz_before", f->mhz_before != 0, f->mhz_before);
    add_number(b, "mhz_after", f->mhz_after != 0, f->mhz_after);
    add_number(b, "ratio", f->ratio > 0, f->ratio);
    add_number(b, "ratio_iqr", f->ratio > 0, f->ratio_iqr);
    cJSON_AddStringToObject(b, "throttle", f->throttle);
    return b;
}

static cJSON *shape_json(const struct check_result *s)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "m", s->shape.m);
    cJSON_AddNumberToObject(o, "n", s->shape.n);
    cJSON_AddNumberToObject(o, "k", s->shape.k);
    cJSON_AddStringToObject(o, "disposition", check_disposition_name(s->disposition));
    add_number(o, "nmse", s->measured, s->nmse);
    add_number(o, "worst", s->measured, s->worst);
    cJSON_AddStringToObject(o, "why", s->why);
    if (s->bench.n) cJSON_AddItemToObject(o, "bench", bench_json(&s->bench));
    return o;
}

enum status check_print_json(const struct check_report *r)
{
    char hash[20];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "variant", r->variant->name);
    cJSON_AddNumberToObject(o, "kd", r->variant->kd);
    cJSON_AddStringToObject(o, "device", r->device);
    snprintf(hash, sizeof hash, "%016" PRIx64, r->variant->code_hash);
    cJSON_AddStringToObject(o, "code_hash", hash);
    cJSON *list = cJSON_AddArrayToObject(o, "results");
    for (int i = 0; i < r->n_results; i++) cJSON_AddItemToArray(list, shape_json(&r->results[i]));
    cJSON_AddStringToObject(o, "symptom", r->symptom);
    if (r->variant->broken) cJSON_AddStringToObject(o, "expected", r->variant->desc.expect);
    cJSON_AddBoolToObject(o, "ok", r->ok);
    char *text = cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    if (!text) return err_set(ERR_NOMEM, "out of memory");
    puts(text);
    fflush(stdout);
    free(text);
    return OK;
}

void check_print_csv_head(void)
{
    puts(
        "kernel,family,kd,code_hash,device,m,n,k,disposition,nmse,worst,cold_us,cold_iqr,hot_us,"
        "hot_iqr,batches,launches,rotated_l2,cycles,mhz_before,mhz_after,us_per_gmac,against,ratio,"
        "ratio_iqr,why");
}

/* An empty field when the figure isn't known. */
static void csv_number(bool known, double v)
{
    putchar(',');
    if (known && isfinite(v)) printf("%.6g", v);
}

static void csv_text(const char *s)
{
    putchar(',');
    quote_csv_print(stdout, s);
}

void check_print_csv(const struct check_report *r, const struct variant *against)
{
    const struct variant *v = r->variant;
    const struct kernel_family *fam = family_find(v->family);
    for (int i = 0; i < r->n_results; i++) {
        const struct check_result *s = &r->results[i];
        const struct bench_figures *b = &s->bench;
        bool timed = b->n != 0;
        printf("%s,%s,%d,%016" PRIx64, v->kernel, v->family, v->kd, v->code_hash);
        csv_text(r->device);
        printf(",%d,%d,%d,%s", s->shape.m, s->shape.n, s->shape.k,
               check_disposition_name(s->disposition));
        csv_number(s->measured, s->nmse);
        csv_number(s->measured, s->worst);
        csv_number(timed, b->us);
        csv_number(timed, b->iqr);
        csv_number(timed, b->hot_us);
        csv_number(timed, b->hot_iqr);
        csv_number(timed, b->n);
        csv_number(timed, b->launches);
        csv_number(timed, b->rotated);
        csv_number(b->cycles > 0, b->cycles);
        csv_number(b->mhz_before != 0, b->mhz_before);
        csv_number(b->mhz_after != 0, b->mhz_after);
        csv_number(timed && fam, fam ? b->us / (fam->macs(&s->shape) * 1e-9) : 0);
        printf(",%s", b->ratio > 0 && against ? against->kernel : "");
        csv_number(b->ratio > 0, b->ratio);
        csv_number(b->ratio > 0, b->ratio_iqr);
        csv_text(s->why);
        putchar('\n');
    }
    fflush(stdout);
}

void check_print_list(const struct registry *reg)
{
    printf("%-24s %-9s %5s %4s %6s %7s %6s  %s\n", "kernel", "family", "sm", "regs", "spill",
           "smem", "parent", "note");
    for (int i = 0; i < registry_count(reg); i++) {
        const struct variant *v = registry_get(reg, i);
        printf("%-24s %-9s %5s %4d %6d %7u %6.14s  %s%s\n", v->kernel, v->family, v->arch, v->regs,
               v->spill_bytes, v->dyn_smem, v->desc.parent[0] ? v->desc.parent : "-",
               v->broken ? "[broken] " : "", v->desc.note);
    }
    for (int i = 0; i < registry_notes(reg); i++)
        fprintf(stderr, "kcheck: left out %s\n", registry_note(reg, i));
}
