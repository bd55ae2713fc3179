/*
 * Job: the `diff` subcommand: pick two kernels, compare, print.
 *
 * Invariants: results go to stdout, one line of complaint to stderr. The exit status of a diff is 0
 * whatever the verdict; a claim that isn't met, and --same that isn't, give 1.
 */
#include "tui/cmd_diff.h"
#include "sass_view/diff.h"
#include "sass_view/operands.h"
#include "tui/cmd_sass_print.h"
#include "tui/commands.h"
#include "tui/pick_kernel.h"
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *a, *b, *claim;
    bool json, code, same;
};

/* What is compared, all of it decoded. */
struct pair {
    struct picked a, b;
    struct diff diff;
    struct diff_row *rows;
    size_t nrows;
    struct claim_result claim;
    const char *claim_text; /* NULL: none */
};

static int get_regs(const struct picked *p)
{
    return p->kernel->regs;
}
static int get_smem(const struct picked *p)
{
    return p->kernel->smem;
}
static int get_spill(const struct picked *p)
{
    return sass_spill_bytes(p->kernel);
}
static int get_stack(const struct picked *p)
{
    return p->kernel->stack;
}
static int get_barriers(const struct picked *p)
{
    return p->kernel->barriers;
}
static int get_threads(const struct picked *p)
{
    return p->kernel->max_threads;
}
static int get_blocks(const struct picked *p)
{
    return sass_blocks_per_sm(&p->cubin, p->kernel);
}
static int get_total(const struct picked *p)
{
    return (int)p->census.total;
}

/* In the order of print and JSON. */
static const struct {
    const char *name;
    int (*get)(const struct picked *p);
} resources[] = {
    {"instructions", get_total}, {"registers", get_regs},       {"shared", get_smem},
    {"spill", get_spill},        {"stack", get_stack},          {"barriers", get_barriers},
    {"threads", get_threads},    {"blocks_per_sm", get_blocks},
};
enum { NRESOURCES = sizeof resources / sizeof resources[0] };

/* Text */

static void print_side(const char *letter, const struct picked *p)
{
    printf("%s  %s  %s%s%s  code %016" PRIx64 "  %s\n", letter, sass_name(p->kernel->name),
           p->cubin.arch, p->cubin.toolkit[0] ? "  CUDA " : "", p->cubin.toolkit,
           p->kernel->code_hash, sass_safe(p->file));
}

static void print_delta(long d)
{
    if (d)
        printf(" %+8ld", d);
    else
        printf(" %8s", "=");
}

static void print_resources(const struct pair *p)
{
    printf("\n  %-24s %8s %8s %8s\n", "resources", "A", "B", "delta");
    for (int i = 0; i < NRESOURCES; i++) {
        char buf[2][16];
        int a = resources[i].get(&p->a), b = resources[i].get(&p->b);
        printf("  %-24s %8s %8s", resources[i].name, sass_number(a, buf[0]),
               sass_number(b, buf[1]));
        if (a != CUBIN_UNKNOWN && b != CUBIN_UNKNOWN) print_delta((long)b - a);
        putchar('\n');
    }
}

static void print_census(const struct pair *p)
{
    static const char *const heads[] = {"total", "in loop", "hot loop"};
    size_t same = 0;
    printf("\n  %-24s", "opcode");
    for (int s = 0; s < CENSUS_SCOPES; s++) printf(" | %8s %6s %8s", heads[s], "B", "delta");
    putchar('\n');
    for (size_t i = 0; i < p->nrows; i++) {
        const struct diff_row *r = &p->rows[i];
        if (!memcmp(r->a, r->b, sizeof r->a)) {
            same++;
            continue;
        }
        printf("  %-24s", r->key);
        for (int s = 0; s < CENSUS_SCOPES; s++) {
            printf(" | %8u %6u", r->a[s], r->b[s]);
            print_delta((long)r->b[s] - (long)r->a[s]);
        }
        putchar('\n');
    }
    printf("  %zu opcodes with equal counts left out\n", same);
}

/* "  1a0  @P0 LDS.32 R4, [R2]" in exactly `w` columns. */
static void side_text(const struct flow *f, int32_t i, char *out, size_t w)
{
    char text[160] = "", guard[16], ops[96];
    if (i >= 0) {
        const struct insn *in = &f->insns[i];
        snprintf(text, sizeof text, "%5x %2d %s%s %s", in->offset,
                 f->insn_loop[i] < 0 ? 0 : f->loops[f->insn_loop[i]].depth,
                 insn_guard_text(in, guard, sizeof guard), in->key,
                 insn_operand_text(in, ops, sizeof ops));
    }
    snprintf(out, w + 1, "%-*s", (int)w, text);
}

static void print_code(const struct pair *p)
{
    static const char marks[DIFF_KINDS] = {' ', '~', '.', '<', '>'};
    enum { W = 58 };
    printf("\n%-*s   %s\n", W, "A", "B");
    for (uint32_t i = 0; i < p->diff.nlines; i++) {
        const struct diff_line *l = &p->diff.lines[i];
        char a[W + 1], b[W + 1];
        side_text(&p->a.flow, l->a, a, W);
        side_text(&p->b.flow, l->b, b, W);
        size_t n = strlen(b);
        while (n && b[n - 1] == ' ') b[--n] = 0;
        printf("%s %c %s\n", a, marks[l->kind], b);
    }
    puts("  (nothing) equal  ~ scheduling differs  . operands differ  < only in A  > only in B");
}

static void print_text(const struct pair *p, bool code)
{
    const struct diff *d = &p->diff;
    print_side("A", &p->a);
    print_side("B", &p->b);
    printf("verdict: %s\n", diff_verdict_name(d->verdict));
    if (p->claim_text) printf("claim: %s: %s\n", sass_safe(p->claim_text), p->claim.text);
    printf("aligned: %u equal, %u with other scheduling, %u with other operands; %u only in A, %u "
           "only in B%s\n",
           d->n[DIFF_SAME], d->n[DIFF_CONTROL], d->n[DIFF_OPERANDS], d->n[DIFF_ONLY_A],
           d->n[DIFF_ONLY_B], d->aligned ? "" : " (too different to align whole)");
    print_resources(p);
    if (d->verdict == DIFF_DIFFERENT) print_census(p);
    if (code) print_code(p);
}

/* JSON */

static bool add_side(cJSON *o, const char *key, const struct picked *p)
{
    cJSON *s = cJSON_AddObjectToObject(o, key);
    return s && cJSON_AddStringToObject(s, "file", sass_safe(p->file)) &&
           cJSON_AddStringToObject(s, "kernel", sass_safe(p->kernel->name)) &&
           cJSON_AddStringToObject(s, "name", sass_name(p->kernel->name)) &&
           cJSON_AddStringToObject(s, "arch", p->cubin.arch) &&
           cJSON_AddStringToObject(s, "toolkit", p->cubin.toolkit) &&
           sass_add_hash(s, "cubin_hash", p->cubin.file_hash) &&
           sass_add_hash(s, "code_hash", p->kernel->code_hash);
}

static bool add_resources(cJSON *o, const struct pair *p)
{
    cJSON *list = cJSON_AddObjectToObject(o, "resources");
    bool ok = list != NULL;
    for (int i = 0; ok && i < NRESOURCES; i++) {
        cJSON *r = cJSON_AddObjectToObject(list, resources[i].name);
        ok = r && sass_add_number(r, "a", resources[i].get(&p->a)) &&
             sass_add_number(r, "b", resources[i].get(&p->b));
    }
    return ok;
}

static bool add_opcodes(cJSON *o, const struct pair *p)
{
    static const char *const names[][2] = {
        {"total_a", "total_b"}, {"in_loop_a", "in_loop_b"}, {"hot_a", "hot_b"}};
    cJSON *list = cJSON_AddArrayToObject(o, "opcodes");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nrows; i++) {
        cJSON *r = cJSON_CreateObject();
        ok = r && cJSON_AddItemToArray(list, r) &&
             cJSON_AddStringToObject(r, "opcode", p->rows[i].key) &&
             cJSON_AddStringToObject(r, "class", insn_class_name((enum insn_class)p->rows[i].cls));
        for (int s = 0; ok && s < CENSUS_SCOPES; s++)
            ok = cJSON_AddNumberToObject(r, names[s][0], p->rows[i].a[s]) &&
                 cJSON_AddNumberToObject(r, names[s][1], p->rows[i].b[s]);
    }
    return ok;
}

static bool add_alignment(cJSON *o, const struct pair *p)
{
    static const char *const names[DIFF_KINDS] = {"equal", "other_schedule", "other_operands",
                                                  "only_a", "only_b"};
    cJSON *n = cJSON_AddObjectToObject(o, "aligned");
    bool ok = n && cJSON_AddBoolToObject(n, "whole", p->diff.aligned);
    for (int k = 0; ok && k < DIFF_KINDS; k++)
        ok = cJSON_AddNumberToObject(n, names[k], p->diff.n[k]) != NULL;
    return ok;
}

static bool add_claim(cJSON *o, const struct pair *p)
{
    static const char *const states[] = {"met", "incumbent", "unmet", "unknown"};
    cJSON *c = p->claim_text ? cJSON_AddObjectToObject(o, "claim") : NULL;
    if (!p->claim_text) return cJSON_AddNullToObject(o, "claim") != NULL;
    return c && cJSON_AddStringToObject(c, "text", sass_safe(p->claim_text)) &&
           cJSON_AddStringToObject(c, "state", states[p->claim.state]) &&
           cJSON_AddStringToObject(c, "why", p->claim.text);
}

static enum status print_json(const struct pair *p)
{
    cJSON *o = cJSON_CreateObject();
    bool ok = o && add_side(o, "a", &p->a) && add_side(o, "b", &p->b) &&
              cJSON_AddStringToObject(o, "verdict", diff_verdict_name(p->diff.verdict)) &&
              add_claim(o, p) && add_alignment(o, p) && add_resources(o, p) && add_opcodes(o, p);
    enum status st = ok ? sass_print_json(o) : err_set(ERR_NOMEM, "out of memory for the JSON");
    cJSON_Delete(o);
    return st;
}

static enum status run(const struct options *o, int *status)
{
    struct pair p = {.claim_text = o->claim};
    struct claim claim = {0};
    enum status st = o->claim ? claim_parse(&claim, o->claim) : OK;
    if (st) return err_prefix(ERR_USAGE, "--claim");
    if ((st = pick_kernel(&p.a, o->a, NULL))) goto out;
    if ((st = pick_kernel(&p.b, o->b, p.a.kernel->name))) goto out;
    st = diff_make(&p.diff, &p.a.flow, &p.b.flow, &p.a.census, &p.b.census);
    if (st == OK) st = diff_census(&p.a.census, &p.b.census, &p.rows, &p.nrows);
    if (st) goto out;
    if (o->claim) claim_hold(&claim, &p.diff, &p.a.census, &p.b.census, &p.claim);
    if (o->json)
        st = print_json(&p);
    else
        print_text(&p, o->code);
    if (st == OK && fflush(stdout)) st = err_set(ERR_IO, "writing the output failed");
    if ((o->claim && p.claim.state != CLAIM_MET) || (o->same && p.diff.verdict > DIFF_SCHEDULE))
        *status = EXIT_FAILED;
out:
    free(p.rows);
    diff_free(&p.diff);
    pick_free(&p.a);
    pick_free(&p.b);
    return st;
}

static enum status parse(int argc, char **argv, struct options *o, bool *help)
{
    static const struct option longs[] = {
        {"code", no_argument, NULL, 'd'}, {"claim", required_argument, NULL, 'c'},
        {"same", no_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0},
    };
    int ch;
    optind = 0; /* GNU: start afresh, also when called twice */
    while ((ch = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (ch == 'h')
            *help = true;
        else if (ch == 'd')
            o->code = true;
        else if (ch == 'c')
            o->claim = optarg;
        else if (ch == 's')
            o->same = true;
        else if (ch == 'j')
            o->json = true;
        else
            return err_set(ERR_USAGE, "try 'sasstop diff --help'");
    }
    if (*help) return OK;
    if (argc - optind != 2)
        return err_set(ERR_USAGE, "two kernels are compared; try 'sasstop diff --help'");
    o->a = argv[optind];
    o->b = argv[optind + 1];
    return OK;
}

int cmd_diff(int argc, char **argv)
{
    struct options o = {0};
    bool help = false;
    sass_start_output();
    int status = EXIT_OK;
    enum status st = parse(argc, argv, &o, &help);
    if (st == OK && help) {
        return cmd_help(2, (char *[]){(char *)"help", (char *)"diff", NULL});
    }
    if (st == OK) st = run(&o, &status);
    if (st) {
        sass_complain("diff");
        return err_exit_code(st);
    }
    return status;
}
