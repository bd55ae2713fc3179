/*
 * kcheck: checks and benches kernel variants against the reference, each in a child process.
 * Parts in kernels/kcheck/. Exit: 0 all sound (and every broken one caught), 1 not, 2 usage, 3 no
 * GPU.
 */
#include "base/version.h"
#include "kernels/kcheck/kcheck.h"
#include "kernels/kcheck/serve.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *variant, *family, *arch, *cubins, *variants, *against;
    struct shape shapes[CHECK_SHAPES_MAX];
    int n_shapes, repeat, limit_s, blocks, kd;
    uint64_t seed;
    bool all, json, csv, list, broken, bench, quick, serve, fragments;
};

static const char usage_text[] =
    "usage: kcheck [--all | --variant NAME_kdN]... [options]\n"
    "Checks GEMM kernel variants against the C reference, each in a process of its own.\n"
    "  --all               every variant (the default)\n"
    "  --variant NAME      one kernel, such as nb_kd8\n"
    "  --family F, --kd N  of these alone those of a family, of a depth\n"
    "  --shapes M,N,K;...  output rows, tokens, inner dimension; default: the family's list\n"
    "  --seed S            of the inputs (default 1)\n"
    "  --repeat R          fresh seeds a shape (default 1)\n"
    "  --bench             time each sound shape as well: cold (inputs rotated over 4x the L2), "
    "hot\n"
    "  --against NAME      with it: ratio to that kernel's time, the two in turns\n"
    "  --blocks N          with it: N blocks an SM, by padding shared memory\n"
    "  --quick             random inputs alone, and fewer, shorter batches\n"
    "  --include-broken    also those that are wrong on purpose: each must be caught\n"
    "  --limit S           seconds without a sign of life that count as a hang (default 20)\n"
    "  --json              one JSON object a variant and line\n"
    "  --csv               one row a shape\n"
    "  --fragments         sweep B fragments unpacked in registers against ldmatrix's; no GPU\n"
    "  --list              what is there, without a GPU; --arch 90a chooses\n"
    "  --serve             time --variant on one shape, once a line of stdin, as JSON; takes "
    "--blocks\n"
    "  --cubins DIR        kernels from there\n"
    "  --variants DIR      and your own: DIR/*.cubin, by their descriptors alone\n"
    "  --version, --help\n"
    "Exit status: 0 all sound, 1 not, 2 usage, 3 no GPU or no kernels for it.\n";

static bool parse_int(const char **s, int *out)
{
    char *end;
    long v = strtol(*s, &end, 10);
    if (end == *s || v < 1 || v > 1 << 30) return false;
    *out = (int)v;
    *s = end;
    return true;
}

static enum status parse_shapes(const char *s, struct options *o)
{
    o->n_shapes = 0;
    while (*s) {
        struct shape sh;
        bool ok = parse_int(&s, &sh.m) && *s++ == ',' && parse_int(&s, &sh.n) && *s++ == ',' &&
                  parse_int(&s, &sh.k) && (*s == ';' || !*s);
        if (!ok) return err_set(ERR_USAGE, "--shapes wants M,N,K;M,N,K;... of numbers from 1");
        if (o->n_shapes == CHECK_SHAPES_MAX)
            return err_set(ERR_USAGE, "--shapes: at most %d", CHECK_SHAPES_MAX);
        o->shapes[o->n_shapes++] = sh;
        if (*s) s++;
    }
    return o->n_shapes ? OK : err_set(ERR_USAGE, "--shapes is empty");
}

enum {
    OPT_BROKEN = 256,
    OPT_LIMIT,
    OPT_ARCH,
    OPT_VERSION,
    OPT_SERVE,
    OPT_BLOCKS,
    OPT_CUBINS,
    OPT_AGAINST,
    OPT_CSV,
    OPT_FRAGMENTS,
    OPT_VARIANTS,
    OPT_FAMILY,
    OPT_KD,
    OPT_QUICK
};

static const struct option long_options[] = {
    {"all", no_argument, NULL, 'a'},
    {"variant", required_argument, NULL, 'v'},
    {"shapes", required_argument, NULL, 's'},
    {"seed", required_argument, NULL, 'S'},
    {"repeat", required_argument, NULL, 'r'},
    {"json", no_argument, NULL, 'j'},
    {"list", no_argument, NULL, 'l'},
    {"bench", no_argument, NULL, 'b'},
    {"against", required_argument, NULL, OPT_AGAINST},
    {"csv", no_argument, NULL, OPT_CSV},
    {"fragments", no_argument, NULL, OPT_FRAGMENTS},
    {"variants", required_argument, NULL, OPT_VARIANTS},
    {"family", required_argument, NULL, OPT_FAMILY},
    {"kd", required_argument, NULL, OPT_KD},
    {"quick", no_argument, NULL, OPT_QUICK},
    {"include-broken", no_argument, NULL, OPT_BROKEN},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"arch", required_argument, NULL, OPT_ARCH},
    {"serve", no_argument, NULL, OPT_SERVE},
    {"blocks", required_argument, NULL, OPT_BLOCKS},
    {"cubins", required_argument, NULL, OPT_CUBINS},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static enum status take_number(const char *name, const char *arg, int *out)
{
    const char *s = arg;
    if (parse_int(&s, out) && !*s) return OK;
    return err_set(ERR_USAGE, "--%s wants a number from 1, not \"%s\"", name, arg);
}

static enum status take_seed(const char *arg, uint64_t *out)
{
    char *end;
    *out = strtoull(arg, &end, 0);
    if (end != arg && !*end) return OK;
    return err_set(ERR_USAGE, "--seed wants a number, not \"%s\"", arg);
}

static enum status take_option(struct options *o, int c)
{
    switch (c) {
    case 'a':
        o->all = true;
        return OK;
    case 'v':
        o->variant = optarg;
        return OK;
    case 's':
        return parse_shapes(optarg, o);
    case 'S':
        return take_seed(optarg, &o->seed);
    case 'r':
        return take_number("repeat", optarg, &o->repeat);
    case 'j':
        o->json = true;
        return OK;
    case 'l':
        o->list = true;
        return OK;
    case 'b':
        o->bench = true;
        return OK;
    case OPT_BROKEN:
        o->broken = true;
        return OK;
    case OPT_LIMIT:
        return take_number("limit", optarg, &o->limit_s);
    case OPT_AGAINST:
        o->against = optarg;
        return OK;
    case OPT_CSV:
        o->csv = true;
        return OK;
    case OPT_FRAGMENTS:
        o->fragments = true;
        return OK;
    case OPT_VARIANTS:
        o->variants = optarg;
        return OK;
    case OPT_FAMILY:
        o->family = optarg;
        return family_find(optarg) ? OK : err_set(ERR_USAGE, "no family is called %s", optarg);
    case OPT_KD:
        return take_number("kd", optarg, &o->kd);
    case OPT_QUICK:
        o->quick = true;
        return OK;
    case OPT_ARCH:
        o->arch = optarg;
        return OK;
    case OPT_SERVE:
        o->serve = true;
        return OK;
    case OPT_BLOCKS:
        return take_number("blocks", optarg, &o->blocks);
    case OPT_CUBINS:
        o->cubins = optarg;
        return OK;
    case 'h':
        fputs(usage_text, stdout);
        exit(EXIT_OK);
    case OPT_VERSION:
        printf("kcheck %s (%s)\n", version_string(), version_commit());
        exit(EXIT_OK);
    default:
        return err_set(ERR_USAGE, "unknown option; see kcheck --help");
    }
}

static enum status parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.seed = 1, .repeat = 1, .limit_s = 20};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        enum status st = take_option(o, c);
        if (st != OK) return st;
    }
    if (optind < argc) return err_set(ERR_USAGE, "what is \"%s\"? see kcheck --help", argv[optind]);
    if (o->serve && (!o->variant || o->n_shapes != 1))
        return err_set(ERR_USAGE, "--serve wants --variant NAME and one shape");
    if (o->json && o->csv) return err_set(ERR_USAGE, "--json or --csv, not both");
    if (o->against && !o->bench) return err_set(ERR_USAGE, "--against goes with --bench");
    if (o->blocks && !o->bench && !o->serve)
        return err_set(ERR_USAGE, "--blocks goes with --bench or --serve");
    if (o->variant && o->all) return err_set(ERR_USAGE, "--all or --variant, not both");
    return OK;
}

/* Which GPU is there, asked in a child so that this process stays clean of the driver. */
static enum status probe(int limit_s, struct check_report *r)
{
    struct check_job job = {0};
    enum status st = check_watch(&job, limit_s, r);
    if (st == OK && r->sm == 0)
        st = err_set(ERR_UNAVAILABLE, "the GPU did not answer; see nvidia-smi");
    return st;
}

/* What the bench holds v against: of v's family, or nothing. */
static const struct variant *against_of(const struct options *o, const struct registry *reg,
                                        const struct variant *v)
{
    const struct variant *a = o->against ? registry_find(reg, o->against) : NULL;
    return a && !strcmp(a->family, v->family) ? a : NULL;
}

static enum status print_report(const struct options *o, const struct check_report *r,
                                const struct variant *against)
{
    if (o->json) return check_print_json(r);
    if (o->csv)
        check_print_csv(r, against);
    else
        check_print_text(r);
    return OK;
}

static enum status check_one(const struct options *o, const struct registry *reg,
                             const struct variant *v, bool *ok)
{
    static struct check_report report;
    const struct kernel_family *fam = family_find(v->family);
    struct check_job job = {
        .reg = reg,
        .variant = v,
        .shapes = o->n_shapes ? o->shapes : fam->shapes,
        .n_shapes = o->n_shapes ? o->n_shapes : fam->n_shapes,
        .seed = o->seed,
        .repeat = o->repeat,
        .bench = o->bench,
        .quick = o->quick,
        .blocks = o->blocks,
        .against = against_of(o, reg, v),
    };
    enum status st = check_watch(&job, o->limit_s, &report);
    if (st != OK) return st;
    *ok = report.ok;
    return print_report(o, &report, job.against);
}

static enum status check_pass(const struct options *o, const struct registry *reg, bool broken,
                              int *bad, int *done)
{
    for (int i = 0; i < registry_count(reg); i++) {
        const struct variant *v = registry_get(reg, i);
        bool ok = false;
        if (v->broken != broken) continue;
        if ((o->family && strcmp(o->family, v->family)) || (o->kd && o->kd != v->kd)) continue;
        if (o->variant ? strcmp(o->variant, v->kernel) != 0 : !family_find(v->family)) continue;
        if (!family_find(v->family))
            return err_set(ERR_USAGE, "%s is of family %s, which has no contract to check by",
                           v->kernel, v->family);
        enum status st = check_one(o, reg, v, &ok);
        if (st != OK) return st;
        *bad += !ok;
        ++*done;
    }
    return OK;
}

/* The broken ones last: what they do to the device must not colour the others' results. */
static enum status check_all(const struct options *o, const struct registry *reg, int *bad,
                             int *done)
{
    enum status st = check_pass(o, reg, false, bad, done);
    if (st == OK) st = check_pass(o, reg, true, bad, done);
    if (st != OK) return st;
    if (*done == 0 && !o->variant && (o->family || o->kd))
        return err_set(ERR_USAGE, "no kernel of that family and depth in %s", registry_dir(reg));
    if (*done == 0 && o->variant)
        return err_set(ERR_USAGE, "no kernel %s in %s; kcheck --list shows what is there",
                       o->variant, registry_dir(reg));
    return OK;
}

static int run(const struct options *o)
{
    static struct check_report device;
    struct registry *reg = NULL;
    int bad = 0, done = 0;
    bool broken = o->broken || (o->variant && !strncmp(o->variant, "broken_", 7));
    struct registry_options ro = {
        .dir = o->cubins, .include_broken = broken, .arch = o->arch, .extra = o->variants};
    enum status st = o->list ? OK : probe(o->limit_s, &device);
    ro.sm = device.sm;
    if (st == OK) st = registry_open(&ro, &reg);
    if (st == OK && o->against && !registry_find(reg, o->against))
        st = err_set(ERR_USAGE, "no kernel %s to hold others against", o->against);
    if (st == OK && o->csv && !o->list) check_print_csv_head();
    if (st == OK && o->list) check_print_list(reg);
    if (st == OK && !o->list) st = check_all(o, reg, &bad, &done);
    if (st != OK) fprintf(stderr, "kcheck: %s\n", err_msg());
    if (st == OK && !o->list && !o->json && !o->csv)
        printf("%d variants on %s: %d as they should be, %d not\n", done, device.device, done - bad,
               bad);
    registry_close(reg);
    return st != OK ? err_exit_code(st) : bad ? EXIT_FAILED : EXIT_OK;
}

int main(int argc, char **argv)
{
    struct options o;
    if (parse(argc, argv, &o) != OK) {
        fprintf(stderr, "kcheck: %s\n", err_msg());
        return EXIT_USAGE;
    }
    if (o.fragments) return check_fragments(true) ? EXIT_FAILED : EXIT_OK;
    if (o.serve) {
        struct serve_options so = {
            .kernel = o.variant, .cubins = o.cubins, .shape = o.shapes[0], .blocks = o.blocks};
        return serve_run(&so);
    }
    return run(&o);
}
