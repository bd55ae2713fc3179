/*
 * Job: the `sass` subcommand: read a cubin, print kernels, censuses or code as text or JSON.
 *
 * Invariants: names out of the file reach the terminal only through safe(), so a hostile cubin
 * can't drive it; results go to stdout, one line of complaint to stderr; a figure the file doesn't
 * state is
 * "-" in text and null in JSON. To add a format: a printer in `formats`, an option beside the
 * others.
 */
#include "tui/cmd_sass.h"
#include "base/status.h"
#include "sass_view/census.h"
#include "sass_view/occupancy.h"
#include <cjson/cJSON.h>
#include <getopt.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *file, *kernel, *arch;
    const struct format *format;
};

struct job {
    const struct cubin *cubin;
    cJSON *json; /* the array under construction, or NULL */
};

struct format {
    const char *name;
    enum status (*begin)(struct job *j);
    enum status (*kernel)(struct job *j, const struct cubin_kernel *k);
    enum status (*end)(struct job *j);
};

static const char usage_text[] =
    "usage: sasstop sass FILE [KERNEL-REGEX] [--census | --list | --code | --json] [--arch ARCH]\n"
    "\n"
    "Shows what the kernels of a cubin are made of. Needs no GPU.\n"
    "\n"
    "  FILE           a cubin (nvcc -cubin)\n"
    "  KERNEL-REGEX   only kernels whose name matches (POSIX extended)\n"
    "  --census       instructions by class and opcode: whole kernel, in loops, hot loop "
    "(default)\n"
    "  --list         one line a kernel: registers, shared memory, spills, blocks/SM\n"
    "  --code         every instruction: address, guard, opcode, branch target, loop depth\n"
    "  --json         the census as a JSON array\n"
    "  --arch ARCH    fail unless the file is for ARCH (sm_90a, 90a)\n"
    "  -h, --help     this text\n"
    "\n"
    "Exit status: 0 printed, 1 the file can't be read or nothing matches, 2 wrong usage.\n";

/* Printable ASCII only, at most 255 characters. */
static const char *safe(const char *s)
{
    static char buf[256];
    size_t i = 0;
    for (; s[i] && i < sizeof buf - 1; i++)
        buf[i] = (unsigned char)s[i] < 0x20 || (unsigned char)s[i] > 0x7e ? '?' : s[i];
    buf[i] = 0;
    return buf;
}

static const char *number(int v, char buf[16])
{
    if (v == CUBIN_UNKNOWN) return "-";
    snprintf(buf, 16, "%d", v);
    return buf;
}

/* Blocks that fit on an SM when a block has the kernel's largest stated size; -1 when not known. */
static int blocks_per_sm(const struct cubin *c, const struct cubin_kernel *k)
{
    const struct chip_limits *lim = chip_limits_find(c->sm);
    if (!lim || k->regs <= 0 || k->max_threads <= 0 || k->smem < 0) return CUBIN_UNKNOWN;
    return occupancy_compute(lim, k->regs, k->smem, k->max_threads).blocks;
}

static int spill_bytes(const struct cubin_kernel *k)
{
    return k->spill_store < 0 || k->spill_load < 0 ? CUBIN_UNKNOWN : k->spill_store + k->spill_load;
}

/* Text: the list */

static enum status list_begin(struct job *j)
{
    printf("%s, ABI %d%s%s, %zu kernels, file %016" PRIx64 "\n", j->cubin->arch, j->cubin->abi,
           j->cubin->toolkit[0] ? ", CUDA " : "", j->cubin->toolkit, j->cubin->nkernels,
           j->cubin->file_hash);
    printf("%8s %5s %7s %7s %6s %4s %7s %9s  %s\n", "inst", "regs", "smem", "spill", "stack", "bar",
           "threads", "blocks/SM", "kernel");
    return OK;
}

static enum status list_kernel(struct job *j, const struct cubin_kernel *k)
{
    char b[7][16];
    struct census s;
    enum status st = census_make(&s, j->cubin, k);
    if (st) return st;
    printf("%8u %5s %7s %7s %6s %4s %7s %9s  %s%s\n", s.total, number(k->regs, b[0]),
           number(k->smem, b[1]), number(spill_bytes(k), b[2]), number(k->stack, b[3]),
           number(k->barriers, b[4]), number(k->max_threads, b[5]),
           number(blocks_per_sm(j->cubin, k), b[6]), safe(k->name),
           k->entry ? "" : "  (device function)");
    census_free(&s);
    return OK;
}

/* Text: the census */

static void print_row(const char *name, const uint32_t n[CENSUS_SCOPES], uint32_t total,
                      const char *note)
{
    printf("  %-28s %8u %6.1f%% %8u %8u", name, n[CENSUS_ALL],
           total ? 100.0 * n[CENSUS_ALL] / total : 0.0, n[CENSUS_LOOP], n[CENSUS_HOT]);
    if (note[0]) printf("  %s", note);
    putchar('\n');
}

static void print_heading(const char *what)
{
    printf("\n  %-28s %8s %7s %8s %8s\n", what, "total", "share", "in loop", "hot loop");
}

static void print_figures(const struct cubin *c, const struct cubin_kernel *k,
                          const struct census *s)
{
    char b[8][16];
    printf("%s  %s\n", safe(k->name), s->arch);
    printf("  code %016" PRIx64 "  file %016" PRIx64 "\n", s->code_hash, s->file_hash);
    printf("  registers %s  shared %s B  spill %s B  stack %s B  barriers %s  max threads %s  "
           "blocks/SM %s\n",
           number(s->regs, b[0]), number(s->smem, b[1]), number(s->spill_bytes, b[2]),
           number(s->stack, b[3]), number(s->barriers, b[4]), number(s->max_threads, b[5]),
           number(blocks_per_sm(c, k), b[6]));
    printf("  instructions %u, and %u of padding left out", s->total, s->padding);
    if (s->dummies) printf("; %u compiler-made dummies left out", s->dummies);
    if (s->unknown) printf("; %u unknown to the opcode table", s->unknown);
    putchar('\n');
    if (!s->loops_known)
        printf("  loops: not known, the flow graph is over its limit\n");
    else if (!s->hot.depth)
        printf("  loops: none\n");
    else
        printf("  loops: %u; hot loop 0x%x-0x%x, depth %u, %u instructions\n", s->nloops,
               s->hot.head, s->hot.last, s->hot.depth, s->hot.insns);
}

static enum status census_kernel(struct job *j, const struct cubin_kernel *k)
{
    struct census s;
    enum status st = census_make(&s, j->cubin, k);
    if (st) return st;
    print_figures(j->cubin, k, &s);
    print_heading("class");
    for (int c = 0; c < INSN_CLASSES; c++)
        if (s.classes[c][CENSUS_ALL])
            print_row(insn_class_name((enum insn_class)c), s.classes[c], s.total, "");
    print_row("sum", s.sum, s.total, "");
    print_heading("opcode");
    for (size_t i = 0; i < s.nrows; i++)
        print_row(s.rows[i].key, s.rows[i].n, s.total,
                  insn_class_name((enum insn_class)s.rows[i].cls));
    putchar('\n');
    census_free(&s);
    return OK;
}

/* Text: the code */

static enum status code_kernel(struct job *j, const struct cubin_kernel *k)
{
    struct flow f;
    enum status st = flow_make(&f, j->cubin, k);
    if (st) return st;
    printf("%s  %s\n", safe(k->name), j->cubin->arch);
    for (uint32_t i = 0; i < f.ninsns; i++) {
        const struct insn *in = &f.insns[i];
        char guard[16];
        uint32_t depth = f.insn_loop[i] >= 0 ? f.loops[f.insn_loop[i]].depth : 0;
        printf("  %6x  %2u %c  st%-2u %6s%s", in->offset, depth, f.padding[i] ? '.' : ' ',
               in->ctl.stall, insn_guard_text(in, guard, sizeof guard), in->key);
        if (in->target != INSN_NO_TARGET) printf(" -> %" PRIx64, (uint64_t)in->target);
        putchar('\n');
    }
    flow_free(&f);
    return OK;
}

/* JSON */

static bool add_number(cJSON *o, const char *key, int v)
{
    return v == CUBIN_UNKNOWN ? cJSON_AddNullToObject(o, key) != NULL
                              : cJSON_AddNumberToObject(o, key, v) != NULL;
}

static bool add_hash(cJSON *o, const char *key, uint64_t v)
{
    char s[17];
    snprintf(s, sizeof s, "%016" PRIx64, v);
    return cJSON_AddStringToObject(o, key, s) != NULL;
}

/* The counts of one scope: "opcodes" and "classes", without zeros. */
static bool add_counts(cJSON *o, const struct census *s, enum census_scope scope)
{
    cJSON *ops = cJSON_AddObjectToObject(o, "opcodes");
    cJSON *cls = cJSON_AddObjectToObject(o, "classes");
    bool ok = ops && cls;
    for (size_t i = 0; ok && i < s->nrows; i++)
        if (s->rows[i].n[scope])
            ok = cJSON_AddNumberToObject(ops, s->rows[i].key, s->rows[i].n[scope]) != NULL;
    for (int c = 0; ok && c < INSN_CLASSES; c++)
        if (s->classes[c][scope])
            ok = cJSON_AddNumberToObject(cls, insn_class_name((enum insn_class)c),
                                         s->classes[c][scope]) != NULL;
    return ok;
}

static bool add_scope(cJSON *o, const char *key, const struct census *s, enum census_scope scope)
{
    cJSON *in = s->loops_known ? cJSON_AddObjectToObject(o, key) : NULL;
    if (!in) return !s->loops_known && cJSON_AddNullToObject(o, key);
    return cJSON_AddNumberToObject(in, "total", s->sum[scope]) && add_counts(in, s, scope);
}

static bool fill_object(cJSON *o, const struct job *j, const struct cubin_kernel *k,
                        const struct census *s)
{
    return cJSON_AddStringToObject(o, "kernel", safe(k->name)) &&
           cJSON_AddStringToObject(o, "arch", s->arch) && add_hash(o, "cubin_hash", s->file_hash) &&
           add_hash(o, "code_hash", s->code_hash) &&
           cJSON_AddNumberToObject(o, "total", s->total) &&
           cJSON_AddNumberToObject(o, "padding", s->padding) &&
           cJSON_AddNumberToObject(o, "dummies", s->dummies) &&
           cJSON_AddNumberToObject(o, "unknown", s->unknown) && add_counts(o, s, CENSUS_ALL) &&
           add_scope(o, "in_loop", s, CENSUS_LOOP) && add_scope(o, "hot_loop", s, CENSUS_HOT) &&
           add_number(o, "regs", s->regs) && add_number(o, "smem", s->smem) &&
           add_number(o, "spill_bytes", s->spill_bytes) && add_number(o, "stack", s->stack) &&
           add_number(o, "barriers", s->barriers) && add_number(o, "max_threads", s->max_threads) &&
           add_number(o, "blocks_per_sm", blocks_per_sm(j->cubin, k));
}

static enum status json_begin(struct job *j)
{
    j->json = cJSON_CreateArray();
    return j->json ? OK : err_set(ERR_NOMEM, "out of memory for the JSON");
}

static enum status json_kernel(struct job *j, const struct cubin_kernel *k)
{
    struct census s;
    enum status st = census_make(&s, j->cubin, k);
    if (st) return st;
    cJSON *o = cJSON_CreateObject();
    if (!o || !cJSON_AddItemToArray(j->json, o) || !fill_object(o, j, k, &s))
        st = err_set(ERR_NOMEM, "out of memory for the JSON");
    census_free(&s);
    return st;
}

static enum status json_end(struct job *j)
{
    char *text = cJSON_Print(j->json);
    if (!text) return err_set(ERR_NOMEM, "out of memory for the JSON");
    puts(text);
    cJSON_free(text);
    return OK;
}

static const struct format formats[] = {
    {.name = "census", .kernel = census_kernel},
    {.name = "list", .begin = list_begin, .kernel = list_kernel},
    {.name = "code", .kernel = code_kernel},
    {.name = "json", .begin = json_begin, .kernel = json_kernel, .end = json_end},
};
enum { NFORMATS = sizeof formats / sizeof formats[0] };

static enum status check_arch(const struct cubin *c, const struct options *o)
{
    const char *want = o->arch;
    if (!want) return OK;
    if (!strncmp(want, "sm_", 3)) want += 3;
    if (!strcmp(c->arch + 3, want)) return OK;
    return err_set(ERR_FAILED, "%s is for %s, not for sm_%s", o->file, c->arch, safe(want));
}

static enum status print_kernels(struct job *j, const struct options *o, const regex_t *re)
{
    size_t shown = 0;
    enum status st = o->format->begin ? o->format->begin(j) : OK;
    for (size_t i = 0; st == OK && i < j->cubin->nkernels; i++) {
        const struct cubin_kernel *k = &j->cubin->kernels[i];
        if (re && regexec(re, k->name, 0, NULL, 0)) continue;
        st = o->format->kernel(j, k);
        shown++;
    }
    if (st == OK && !shown)
        st = o->kernel ? err_set(ERR_FAILED, "no kernel in %s matches '%s' (--list shows all)",
                                 o->file, safe(o->kernel))
                       : err_set(ERR_FAILED, "no kernel in %s", o->file);
    if (st == OK && o->format->end) st = o->format->end(j);
    return st;
}

static enum status run(const struct options *o)
{
    struct cubin c;
    struct job j = {.cubin = &c};
    regex_t re;
    bool have_re = false;
    enum status st = cubin_open_file(&c, o->file);
    if (st) return st;
    if ((st = check_arch(&c, o))) goto out;
    if (o->kernel) {
        if (regcomp(&re, o->kernel, REG_EXTENDED | REG_NOSUB)) {
            st = err_set(ERR_USAGE, "'%s' is not a regular expression", safe(o->kernel));
            goto out;
        }
        have_re = true;
    }
    st = print_kernels(&j, o, have_re ? &re : NULL);
    if (st == OK && fflush(stdout)) st = err_set(ERR_IO, "writing the output failed");
out:
    if (have_re) regfree(&re);
    cJSON_Delete(j.json);
    cubin_close(&c);
    return st;
}

static enum status parse(int argc, char **argv, struct options *o, bool *help)
{
    static const struct option longs[] = {
        {"census", no_argument, NULL, 0},
        {"list", no_argument, NULL, 1},
        {"code", no_argument, NULL, 2},
        {"json", no_argument, NULL, 3},
        {"arch", required_argument, NULL, 'a'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int ch;
    o->format = &formats[0];
    optind = 0; /* GNU: start afresh, also when called twice */
    while ((ch = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (ch == 'h')
            *help = true;
        else if (ch == 'a')
            o->arch = optarg;
        else if (ch >= 0 && ch < NFORMATS)
            o->format = &formats[ch];
        else
            return err_set(ERR_USAGE, "try 'sasstop sass --help'");
    }
    if (*help) return OK;
    if (optind >= argc) return err_set(ERR_USAGE, "no file given; try 'sasstop sass --help'");
    if (argc - optind > 2)
        return err_set(ERR_USAGE, "more than a file and a kernel; try 'sasstop sass --help'");
    o->file = argv[optind];
    o->kernel = optind + 1 < argc ? argv[optind + 1] : NULL;
    return OK;
}

int cmd_sass(int argc, char **argv)
{
    struct options o = {0};
    bool help = false;
    enum status st = parse(argc, argv, &o, &help);
    if (st == OK && help) {
        fputs(usage_text, stdout);
        return EXIT_OK;
    }
    if (st == OK) st = run(&o);
    if (st) fprintf(stderr, "sasstop sass: %s\n", err_msg());
    return err_exit_code(st);
}
