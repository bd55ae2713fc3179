/*
 * `sasstop watch VARIANT:KD`: on each save of a variant's source, seconds later, what the compiler
 * made of it: errors, or the difference to the build before, resources, and the rules beside the
 * source.
 *
 * The build goes into a folder of its own, so that what runs elsewhere isn't touched; it can be
 * measured at once by `sasstop ab VARIANT:KD VARIANT:KD,cubins=THAT_FOLDER`. The folder goes with
 * the watcher unless it was named (--keep). Headers of the folder count as the variant's. One
 * thread; ends by SIGINT.
 */
#include "tui/commands.h"

#include "base/clock.h"
#include "sass_view/diff.h"
#include "tui/lab_side.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROWS_MAX = 16, SETTLE_MS = 60 };

struct watch {
    struct lab_side side;
    const char *arch, *family, *nvcc, *keep;
    bool once;
    char folder[160], source[320], rules[320], kernel[64];
    char root[160]; /* of the builds; "" = none yet */
    char cubin[400];
    struct picked before;
    bool has_before;
    unsigned builds;
};

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
    (void)sig;
    stopped = 1;
}

static const char *find_nvcc(void)
{
    const char *asked = getenv("NVCC");
    if (asked && *asked) return asked;
    return access("/usr/local/cuda/bin/nvcc", X_OK) == 0 ? "/usr/local/cuda/bin/nvcc" : "nvcc";
}

static enum status make_folder(struct watch *w)
{
    char path[300];
    snprintf(w->root, sizeof w->root, "%s", w->keep ? w->keep : "/tmp/sasstop-watch-XXXXXX");
    if (!w->keep && !mkdtemp(w->root)) {
        w->root[0] = '\0';
        return err_set(ERR_IO, "no folder in /tmp: %s", strerror(errno));
    }
    snprintf(path, sizeof path, "mkdir -p '%s/sm_%.8s/%.32s'", w->root, w->arch, w->family);
    if (system(path) != 0) return err_set(ERR_IO, "no folder under %s", w->root);
    snprintf(w->cubin, sizeof w->cubin, "%s/sm_%.8s/%.32s/%.47s.cubin", w->root, w->arch, w->family,
             w->side.variant);
    return OK;
}

/* The folder that make_folder() made: one file, the folders above it up to the root. */
static void drop_folder(const struct watch *w)
{
    char path[400];
    if (w->keep || !w->root[0]) return;
    unlink(w->cubin);
    snprintf(path, sizeof path, "%s", w->cubin);
    for (char *slash; strlen(path) > strlen(w->root) && (slash = strrchr(path, '/'));) {
        *slash = '\0';
        rmdir(path);
    }
}

/* Runs the compiler; its words go through to the user. */
static bool compile(const struct watch *w)
{
    char arch[32];
    snprintf(arch, sizeof arch, "-arch=sm_%s", w->arch);
    const char *argv[] = {w->nvcc, "-cubin", "-O3",    "-std=c++17", "-I.",
                          arch,    "-o",     w->cubin, w->source,    NULL};
    pid_t pid = fork();
    if (pid == 0) {
        dup2(1, 2);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        printf("%s can't be run: %s\n", argv[0], strerror(errno));
        fflush(stdout);
        _exit(127);
    }
    int status = 0;
    if (pid < 0) return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void print_row(const struct diff_row *r)
{
    printf("    %-24s %5u -> %-5u in the hot loop %5u -> %u\n", r->key, r->a[CENSUS_ALL],
           r->b[CENSUS_ALL], r->a[CENSUS_HOT], r->b[CENSUS_HOT]);
}

static void print_rows(const struct census *a, const struct census *b)
{
    struct diff_row *rows;
    size_t n, shown = 0, same = 0;
    if (diff_census(a, b, &rows, &n) != OK) return;
    for (size_t i = 0; i < n; i++) {
        if (!memcmp(rows[i].a, rows[i].b, sizeof rows[i].a))
            same++;
        else if (shown < ROWS_MAX)
            print_row(&rows[i]), shown++;
    }
    if (n - same > shown) printf("    and %zu more opcodes\n", n - same - shown);
    free(rows);
}

static void print_difference(const struct watch *w, const struct picked *now)
{
    const struct census *a = &w->before.census, *b = &now->census;
    struct diff d;
    if (diff_make(&d, &w->before.flow, &now->flow, a, b) != OK) return;
    printf("  %s; %u instructions -> %u, registers %d -> %d, spilled %d -> %d B\n",
           diff_verdict_name(d.verdict), a->total, b->total, a->regs, b->regs, a->spill_bytes,
           b->spill_bytes);
    if (d.verdict == DIFF_DIFFERENT) print_rows(a, b);
    diff_free(&d);
}

static void print_rules(const struct watch *w, const struct picked *now)
{
    struct expect_set set;
    unsigned held = 0, other = 0;
    if (access(w->rules, R_OK) || expect_load(&set, w->rules) != OK) return;
    for (unsigned i = 0; i < set.nrules; i++) {
        const struct expect_rule *r = &set.rules[i];
        struct expect_result res;
        if (!expect_applies(&set, r->section, &now->census)) continue;
        expect_hold(&set, r, &now->census, now->cubin.toolkit, &res);
        if (expect_fails(res.state) || res.state == EXPECT_REOPENED) {
            printf("  rule %s: %s\n", expect_state_name(res.state), res.text);
            other++;
        } else {
            held += res.state == EXPECT_HELD;
        }
    }
    printf("  rules: %u held, %u to look at\n", held, other);
    expect_free(&set);
}

static bool build(struct watch *w)
{
    char spec[500];
    struct picked now;
    uint64_t t0 = clock_mono_ns();
    bool ok = compile(w);
    double seconds = (double)(clock_mono_ns() - t0) / 1e9;
    if (!ok) {
        printf("%s: not built (%.1f s); the build before stands\n", w->source, seconds);
        fflush(stdout);
        return false;
    }
    snprintf(spec, sizeof spec, "%s:%s", w->cubin, w->kernel);
    if (pick_kernel(&now, spec, NULL) != OK) {
        printf("%s: built, but %s\n", w->source, err_msg());
        fflush(stdout);
        return false;
    }
    printf("%s: %s built in %.1f s\n", w->source, w->kernel, seconds);
    if (w->has_before) print_difference(w, &now);
    print_rules(w, &now);
    if (w->has_before) pick_free(&w->before);
    w->before = now;
    w->has_before = true;
    if (w->builds++ == 0 && (w->keep || !w->once)) /* there to be measured */
        printf("  measure it: sasstop ab %s %s,cubins=%s --hypothesis ... --claim ... --bar ...\n",
               w->side.text, w->side.text, w->root);
    fflush(stdout);
    return true;
}

/* Whether an event is about a source of the folder. */
static bool concerns(const struct watch *w, const char *name)
{
    char own[80];
    size_t n = strlen(name);
    snprintf(own, sizeof own, "%s.cu", w->side.variant);
    return !strcmp(name, own) || (n > 4 && !strcmp(name + n - 4, ".cuh"));
}

/* Reads what there is; true when a source was saved. */
static bool drain(const struct watch *w, int fd)
{
    char bytes[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(fd, bytes, sizeof bytes);
    bool saved = false;
    for (ssize_t at = 0; n > 0 && at < n;) {
        const struct inotify_event *e = (const struct inotify_event *)(void *)(bytes + at);
        if (e->len && concerns(w, e->name)) saved = true;
        at += (ssize_t)(sizeof *e + e->len);
    }
    return saved;
}

static enum status watch_folder(struct watch *w)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0 || inotify_add_watch(fd, w->folder, IN_CLOSE_WRITE | IN_MOVED_TO) < 0) {
        if (fd >= 0) close(fd);
        return err_set(ERR_IO, "%s can't be watched: %s", w->folder, strerror(errno));
    }
    printf("watching %s; Ctrl-C ends it\n", w->folder);
    fflush(stdout);
    while (!stopped) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, -1) <= 0 || !drain(w, fd)) continue;
        /* An editor saves in several steps: one build for all of them. */
        while (poll(&p, 1, SETTLE_MS) > 0) drain(w, fd);
        build(w);
    }
    close(fd);
    return OK;
}

static enum status open_watch(struct watch *w)
{
    snprintf(w->folder, sizeof w->folder, "kernels/%.64s", w->family);
    snprintf(w->source, sizeof w->source, "%s/%s.cu", w->folder, w->side.variant);
    snprintf(w->rules, sizeof w->rules, "%s/%s.expect", w->folder, w->side.variant);
    lab_side_kernel(&w->side, w->kernel, sizeof w->kernel);
    if (access(w->source, R_OK))
        return err_set(ERR_USAGE, "no source %s; run it in the folder of the checkout", w->source);
    lab_side_resolve(&w->side, atoi(w->arch));
    if (w->side.has_code) {
        w->before = w->side.code; /* what was built last is what the first build is held against */
        w->side.has_code = false;
        w->has_before = true;
    }
    return make_folder(w);
}

int cmd_watch(int argc, char **argv)
{
    static const struct option longs[] = {{"arch", 1, NULL, 'a'},
                                          {"family", 1, NULL, 'f'},
                                          {"keep", 1, NULL, 'k'},
                                          {"once", 0, NULL, 'o'},
                                          {NULL, 0, NULL, 0}};
    struct watch w = {.arch = "90a", .family = "q4k_gemm", .nvcc = find_nvcc()};
    struct sigaction sa = {.sa_handler = on_stop};
    int c;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
        if (c == 'a' && strspn(optarg, "0123456789a") == strlen(optarg))
            w.arch = optarg;
        else if (c == 'f' && !strpbrk(optarg, "/'"))
            w.family = optarg;
        else if (c == 'k' && *optarg && !strchr(optarg, '\'') && strlen(optarg) < sizeof w.root)
            w.keep = optarg;
        else if (c == 'o')
            w.once = true;
        else
            return command_usage("watch", argv);
    }
    if (optind + 1 != argc || strpbrk(argv[optind], "/'")) {
        fprintf(stderr, "sasstop watch: which variant? such as nb:8; see sasstop watch --help\n");
        return EXIT_USAGE;
    }
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    enum status st = lab_side_parse(argv[optind], &w.side);
    if (st == OK) st = open_watch(&w);
    bool ok = st == OK && build(&w);
    if (st == OK && !w.once) st = watch_folder(&w);
    drop_folder(&w);
    if (w.has_before) pick_free(&w.before);
    lab_side_close(&w.side);
    return st != OK ? command_fail(st) : w.once && !ok ? EXIT_FAILED : EXIT_OK;
}
