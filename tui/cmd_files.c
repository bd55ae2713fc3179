/* `sasstop report`, `cut` and `variants`: recordings and cubins to text, with no engine and no
 * terminal. */
#include "tui/commands.h"

#include "kernels/registry.h"
#include "session/record.h"
#include "session/report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int need(const char *command, const char *what)
{
    fprintf(stderr, "sasstop %s: %s; try: sasstop %s --help\n", command, what, command);
    return EXIT_USAGE;
}

/* Folds a recording, whole or up to a number of frames. */
static enum status fold(const char *path, uint64_t frames, struct session *s)
{
    struct reader *r;
    struct frame f;
    enum status st = reader_open(path, &r);

    if (st != OK) return st;
    while (s->frames < frames && (st = reader_next(r, &f)) == OK)
        if ((st = session_apply(s, &f)) != OK) break;
    if (st == ERR_END) st = OK;
    if (st == OK && reader_damage(r)) fprintf(stderr, "sasstop: %s\n", reader_damage(r));
    reader_close(r);
    return st;
}

static enum status write_report(const char *path, const char *format, uint64_t frames,
                                const char *output)
{
    struct session *s = calloc(1, sizeof *s);
    struct buf b = {0};
    enum status st = s ? session_init(s) : err_set(ERR_NOMEM, "no memory for the session");

    if (st == OK) st = fold(path, frames, s);
    if (st == OK && output)
        st = report_save(s, format, output);
    else if (st == OK && (st = report_find(format)->write(s, &b)) == OK &&
             fwrite(b.data, 1, b.len, stdout) != b.len)
        st = err_set(ERR_IO, "stdout is closed or full");
    if (s) session_free(s);
    free(s);
    buf_free(&b);
    return st;
}

static bool frame_number(const char *arg, uint64_t *frames)
{
    char *end;
    errno = 0;
    *frames = strtoull(arg, &end, 10);
    return *arg >= '0' && *arg <= '9' && !*end && !errno && *frames > 0;
}

int cmd_report(int argc, char **argv)
{
    static const struct option options[] = {{"format", 1, NULL, 'f'},
                                            {"output", 1, NULL, 'o'},
                                            {"frame", 1, NULL, 'n'},
                                            {NULL, 0, NULL, 0}};
    const char *format = "md", *output = NULL;
    uint64_t frames = UINT64_MAX;
    int c;

    optind = 1;
    while ((c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
        if (c == 'f')
            format = optarg;
        else if (c == 'o')
            output = optarg;
        else if (c == 'n' && frame_number(optarg, &frames))
            continue;
        else
            return command_usage("report", argv);
    }
    if (optind + 1 != argc) return need("report", "one recording is needed");
    if (!report_find(format))
        return need("report", "the formats are md, json, html, csv, perfetto and sqlite");
    enum status st = write_report(argv[optind], format, frames, output);
    return st == OK ? EXIT_OK : command_fail(st);
}

static bool seconds(const char *arg, uint64_t *ns)
{
    char *end;
    double s = strtod(arg, &end);
    if (end == arg || *end || !(s >= 0 && s < 1e9)) return false;
    *ns = (uint64_t)(s * 1e9);
    return true;
}

/* What a damaged recording has lost is not in the cut either. */
static void say_damage(const char *path)
{
    struct reader *r = NULL;
    struct frame f;
    if (reader_open(path, &r) != OK) return;
    while (reader_next(r, &f) == OK) continue;
    if (reader_damage(r)) fprintf(stderr, "sasstop: %s\n", reader_damage(r));
    reader_close(r);
}

int cmd_cut(int argc, char **argv)
{
    static const struct option options[] = {
        {"from", 1, NULL, 'f'}, {"to", 1, NULL, 't'}, {"output", 1, NULL, 'o'}, {NULL, 0, NULL, 0}};
    const char *output = NULL;
    uint64_t from = 0, to = UINT64_MAX;
    bool some = false;
    int c;

    optind = 1;
    while ((c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
        bool ok = true;
        if (c == 'f')
            some = ok = seconds(optarg, &from);
        else if (c == 't')
            some = ok = seconds(optarg, &to);
        else if (c == 'o')
            output = optarg;
        else
            ok = false;
        if (!ok) return command_usage("cut", argv);
    }
    if (optind + 1 != argc) return need("cut", "one recording is needed");
    if (!output || !some) return need("cut", "-o FILE and --from or --to are needed");
    if (from > to) return need("cut", "--from lies behind --to");
    enum status st = record_cut(argv[optind], output, from, to);
    if (st == OK) say_damage(argv[optind]);
    return st == OK ? EXIT_OK : command_fail(st);
}

static cJSON *variant_json(const struct variant *v)
{
    cJSON *o = cJSON_CreateObject();
    char hash[24];

    cJSON_AddStringToObject(o, "family", v->family);
    cJSON_AddStringToObject(o, "variant", v->name);
    cJSON_AddStringToObject(o, "kernel", v->kernel);
    cJSON_AddNumberToObject(o, "kd", v->kd);
    cJSON_AddStringToObject(o, "arch", v->arch);
    cJSON_AddStringToObject(o, "note", v->desc.note);
    cJSON_AddStringToObject(o, "parent", v->desc.parent);
    cJSON_AddStringToObject(o, "step", v->desc.step);
    cJSON_AddStringToObject(o, "verdict", v->desc.verdict);
    cJSON_AddStringToObject(o, "numeric", v->desc.numeric);
    cJSON_AddNumberToObject(o, "threads", v->desc.threads);
    if (v->regs >= 0) cJSON_AddNumberToObject(o, "regs", v->regs);
    cJSON_AddNumberToObject(o, "smem_dynamic", v->dyn_smem);
    cJSON *parts = cJSON_AddArrayToObject(o, "smem_buffers");
    for (uint32_t i = 0; i < v->desc.n_buffers && i < VARIANT_BUFFERS; i++) {
        cJSON *part = cJSON_CreateObject();
        cJSON_AddStringToObject(part, "name", v->desc.buffers[i].name);
        cJSON_AddNumberToObject(part, "bytes", v->desc.buffers[i].bytes);
        cJSON_AddItemToArray(parts, part);
    }
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)v->cubin_hash);
    cJSON_AddStringToObject(o, "cubin_hash", hash);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)v->code_hash);
    cJSON_AddStringToObject(o, "code_hash", hash);
    return o;
}

static int print_json(const struct registry *r)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < registry_count(r); i++)
        cJSON_AddItemToArray(list, variant_json(registry_get(r, i)));
    char *text = cJSON_Print(list);
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(list);
    return text ? EXIT_OK : EXIT_FAILED;
}

/* "step r17, from wide; reverted: ...", then the shared memory as the sum of its buffers. */
static void print_lineage(const struct variant *v)
{
    const struct variant_desc *d = &v->desc;
    const char *sep = "";

    if (d->step[0] || d->parent[0] || d->verdict[0]) {
        printf("%21s", "");
        if (d->step[0]) printf("step %s", d->step), sep = ", ";
        if (d->parent[0]) printf("%sfrom %s", sep, d->parent), sep = "; ";
        if (d->verdict[0]) printf("%s%s", sep, d->verdict);
        printf("\n");
    }
    if (!d->n_buffers) return;
    printf("%21s%u B = ", "", v->dyn_smem);
    for (uint32_t i = 0; i < d->n_buffers && i < VARIANT_BUFFERS; i++)
        printf("%s%s %u", i ? " + " : "", d->buffers[i].name, d->buffers[i].bytes);
    printf("\n");
}

/* Whether the row above tells of the same kernel, built for another architecture. */
static bool told_above(const struct registry *r, int i)
{
    const struct variant *v = registry_get(r, i), *above = registry_get(r, i - 1);
    return above && !strcmp(v->kernel, above->kernel) && !strcmp(v->desc.note, above->desc.note) &&
           v->dyn_smem == above->dyn_smem;
}

/* What `v` and `k` can flip to; with `all` the operators too, which have no variants. */
static int print_variants(const struct registry *r, bool all)
{
    int left_out = 0;

    printf("%-10s %-18s %2s %-5s %4s %6s  %s\n", "family", "kernel", "KD", "arch", "regs", "smem",
           "idea");
    for (int i = 0; i < registry_count(r); i++) {
        const struct variant *v = registry_get(r, i);
        char kd[12] = "-", regs[12] = "-";
        if (!v->kd && !all) {
            left_out += i == 0 || strcmp(v->kernel, registry_get(r, i - 1)->kernel) != 0;
            continue;
        }
        if (v->kd) snprintf(kd, sizeof kd, "%d", v->kd);
        if (v->regs >= 0) snprintf(regs, sizeof regs, "%d", v->regs);
        printf("%-10s %-18s %2s %-5s %4s %6u  %s\n", v->family, v->kernel, kd, v->arch, regs,
               v->dyn_smem, told_above(r, i) ? "the same" : v->desc.note);
        if (!told_above(r, i)) print_lineage(v);
    }
    if (left_out) printf("and %d kernels with nothing to flip (--all)\n", left_out);
    return EXIT_OK;
}

int cmd_variants(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, 0, 'j'},
                                            {"all", no_argument, 0, 'a'},
                                            {"arch", required_argument, 0, 'A'},
                                            {"variants", required_argument, 0, 'V'},
                                            {0}};
    struct registry_options o = {.sm = 0};
    struct registry *r;
    bool json = false, all = false;

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'j') json = true;
        if (c == 'a') all = true;
        if (c == 'A') o.arch = optarg;
        if (c == 'V') o.extra = optarg;
        if (c == '?') return command_usage("variants", argv);
    }
    if (optind < argc) return command_usage("variants", argv);
    o.every_arch = !o.arch; /* what `v` offers depends on the GPU, which this command doesn't ask */
    enum status st = registry_open(&o, &r);
    if (st != OK) return command_fail(st);
    for (int i = 0; i < registry_notes(r); i++)
        fprintf(stderr, "sasstop: left out: %s\n", registry_note(r, i));
    int code = json ? print_json(r) : print_variants(r, all);
    registry_close(r);
    return code;
}
