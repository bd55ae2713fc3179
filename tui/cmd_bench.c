/*
 * `sasstop bench`: one table of variants, tile depths and shapes, each timed in a process of its
 * own that never opened libcupti. It is for orientation: rows are timed one after the other, so a
 * difference of a few per cent between two of them is a case for `sasstop ab`.
 */
#include "tui/commands.h"

#include "base/median.h"
#include "kernels/family.h"
#include "tui/lab_child.h"

#include <cjson/cJSON.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 25, DEFAULT_SAMPLES = 5 };

struct bench {
    const char *family, *variants, *shapes, *backend, *model, *bench, *threads;
    unsigned kd, samples;
    bool json, engine;
    cJSON *list;
    unsigned rows, failed;
};

struct result {
    double us, iqr, cold, mhz;
    unsigned n;
};

/* Whether `name` is a word of the list; NULL takes all. */
static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, name, n) && (!p[n] || p[n] == ',')) return true;
    return !list;
}

static enum status take_samples(struct lab_child *c, unsigned want, struct result *r)
{
    double us[SAMPLES_MAX], cold[SAMPLES_MAX];
    struct lab_sample s;
    enum status st = lab_child_sample(c, &s); /* warms up */
    *r = (struct result){0};
    while (st == OK && r->n < want) {
        st = lab_child_sample(c, &s);
        us[r->n] = s.us;
        cold[r->n] = s.cold_us;
        r->mhz = s.mhz;
        if (st == OK) r->n++;
    }
    if (st != OK) return st;
    r->us = median_iqr(us, r->n, &r->iqr);
    r->cold = median_iqr(cold, r->n, NULL);
    return OK;
}

static void head(const struct bench *b)
{
    if (b->json) return;
    if (b->engine)
        printf("%-20s %-12s %12s %8s %6s  %s\n", "variant", "bench", "prefill/s", "+-", "n", "");
    else
        printf("%-20s %-18s %9s %7s %9s %8s %7s %6s %5s %5s\n", "kernel", "m,n,k", "us", "+-",
               "un-warmed", "us/GMAC", "TOP/s", "blk/SM", "regs", "MHz");
}

static void row_json(struct bench *b, const struct lab_side *s, const char *shape, double gmac,
                     const struct lab_child *c, const struct result *r, const char *why)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "variant", s->variant);
    cJSON_AddNumberToObject(o, "kd", s->kd);
    cJSON_AddStringToObject(o, b->engine ? "bench" : "shape", shape);
    if (why) {
        cJSON_AddNullToObject(o, "us");
        cJSON_AddStringToObject(o, "why", why);
    } else {
        cJSON_AddNumberToObject(o, "us", r->us);
        cJSON_AddNumberToObject(o, "iqr_us", r->iqr);
        cJSON_AddNumberToObject(o, "un_warmed_us", r->cold);
        cJSON_AddNumberToObject(o, "n", r->n);
        if (gmac > 0) cJSON_AddNumberToObject(o, "us_per_gmac", r->us / gmac);
        if (c->blocks_per_sm) cJSON_AddNumberToObject(o, "blocks_per_sm", c->blocks_per_sm);
        if (r->mhz > 0) cJSON_AddNumberToObject(o, "mhz", r->mhz);
    }
    cJSON_AddItemToArray(b->list, o);
}

static void row_text(const struct bench *b, const struct lab_side *s, const char *shape,
                     double gmac, const struct lab_child *c, const struct result *r,
                     const char *why)
{
    char kernel[64];
    lab_side_kernel(s, kernel, sizeof kernel);
    printf("%-20s %-*s ", kernel, b->engine ? 12 : 18, shape);
    if (why)
        printf("%s\n", why);
    else if (b->engine)
        printf("%12.1f %8.1f %6u\n", 1e6 / r->us, 1e6 / r->us * r->iqr / r->us, r->n);
    else
        printf("%9.2f %7.2f %9.2f %8.3f %7.1f %6d %5d %5.0f\n", r->us, r->iqr, r->cold,
               r->us / gmac, 2e3 * gmac / r->us, c->blocks_per_sm, c->regs, r->mhz);
    fflush(stdout);
}

/* One row. A side that can't run is a row with its reason. */
static void bench_side(struct bench *b, const struct lab_side *s, const char *shape)
{
    struct lab_child_options o = {
        .side = s,
        .engine = b->engine,
        .shape = shape,
        .rounds = 3,
        .engine_options = {.backend = b->backend,
                           .model = b->model,
                           .bench = b->engine ? shape : NULL,
                           .threads = b->threads},
    };
    const struct kernel_family *fam = family_find(b->family);
    struct shape sh = {0};
    struct lab_child c;
    struct result r = {0};
    double gmac = 0;
    if (!b->engine && fam && sscanf(shape, "%d,%d,%d", &sh.m, &sh.n, &sh.k) == 3)
        gmac = fam->macs(&sh) * 1e-9;
    enum status st = lab_child_start(&o, &c);
    if (st == OK) st = lab_child_ready(&c);
    if (st == OK) st = take_samples(&c, b->samples, &r);
    const char *why = st == OK ? NULL : err_msg();
    if (b->json)
        row_json(b, s, shape, gmac, &c, &r, why);
    else
        row_text(b, s, shape, gmac, &c, &r, why);
    lab_child_end(&c);
    b->rows++;
    b->failed += st != OK;
}

static void bench_all(struct bench *b, const char *variant, unsigned kd)
{
    char text[128], shapes[512], *save = NULL;
    struct lab_side s;
    snprintf(text, sizeof text, "%s:%u", variant, kd);
    if (!listed(b->variants, variant) || (b->kd && b->kd != kd)) return;
    if (lab_side_parse(text, &s) != OK) return;
    snprintf(shapes, sizeof shapes, "%s", b->shapes);
    for (char *p = strtok_r(shapes, ";", &save); p; p = strtok_r(NULL, ";", &save))
        bench_side(b, &s, p);
}

static enum status bench_kernels(struct bench *b)
{
    struct registry_options o = {.sm = 90};
    struct registry *r;
    enum status st = registry_open(&o, &r);
    if (st != OK) {
        o.sm = 0;
        st = registry_open(&o, &r);
    }
    if (st != OK) return st;
    for (int i = 0; i < registry_count(r); i++) {
        const struct variant *v = registry_get(r, i);
        if (!strcmp(v->family, b->family)) bench_all(b, v->name, (unsigned)v->kd);
    }
    registry_close(r);
    return OK;
}

static enum status run_bench(struct bench *b)
{
    static const char *const cpu[] = {"rows", "tiles"};
    enum status st = OK;
    b->list = cJSON_CreateArray();
    head(b);
    if (b->engine)
        for (int i = 0; i < 4; i++) bench_all(b, cpu[i / 2], i % 2 ? 8 : 4);
    else
        st = bench_kernels(b);
    if (st == OK && !b->rows)
        st = err_set(ERR_USAGE, "no variant fits; `sasstop variants` lists what was built");
    else if (st == OK && b->failed == b->rows)
        st = err_set(ERR_UNAVAILABLE, "no row could be timed: %.300s", err_msg());
    char *text = b->json ? cJSON_Print(b->list) : NULL;
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(b->list);
    return st;
}

static bool take(struct bench *b, int c)
{
    char *end = NULL;
    switch (c) {
    case 'v':
        b->variants = optarg;
        return true;
    case 's':
        b->shapes = optarg;
        return true;
    case 'f':
        b->family = optarg;
        return true;
    case 'k':
        b->kd = (unsigned)strtoul(optarg, &end, 10);
        return end != optarg && !*end && b->kd > 0 && b->kd <= 64;
    case 'n':
        b->samples = (unsigned)strtoul(optarg, &end, 10);
        return end != optarg && !*end && b->samples >= 1 && b->samples <= SAMPLES_MAX;
    case 'b':
        b->backend = optarg;
        return true;
    case 'm':
        b->model = optarg;
        return true;
    case 't':
        b->threads = optarg;
        return true;
    case 'j':
        b->json = true;
        return true;
    default:
        return false;
    }
}

int cmd_bench(int argc, char **argv)
{
    static const struct option longs[] = {{"variants", 1, NULL, 'v'}, {"shapes", 1, NULL, 's'},
                                          {"family", 1, NULL, 'f'},   {"kd", 1, NULL, 'k'},
                                          {"samples", 1, NULL, 'n'},  {"backend", 1, NULL, 'b'},
                                          {"model", 1, NULL, 'm'},    {"threads", 1, NULL, 't'},
                                          {"json", 0, NULL, 'j'},     {NULL, 0, NULL, 0}};
    struct bench b = {.family = "q4k_gemm", .samples = DEFAULT_SAMPLES};
    int c;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":", longs, NULL)) != -1)
        if (!take(&b, c)) return command_usage("bench", argv);
    if (optind < argc) {
        optind++;
        return command_usage("bench", argv);
    }
    b.engine = b.backend && !strcmp(b.backend, "cpu");
    if (!b.shapes) b.shapes = b.engine ? "pp64,tg4" : "4096,512,4096";
    enum status st =
        b.engine || lab_gpu_here()
            ? run_bench(&b)
            : err_set(ERR_UNAVAILABLE, "there is no NVIDIA GPU here to time kernels on; with "
                                       "--backend cpu the CPU engine's variants are timed");
    return st == OK ? EXIT_OK : command_fail(st);
}
