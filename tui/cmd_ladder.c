/*
 * `sasstop ladder DIR`: the table of rungs as Markdown, from what tests/gpu/ladder.sh measured.
 *
 * Invariants: figures are copied or divided, never judged by eye; one that wasn't measured is "-".
 * A gain within the two interquartile ranges is called noise. To add a column: a row in RUNGS or
 * COUNTERS, and a function that prints it.
 */
#include "tui/commands.h"

#include "tui/csv.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE_M = 4096, LARGE_N = 512, LARGE_K = 14336, DEPTH = 16 };

enum table { ABOUT, LAUNCHES, BENCH, STEPS, COUNTERS_, SASS, CHECKS, SANITIZE, TABLES };

static const char *const NAMES[TABLES] = {"about",    "launches", "bench",  "steps",
                                          "counters", "sass",     "checks", "sanitize"};

struct ladder {
    struct csv of[TABLES];
    size_t *order; /* rows of launches, in the campaign's order */
    double *place; /* of a row of launches within its family */
    size_t n;
};

/* ---- figures of one rung; `row` is of launches ---- */

static const char *kernel_of(const struct ladder *l, size_t row)
{
    return csv_text(&l->of[LAUNCHES], row, "kernel");
}

static double launch_number(const struct ladder *l, size_t row, const char *name)
{
    return csv_number(&l->of[LAUNCHES], row, name);
}

static double macs(const struct ladder *l, size_t row)
{
    return launch_number(l, row, "m") * launch_number(l, row, "n") * launch_number(l, row, "k");
}

/* A counter by the first of several names, of either profile; NAN when there is none. */
static double counter(const struct ladder *l, const char *kernel, const char *const names[])
{
    static const enum table where[] = {COUNTERS_, SASS};
    for (int w = 0; w < 2; w++) {
        const struct csv *c = &l->of[where[w]];
        size_t row = csv_find(c, 0, "kernel", kernel);
        for (int i = 0; row && names[i]; i++) {
            double v = csv_number(c, row, names[i]);
            if (isfinite(v)) return v;
        }
    }
    return (double)NAN;
}

#define COUNTER(l, row, ...) counter(l, kernel_of(l, row), (const char *const[]){__VA_ARGS__, NULL})

static double instructions(const struct ladder *l, size_t row)
{
    return COUNTER(l, row, "smsp__inst_executed.sum");
}

/* The bench row of a kernel on a shape; 0 when it wasn't timed. */
static size_t timed(const struct ladder *l, const char *kernel, int m, int n, int k)
{
    const struct csv *c = &l->of[BENCH];
    for (size_t i = csv_find(c, 0, "kernel", kernel); i; i = csv_find(c, i, "kernel", kernel))
        if (csv_number(c, i, "m") == m && csv_number(c, i, "n") == n &&
            csv_number(c, i, "k") == k && isfinite(csv_number(c, i, "cold_us")))
            return i;
    return 0;
}

static size_t timed_large(const struct ladder *l, const char *kernel)
{
    return timed(l, kernel, LARGE_M, LARGE_N, LARGE_K);
}

/* ---- printing ---- */

static void cell(const char *format, double v)
{
    fputs(" | ", stdout);
    if (isfinite(v))
        printf(format, v);
    else
        putchar('-');
}

/* A file's words in a cell: a bar would end it. */
static void put_text(const char *s)
{
    for (; *s; s++) {
        if (*s == '|') putchar('\\');
        putchar(*s);
    }
}

static void cell_text(const char *s)
{
    fputs(" | ", stdout);
    put_text(*s ? s : "-");
}

/* A figure and its interquartile range. */
static void cell_spread(double v, double iqr, const char *format)
{
    cell(format, v);
    if (!isfinite(v) || !isfinite(iqr)) return;
    fputs(" +-", stdout);
    printf(format, iqr);
}

static void name_cells(const struct ladder *l, size_t row)
{
    const char *kd = csv_text(&l->of[LAUNCHES], row, "kd");
    fputs("| `", stdout);
    put_text(csv_text(&l->of[LAUNCHES], row, "rung"));
    putchar('`');
    cell_text(strcmp(kd, "0") ? kd : "");
}

struct stall {
    const char *name;
    size_t len;
    double v;
};

/* The n largest stall reasons, in warps a scheduler per issue; `selected` is no stall. */
static void cell_stalls(const struct ladder *l, size_t row, int n)
{
    static const char before[] = "smsp__average_warps_issue_stalled_",
                      after[] = "_per_issue_active.ratio";
    const struct csv *c = &l->of[COUNTERS_];
    size_t at = csv_find(c, 0, "kernel", kernel_of(l, row));
    struct stall top[3] = {{"", 0, 0}};
    for (size_t i = 0; at && i < c->columns; i++) {
        const char *h = c->cells[i], *end = strstr(h, after);
        double v = csv_number(c, at, h);
        if (strncmp(h, before, sizeof before - 1) || !end || end < h + sizeof before || !(v > 0))
            continue;
        struct stall s = {h + sizeof before - 1, (size_t)(end - h) - (sizeof before - 1), v};
        if (s.len == 8 && !strncmp(s.name, "selected", 8)) continue;
        for (int k = 0; k < n; k++)
            if (s.v > top[k].v) {
                struct stall t = top[k];
                top[k] = s;
                s = t;
            }
    }
    fputs(" | ", stdout);
    if (!top[0].len) putchar('-');
    for (int k = 0; k < n && top[k].len; k++)
        printf("%s%.*s %.2f", k ? ", " : "", (int)top[k].len, top[k].name, top[k].v);
}

/* What a rung gains over its parent at the same KD. */
static void cell_gain(const struct ladder *l, size_t row)
{
    const struct csv *c = &l->of[BENCH];
    const char *parent = csv_text(&l->of[LAUNCHES], row, "parent");
    char name[96];
    snprintf(name, sizeof name, "%.60s_kd%.20s", parent, csv_text(&l->of[LAUNCHES], row, "kd"));
    size_t own = timed_large(l, kernel_of(l, row)), old = timed_large(l, name);
    if (!old) old = timed_large(l, parent);
    if (!*parent || !own || !old) {
        fputs(" | -", stdout);
        return;
    }
    double a = csv_number(c, old, "cold_us"), b = csv_number(c, own, "cold_us");
    double noise = (csv_number(c, old, "cold_iqr") + csv_number(c, own, "cold_iqr")) / b;
    double gain = a / b - 1;
    if (!isfinite(gain)) {
        fputs(" | -", stdout);
        return;
    }
    printf(" | %s%+.1f%% over `%s`%s", fabs(gain) <= noise ? "noise (" : "", 100 * gain, parent,
           fabs(gain) <= noise ? ")" : "");
}

/* ---- sections ---- */

static void print_head(const struct ladder *l)
{
    const struct csv *a = &l->of[ABOUT];
    static const char *const words[] = {"device", "driver", "date", "version"};
    puts("# The ladder, measured\n");
    puts("Every variant (*rung*) of the families that were tuned step by step (*r1*, *r2*, ...), "
         "with what each step was said\nto bring (*the texts*) and what it brings *here*; words: "
         "[GLOSSARY.md](GLOSSARY.md).\n");
    puts("Made by `sasstop ladder docs/measurements/ladder` from what `tests/gpu/ladder.sh` "
         "measured; a test holds that\nthis page says the same. Where and when:\n");
    puts("| what | |\n|---|---|");
    for (int i = 0; i < 4; i++) {
        size_t row = csv_find(a, 0, "what", words[i]);
        printf("| %s | %s |\n", words[i], row ? csv_text(a, row, "value") : "-");
    }
    puts("\nTimes are medians of `kcheck --bench --quick` +- interquartile ranges: graphs of "
         "back-to-back launches, weights and\nactivations rotated over at least 4 times the L2 "
         "(cold) or not (hot), each rung in turns with its family's control.\nCounters are of one "
         "launch under ncu, clocks and caches left alone. The texts' verdicts are of a GB10.\n");
}

static void print_rungs(const struct ladder *l, const char *family, const char *control)
{
    const struct csv *b = &l->of[BENCH];
    printf("## %s at %d x %d x %d\n\n", family, LARGE_M, LARGE_N, LARGE_K);
    printf("| rung | KD | class | step | registers | shared memory | blocks/SM | M inst/GMAC | us "
           "cold | us hot | x `%s` | SM%% | top stall | the texts | here |\n",
           control);
    puts("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < l->n; i++) {
        size_t row = l->order[i], t = timed_large(l, kernel_of(l, row));
        if (strcmp(csv_text(&l->of[LAUNCHES], row, "family"), family)) continue;
        name_cells(l, row);
        cell_text(csv_text(&l->of[LAUNCHES], row, "class"));
        cell_text(csv_text(&l->of[LAUNCHES], row, "step"));
        cell("%.0f", launch_number(l, row, "regs"));
        cell("%.0f", launch_number(l, row, "smem"));
        cell("%.0f", launch_number(l, row, "blocks_per_sm"));
        cell("%.2f", instructions(l, row) / macs(l, row) * 1e3);
        cell_spread(csv_number(b, t, "cold_us"), csv_number(b, t, "cold_iqr"), "%.1f");
        cell("%.1f", csv_number(b, t, "hot_us"));
        cell("%.3f", csv_number(b, t, "ratio"));
        cell("%.1f", COUNTER(l, row, "sm__throughput.avg.pct_of_peak_sustained_elapsed"));
        cell_stalls(l, row, 1);
        cell_text(csv_text(&l->of[LAUNCHES], row, "verdict"));
        cell_gain(l, row);
        puts(" |");
    }
    putchar('\n');
}

static void print_other_shapes(const struct ladder *l)
{
    static const int shapes[][3] = {{4096, 512, 4096}, {14336, 512, 4096}};
    const struct csv *b = &l->of[BENCH];
    puts("## Other shapes\n");
    puts("| rung | KD | 4096 x 512 x 4096, us | x control | 14336 x 512 x 4096, us | x control |");
    puts("|---|---|---|---|---|---|");
    for (size_t i = 0; i < l->n; i++) {
        size_t row = l->order[i], t[2];
        for (int s = 0; s < 2; s++)
            t[s] = timed(l, kernel_of(l, row), shapes[s][0], shapes[s][1], shapes[s][2]);
        if (!t[0] && !t[1]) continue;
        name_cells(l, row);
        for (int s = 0; s < 2; s++) {
            cell_spread(csv_number(b, t[s], "cold_us"), csv_number(b, t[s], "cold_iqr"), "%.1f");
            cell("%.3f", csv_number(b, t[s], "ratio"));
        }
        puts(" |");
    }
    putchar('\n');
}

static void print_counters(const struct ladder *l)
{
    puts("## Counters\n");
    puts("ALU: instructions of the integer and logic pipe a MAC. LDSM: executed by a block for a "
         "chunk of 32 values. Conflicts: extra\nshared memory cycles by bank conflicts, as a part "
         "of all its cycles (wavefronts). Active: cycles in which an SM had a warp.\n");
    puts("| rung | KD | ALU e-3/MAC | issue/scheduler | LDSM | load conflicts | store conflicts | "
         "conflict share | active cycles (least to most) | stalls: warps per issue |");
    puts("|---|---|---|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < l->n; i++) {
        size_t row = l->order[i];
        double tiles = launch_number(l, row, "blocks") * launch_number(l, row, "k") / 32;
        bool q8 = !strcmp(csv_text(&l->of[LAUNCHES], row, "class"), "q8");
        if (!isfinite(instructions(l, row))) continue;
        name_cells(l, row);
        cell("%.3f", COUNTER(l, row, "sm__inst_executed_pipe_alu.sum") / macs(l, row) * 1e3);
        cell("%.3f", COUNTER(l, row, "smsp__issue_active.avg.per_cycle_active"));
        cell("%.1f",
             q8 ? COUNTER(l, row, "smsp__sass_inst_executed_op_ldsm.sum",
                          "sm__sass_inst_executed_op_ldsm.sum", "smsp__inst_executed_op_ldsm.sum") /
                      tiles
                : (double)NAN);
        cell("%.0f", COUNTER(l, row, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"));
        cell("%.0f", COUNTER(l, row, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"));
        cell("%.3f", COUNTER(l, row, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum") /
                         COUNTER(l, row, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"));
        cell("%.0f", COUNTER(l, row, "sm__cycles_active.avg"));
        double least = COUNTER(l, row, "sm__cycles_active.min"),
               most = COUNTER(l, row, "sm__cycles_active.max");
        if (isfinite(least) && isfinite(most)) printf(" (%.0f to %.0f)", least, most);
        cell_stalls(l, row, 3);
        puts(" |");
    }
    putchar('\n');
}

static void print_steps(const struct ladder *l)
{
    const struct csv *s = &l->of[STEPS];
    puts("## Steps\n");
    puts("Each rung in turns with the one that it grew from, in one process. Blocks/SM: forced by "
         "padding shared memory, or - as it is.\n");
    puts("| rung | from | KD | blocks/SM | us | from's | gain | the texts |");
    puts("|---|---|---|---|---|---|---|---|");
    for (size_t i = 1; i < s->rows; i++) {
        const char *kernel = csv_text(s, i, "kernel"), *blocks = csv_text(s, i, "blocks");
        size_t row = csv_find(&l->of[LAUNCHES], 0, "kernel", kernel);
        double us = csv_number(s, i, "cold_us"), r = csv_number(s, i, "ratio"),
               iqr = csv_number(s, i, "ratio_iqr");
        fputs("| `", stdout);
        put_text(csv_text(&l->of[LAUNCHES], row, "rung"));
        fputs("` | `", stdout);
        put_text(csv_text(s, i, "parent"));
        putchar('`');
        cell_text(csv_text(s, i, "kd"));
        cell_text(strcmp(blocks, "0") ? blocks : "");
        cell_spread(us, csv_number(s, i, "cold_iqr"), "%.1f");
        cell("%.1f", us * r);
        if (!isfinite(r))
            cell_text(csv_text(s, i, "why"));
        else
            printf(" | %s%+.1f%% +-%.1f%s", fabs(r - 1) <= iqr ? "noise: " : "", 100 * (r - 1),
                   100 * iqr, "");
        cell_text(csv_text(&l->of[LAUNCHES], row, "verdict"));
        puts(" |");
    }
    putchar('\n');
}

static double total(const struct csv *c, const char *name, bool largest)
{
    double sum = 0;
    for (size_t i = 1; i < c->rows; i++) {
        double v = csv_number(c, i, name);
        if (!isfinite(v)) continue;
        sum = largest ? fmax(sum, v) : sum + v;
    }
    return sum;
}

static void print_checks(const struct ladder *l)
{
    const struct csv *c = &l->of[CHECKS], *s = &l->of[SANITIZE];
    puts("## Correct\n");
    if (c->rows > 1)
        printf("%zu kernels on %s shapes each (m and n from 1, 7, 8, 16, 33, 64, 127, 128, 129, "
               "512, 2048, all pairs; k from 256), four kinds\nof inputs: %.0f sound, %.0f refused "
               "by the launcher, %.0f neither; the worst element lay at %.2g of its limit.\n\n",
               c->rows - 1, csv_text(c, 1, "shapes"), total(c, "sound", false),
               total(c, "refused", false), total(c, "bad", false), total(c, "worst", true));
    for (size_t i = 1; i < c->rows; i++)
        if (csv_number(c, i, "bad") > 0)
            printf("- `%s`: %s of %s shapes are not sound\n", csv_text(c, i, "kernel"),
                   csv_text(c, i, "bad"), csv_text(c, i, "shapes"));
    for (size_t i = 1; i < s->rows; i++) {
        const char *class = csv_text(s, i, "class"), *errors = csv_text(s, i, "errors");
        printf("- %s of compute-sanitizer, %s kernels%s%s on 129 x 65 x 512: %s errors\n",
               csv_text(s, i, "tool"), csv_text(s, i, "kernels"), *class ? " of the class " : "",
               class, *errors ? errors : "an unknown number of");
    }
    for (size_t i = 1; i < l->of[LAUNCHES].rows; i++)
        if (*csv_text(&l->of[LAUNCHES], i, "refused"))
            printf("- refused: %s\n", csv_text(&l->of[LAUNCHES], i, "refused"));
}

/* ---- order ---- */

/* Within a family: the step's number; a rung without one comes after its parent. */
static double place(const struct csv *c, size_t row)
{
    double after = 0;
    for (int depth = 0; row && depth < DEPTH; depth++) {
        const char *step = csv_text(c, row, "step");
        if (*step == 'r' && step[1] >= '0' && step[1] <= '9') return strtod(step + 1, NULL) + after;
        after += 0.01;
        row = csv_find(c, 0, "rung", csv_text(c, row, "parent"));
    }
    return 1000 + after;
}

static int by_place(const struct ladder *l, size_t a, size_t b)
{
    const struct csv *c = &l->of[LAUNCHES];
    int families = strcmp(csv_text(c, a, "family"), csv_text(c, b, "family"));
    if (families) return families;
    if (l->place[a] != l->place[b]) return l->place[a] < l->place[b] ? -1 : 1;
    int names = strcmp(csv_text(c, a, "rung"), csv_text(c, b, "rung"));
    return names ? names : strcmp(csv_text(c, a, "kernel"), csv_text(c, b, "kernel"));
}

static enum status put_in_order(struct ladder *l)
{
    const struct csv *c = &l->of[LAUNCHES];
    l->order = calloc(c->rows + 1, sizeof *l->order);
    l->place = calloc(c->rows + 1, sizeof *l->place);
    if (!l->order || !l->place) return err_set(ERR_NOMEM, "no memory for the rungs");
    for (size_t row = 1; row < c->rows; row++) l->place[row] = place(c, row);
    for (size_t row = 1; row < c->rows; row++) {
        size_t at = l->n++;
        for (; at > 0 && by_place(l, l->order[at - 1], row) > 0; at--)
            l->order[at] = l->order[at - 1];
        l->order[at] = row;
    }
    return OK;
}

/* ---- the command ---- */

static enum status open_all(struct ladder *l, const char *dir)
{
    for (int t = 0; t < TABLES; t++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.csv", dir, NAMES[t]);
        enum status st = csv_open(&l->of[t], path);
        /* Without the launches there are no rungs; all else may be missing. */
        if (st != OK && (t == LAUNCHES || st != ERR_IO)) return st;
    }
    static const char *const needed[] = {"kernel", "family", "rung"};
    for (int i = 0; i < 3; i++)
        if (l->of[LAUNCHES].rows < 2 || csv_column(&l->of[LAUNCHES], needed[i]) < 0)
            return err_set(ERR_FORMAT,
                           "%s/launches.csv has no rungs: a line of headings with %s "
                           "and lines below it are needed; tests/gpu/ladder.sh writes it",
                           dir, needed[i]);
    return put_in_order(l);
}

int cmd_ladder(int argc, char **argv)
{
    static const struct option none[] = {{NULL, 0, NULL, 0}};
    struct ladder l = {0};
    optind = 1;
    while (getopt_long(argc, argv, ":", none, NULL) != -1) return command_usage("ladder", argv);
    if (optind + 1 != argc) {
        fprintf(stderr, "sasstop ladder: one folder is needed; try: sasstop ladder --help\n");
        return EXIT_USAGE;
    }
    enum status st = open_all(&l, argv[optind]);
    if (st == OK) {
        print_head(&l);
        print_rungs(&l, "q4k_gemm", "nb_kd8");
        print_rungs(&l, "q6k_gemm", "q6k_gemm");
        print_other_shapes(&l);
        print_steps(&l);
        print_counters(&l);
        print_checks(&l);
    }
    for (int t = 0; t < TABLES; t++) csv_close(&l.of[t]);
    free(l.order);
    free(l.place);
    return st == OK ? EXIT_OK : command_fail(st);
}
