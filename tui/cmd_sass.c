/*
 * Job: the `sass` subcommand: what to read, which kernels, which format.
 *
 * Invariants: results go to stdout, complaints to stderr, one line each; a part or a file that
 * can't be read doesn't stop the others, but the exit status tells. To add a format: a row in
 * `formats`.
 */
#include "tui/cmd_sass.h"
#include "tui/cmd_sass_print.h"
#include "tui/code_session.h"
#include "tui/commands.h"
#include <getopt.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct options {
    char **files;
    int nfiles;
    const char *kernel, *arch, *expect, *save, *script, *size;
    bool open;
    const struct sass_format *format; /* NULL: the one that fits the file */
    regex_t re;
    bool have_re;
};

static const struct sass_format *const formats[] = {
    &sass_census_format, &sass_list_format, &sass_code_format,
    &sass_json_format,   &sass_csv_format,  &sass_parts_format,
};
enum { NFORMATS = sizeof formats / sizeof formats[0] };

static bool name_matches(const struct options *o, const char *mangled)
{
    return !o->have_re || !regexec(&o->re, mangled, 0, NULL, 0) ||
           !regexec(&o->re, sass_name(mangled), 0, NULL, 0);
}

static enum status print_cubin(struct sass_job *j, const struct options *o)
{
    bool headed = false;
    for (size_t i = 0; i < j->cubin->nkernels; i++) {
        const struct cubin_kernel *k = &j->cubin->kernels[i];
        if (!name_matches(o, k->name)) continue;
        enum status st = OK;
        if (!headed && o->format->cubin) st = o->format->cubin(j);
        headed = true;
        if (st == OK) st = o->format->kernel(j, k);
        if (st) return st;
        j->shown++;
    }
    return OK;
}

/* One line on stderr; the worse of the two statuses. */
static enum status complain(enum status before, enum status st)
{
    if (st) sass_complain("sass");
    return before ? before : st;
}

static enum status print_parts(struct sass_job *j, const struct options *o)
{
    const struct container *c = j->container;
    enum status all = OK;
    size_t tried = 0;
    char archs[200] = "";
    size_t n = 0;
    for (j->part = 0; j->part < c->nparts; j->part++) {
        const struct part *p = &c->parts[j->part];
        struct cubin cubin;
        if (p->kind != PART_CUBIN || (p->arch[0] && !arch_matches(p->arch, o->arch))) continue;
        enum status st = container_cubin(c, j->part, &cubin);
        if (st == OK && !arch_matches(cubin.arch, o->arch)) {
            int m = snprintf(archs + n, sizeof archs - n, " %s", cubin.arch);
            n = m > 0 && n + (size_t)m < sizeof archs ? n + (size_t)m : n;
            cubin_close(&cubin);
            continue;
        }
        tried++;
        j->cubin = &cubin;
        if (st == OK) st = print_cubin(j, o);
        cubin_close(&cubin);
        all = complain(all, st);
    }
    if (all || j->shown) return all;
    if (!c->ncubins)
        return complain(
            OK, err_set(ERR_FAILED, "%s holds PTX only, which has no machine code yet", j->file));
    if (!tried && n)
        return complain(
            OK, err_set(ERR_FAILED, "%s is for%s, not for %s", j->file, archs, sass_safe(o->arch)));
    if (!tried)
        return complain(OK, err_set(ERR_FAILED, "no code for %s in %s (--parts shows the archs)",
                                    sass_safe(o->arch), j->file));
    if (o->kernel)
        return complain(OK, err_set(ERR_FAILED, "no kernel in %s matches '%s' (--list shows all)",
                                    j->file, sass_safe(o->kernel)));
    return complain(OK, err_set(ERR_FAILED, "no kernel in %s", j->file));
}

static enum status print_file(struct sass_job *j, struct options *o, const char *path)
{
    struct container c;
    enum status st = container_open_file(&c, path);
    if (st) return complain(OK, st);
    const struct sass_format *asked = o->format;
    j->file = path;
    j->container = &c;
    j->shown = 0;
    if (!asked)
        o->format =
            c.nparts > 1 && !o->kernel && !o->arch ? &sass_parts_format : &sass_census_format;
    if (c.vendor && !o->format->sealed_too) st = complain(OK, sass_sealed(path));
    if (st == OK && o->format->file) st = o->format->file(j);
    if (st == OK && !o->format->parts_only) st = print_parts(j, o);
    if (c.damage[0])
        st = complain(st, err_set(ERR_FORMAT, "%s: %s; what came before is shown", path, c.damage));
    o->format = asked;
    container_close(&c);
    return st;
}

static enum status run(struct options *o)
{
    struct sass_job j = {.expect_path = o->expect};
    enum status st = OK, all = OK;
    if (o->kernel) {
        if (regcomp(&o->re, o->kernel, REG_EXTENDED | REG_NOSUB))
            return complain(
                OK, err_set(ERR_USAGE, "'%s' is not a regular expression", sass_safe(o->kernel)));
        o->have_re = j.narrowed = true;
    }
    if (o->format && o->format->begin) st = complain(OK, o->format->begin(&j));
    for (int i = 0; st == OK && i < o->nfiles; i++) {
        enum status one = print_file(&j, o, o->files[i]);
        if (!all) all = one;
    }
    if (st == OK && (j.expect || cJSON_GetArraySize(j.json) > 0))
        all = complain(all, o->format->end(&j));
    if (st == OK && fflush(stdout)) st = complain(OK, err_set(ERR_IO, "writing the output failed"));
    if (o->have_re) regfree(&o->re);
    cJSON_Delete(j.json);
    sass_expect_free(j.expect);
    return st ? st : all;
}

/* Writes a session into a folder of its own and replays it. */
static int open_views(const struct options *o)
{
    char dir[] = "/tmp/sasstop-XXXXXX", path[64];
    char *argv[10] = {(char *)"replay", path, (char *)"--at", (char *)"1"};
    int argc = 4, status;
    if (!mkdtemp(dir)) {
        complain(OK, err_set(ERR_IO, "no folder can be made in /tmp"));
        return EXIT_FAILED;
    }
    snprintf(path, sizeof path, "%s/code.sasstop", dir);
    enum status st = complain(OK, code_session_write(path, o->files, o->nfiles, o->arch));
    if (o->script) {
        argv[argc++] = (char *)"--script";
        argv[argc++] = (char *)o->script;
    }
    if (o->size) {
        argv[argc++] = (char *)"--size";
        argv[argc++] = (char *)o->size;
    }
    status = st ? err_exit_code(st) : cmd_replay(argc, argv);
    unlink(path);
    rmdir(dir);
    return status;
}

static enum status parse(int argc, char **argv, struct options *o, bool *help)
{
    static const struct option longs[] = {
        {"census", no_argument, NULL, 0},
        {"list", no_argument, NULL, 1},
        {"code", no_argument, NULL, 2},
        {"json", no_argument, NULL, 3},
        {"csv", no_argument, NULL, 4},
        {"parts", no_argument, NULL, 5},
        {"kernel", required_argument, NULL, 'k'},
        {"arch", required_argument, NULL, 'a'},
        {"expect", required_argument, NULL, 'e'},
        {"open", no_argument, NULL, 'o'},
        {"save", required_argument, NULL, 's'},
        {"script", required_argument, NULL, 'S'},
        {"size", required_argument, NULL, 'z'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int ch;
    optind = 0; /* GNU: start afresh, also when called twice */
    while ((ch = getopt_long(argc, argv, "hk:", longs, NULL)) != -1) {
        if (ch == 'h')
            *help = true;
        else if (ch == 'a')
            o->arch = optarg;
        else if (ch == 'e')
            o->expect = optarg;
        else if (ch == 'o')
            o->open = true;
        else if (ch == 's')
            o->save = optarg;
        else if (ch == 'S')
            o->script = optarg;
        else if (ch == 'z')
            o->size = optarg;
        else if (ch == 'k')
            o->kernel = optarg;
        else if (ch >= 0 && ch < NFORMATS)
            o->format = formats[ch];
        else
            return err_set(ERR_USAGE, "try 'sasstop sass --help'");
    }
    if (*help) return OK;
    if (optind >= argc) return err_set(ERR_USAGE, "no file given; try 'sasstop sass --help'");
    if (o->expect) o->format = &sass_expect_format;
    o->files = argv + optind;
    o->nfiles = argc - optind;
    /* FILE KERNEL, as one types it: a last word that is no file. */
    if (o->nfiles > 1 && !o->kernel && access(argv[argc - 1], F_OK)) {
        o->kernel = argv[argc - 1];
        o->nfiles--;
    }
    return OK;
}

int cmd_sass(int argc, char **argv)
{
    struct options o = {0};
    bool help = false;
    sass_start_output();
    enum status st = parse(argc, argv, &o, &help);
    if (st == OK && help) {
        return cmd_help(2, (char *[]){(char *)"help", (char *)"sass", NULL});
    }
    if (st == OK && o.open) return open_views(&o);
    if (st)
        complain(OK, st);
    else if (o.save)
        st = complain(OK, code_session_write(o.save, o.files, o.nfiles, o.arch));
    else
        st = run(&o);
    return err_exit_code(st);
}
