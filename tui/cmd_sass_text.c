/*
 * Job: the text formats of the `sass` subcommand, and the helpers that all formats share.
 *
 * Invariants: names out of the file reach the terminal only through sass_safe(), so that a hostile
 * file can't drive it; a figure the file doesn't state is "-". To add a format: printers here, a
 * struct sass_format, its option in cmd_sass.c.
 */
#include "sass_view/demangle.h"
#include "sass_view/occupancy.h"
#include "tui/cmd_sass_print.h"
#include "tui/listing.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --list counts instructions of cubins up to this size; counting costs a decoding. */
enum { LIST_COUNT_MAX = 4 << 20 };

/* Printable ASCII only, cut to fit. */
static const char *tame(const char *s, char *buf, size_t size)
{
    size_t i = 0;
    for (; s[i] && i < size - 1; i++)
        buf[i] = (unsigned char)s[i] < 0x20 || (unsigned char)s[i] > 0x7e ? '?' : s[i];
    buf[i] = 0;
    return buf;
}

const char *sass_safe(const char *s)
{
    static char buf[256];
    return tame(s, buf, sizeof buf);
}

/* Not through sass_safe(): both may stand in one printf(). */
const char *sass_name(const char *mangled)
{
    static char name[256];
    char raw[256];
    return tame(demangle(mangled, raw, sizeof raw), name, sizeof name);
}

void sass_complain(const char *command)
{
    const char *s = err_msg();
    fprintf(stderr, "sasstop %s: ", command);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];
        bool c1 = c == 0xc2 && next >= 0x80 && next <= 0x9f; /* a control character in UTF-8 */
        fputc(c < 0x20 || c == 0x7f || c1 ? '?' : c, stderr);
        s += c1;
    }
    fputc('\n', stderr);
}

enum status sass_sealed(const char *file)
{
    return err_set(
        ERR_UNAVAILABLE,
        "%s: NVIDIA's licence forbids disassembling its libraries: kernels and resources "
        "(sasstop sass --list) are all that is shown",
        file);
}

void sass_start_output(void)
{
    signal(SIGPIPE, SIG_DFL);
}

const char *sass_number(int v, char buf[16])
{
    if (v == CUBIN_UNKNOWN) return "-";
    snprintf(buf, 16, "%d", v);
    return buf;
}

int sass_blocks_per_sm(const struct cubin *c, const struct cubin_kernel *k)
{
    const struct chip_limits *lim = chip_limits_find(c->sm);
    if (!lim || k->regs <= 0 || k->max_threads <= 0 || k->smem < 0) return CUBIN_UNKNOWN;
    return occupancy_compute(lim, k->regs, k->smem, k->max_threads).blocks;
}

int sass_spill_bytes(const struct cubin_kernel *k)
{
    return k->spill_store < 0 || k->spill_load < 0 ? CUBIN_UNKNOWN : k->spill_store + k->spill_load;
}

/* Text: the parts of a file */

static void print_size(uint64_t bytes)
{
    if (bytes < 10 << 20)
        printf(" %9" PRIu64 " KB", (bytes + 512) >> 10);
    else
        printf(" %9" PRIu64 " MB", (bytes + (1 << 19)) >> 20);
}

static enum status parts_file(struct sass_job *j)
{
    const struct container *c = j->container;
    printf("%s: %s", sass_safe(j->file), container_kind_name(c->kind));
    if (c->soname[0]) printf(" %s", sass_safe(c->soname));
    printf(", %zu cubins, %zu PTX\n", c->ncubins, c->nptx);
    if (c->vendor) printf("NVIDIA's licence forbids disassembling this library: see --list\n");
    printf("%6s  %-6s %-13s %-8s %12s %12s\n", "part", "kind", "arch", "packing", "in file",
           "unpacked");
    for (size_t i = 0; i < c->nparts; i++) {
        static const char *const kinds[] = {"cubin", "PTX", "other"};
        const struct part *p = &c->parts[i];
        printf("%6zu  %-6s %-13s %-8s", i, kinds[p->kind], p->arch, part_packing_name(p->packing));
        print_size(p->size);
        print_size(p->raw_size);
        puts(p->relocatable ? "  not linked (-rdc)" : "");
    }
    return OK;
}

/* Text: the list */

static enum status list_cubin(struct sass_job *j)
{
    const struct cubin *c = j->cubin;
    if (j->container->nparts > 1) printf("%spart %zu: ", j->shown ? "\n" : "", j->part);
    printf("%s, ABI %d%s%s, %zu kernels, file %016" PRIx64 "\n", c->arch, c->abi,
           c->toolkit[0] ? ", CUDA " : "", c->toolkit, c->nkernels, c->file_hash);
    printf("%8s %5s %7s %7s %6s %4s %7s %9s  %s\n", "inst", "regs", "smem", "spill", "stack", "bar",
           "threads", "blocks/SM", "kernel");
    return OK;
}

/* Instructions without padding: decoded, so not for sealed cubins nor for very large files. */
static enum status count_insns(const struct sass_job *j, const struct cubin_kernel *k, int *n)
{
    struct census s;
    *n = CUBIN_UNKNOWN;
    if (j->cubin->sealed || j->cubin->size > LIST_COUNT_MAX) return OK;
    enum status st = census_make(&s, j->cubin, k);
    if (st == OK) *n = (int)s.total;
    census_free(&s);
    return st;
}

static enum status list_kernel(struct sass_job *j, const struct cubin_kernel *k)
{
    char b[8][16];
    int insns;
    enum status st = count_insns(j, k, &insns);
    if (st) return st;
    printf("%8s %5s %7s %7s %6s %4s %7s %9s  %s%s\n", sass_number(insns, b[7]),
           sass_number(k->regs, b[0]), sass_number(k->smem, b[1]),
           sass_number(sass_spill_bytes(k), b[2]), sass_number(k->stack, b[3]),
           sass_number(k->barriers, b[4]), sass_number(k->max_threads, b[5]),
           sass_number(sass_blocks_per_sm(j->cubin, k), b[6]), sass_name(k->name),
           k->entry ? "" : "  (device function)");
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
    printf("%s  %s\n", sass_name(k->name), s->arch);
    if (!strncmp(k->name, "_Z", 2)) printf("  symbol %s\n", sass_safe(k->name));
    printf("  code %016" PRIx64 "  file %016" PRIx64 "\n", s->code_hash, s->file_hash);
    printf("  registers %s  shared %s B  spill %s B  stack %s B  barriers %s  max threads %s  "
           "blocks/SM %s\n",
           sass_number(s->regs, b[0]), sass_number(s->smem, b[1]),
           sass_number(s->spill_bytes, b[2]), sass_number(s->stack, b[3]),
           sass_number(s->barriers, b[4]), sass_number(s->max_threads, b[5]),
           sass_number(sass_blocks_per_sm(c, k), b[6]));
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
    uint64_t macs = census_macs(s, CENSUS_HOT);
    if (macs)
        printf("  a pass of the hot loop: %" PRIu64 " MACs a warp, %.3f M instructions/GMAC\n",
               macs, (double)s->sum[CENSUS_HOT] / (double)macs * 1e3);
}

static enum status census_kernel(struct sass_job *j, const struct cubin_kernel *k)
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

static enum status code_kernel(struct sass_job *j, const struct cubin_kernel *k)
{
    struct flow f;
    enum status st = flow_make(&f, j->cubin, k);
    if (st) return st;
    printf("%s  %s\n", sass_name(k->name), j->cubin->arch);
    printf("  offset  loops  %-16s   instruction\n", "st  w  r  wait");
    for (uint32_t i = 0; i < f.ninsns; i++) {
        const struct insn *in = &f.insns[i];
        char text[160], control[32];
        uint32_t depth = f.insn_loop[i] >= 0 ? f.loops[f.insn_loop[i]].depth : 0;
        printf("  %6x  %5u  %-16s %c %s\n", in->offset, depth,
               control_text(in, control, sizeof control), f.padding[i] ? '.' : ' ',
               insn_text(in, text, sizeof text));
    }
    flow_free(&f);
    return OK;
}

const struct sass_format sass_census_format = {.name = "census", .kernel = census_kernel};
const struct sass_format sass_list_format = {
    .name = "list", .cubin = list_cubin, .kernel = list_kernel, .sealed_too = true};
const struct sass_format sass_code_format = {.name = "code", .kernel = code_kernel};
const struct sass_format sass_parts_format = {
    .name = "parts", .file = parts_file, .parts_only = true, .sealed_too = true};
