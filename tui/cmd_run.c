/* `sasstop run` and `sasstop replay`: options, and which loop the place calls for. */
#include "tui/commands.h"

#include "base/clock.h"
#include "cupti/metrics.h"
#include "session/report.h"
#include "tui/loop.h"
#include "tui/screen.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With no --seconds a slow machine is given time for its first figures. */
enum { DEFAULT_SECONDS = 10, DEFAULT_PATIENCE = 60 };

enum option_id {
    OPT_MODEL = 256,
    OPT_BACKEND,
    OPT_PROMPT,
    OPT_TOKENS,
    OPT_BENCH,
    OPT_SOURCES,
    OPT_VARIANT,
    OPT_KD,
    OPT_BLOCKS,
    OPT_VARIANTS,
    OPT_REST,
    OPT_EXECUTED,
    OPT_SCHEDULE,
    OPT_TIMER,
    OPT_EXACT,
    OPT_THREADS,
    OPT_SEED,
    OPT_CONTEXT,
    OPT_NO_GRAPHS,
    OPT_NO_PARITY,
    OPT_RECORD,
    OPT_HEADLESS,
    OPT_SECONDS,
    OPT_REPORT,
    OPT_SCRIPT,
    OPT_SIZE,
    OPT_SCRIPT_FAULT,
    OPT_AT,
    OPT_SPEED,
    OPT_DUMP,
};

static const struct option run_long[] = {
    {"model", 1, NULL, OPT_MODEL},
    {"backend", 1, NULL, OPT_BACKEND},
    {"prompt", 1, NULL, OPT_PROMPT},
    {"tokens", 1, NULL, OPT_TOKENS},
    {"bench", 1, NULL, OPT_BENCH},
    {"sources", 1, NULL, OPT_SOURCES},
    {"exact", 1, NULL, OPT_EXACT},
    {"variant", 1, NULL, OPT_VARIANT},
    {"kd", 1, NULL, OPT_KD},
    {"blocks", 1, NULL, OPT_BLOCKS},
    {"variants", 1, NULL, OPT_VARIANTS},
    {"executed", 1, NULL, OPT_EXECUTED},
    {"schedule", 1, NULL, OPT_SCHEDULE},
    {"rest", 1, NULL, OPT_REST},
    {"timer", 1, NULL, OPT_TIMER},
    {"threads", 1, NULL, OPT_THREADS},
    {"seed", 1, NULL, OPT_SEED},
    {"context", 1, NULL, OPT_CONTEXT},
    {"no-graphs", 0, NULL, OPT_NO_GRAPHS},
    {"no-parity", 0, NULL, OPT_NO_PARITY},
    {"record", 1, NULL, OPT_RECORD},
    {"headless", 0, NULL, OPT_HEADLESS},
    {"seconds", 1, NULL, OPT_SECONDS},
    {"report", 1, NULL, OPT_REPORT},
    {"script", 1, NULL, OPT_SCRIPT},
    {"size", 1, NULL, OPT_SIZE},
    {"script-fault", 1, NULL, OPT_SCRIPT_FAULT},
    {NULL, 0, NULL, 0},
};

static const struct option replay_long[] = {
    {"script", 1, NULL, OPT_SCRIPT}, {"size", 1, NULL, OPT_SIZE}, {"at", 1, NULL, OPT_AT},
    {"speed", 1, NULL, OPT_SPEED},   {"dump", 0, NULL, OPT_DUMP}, {NULL, 0, NULL, 0},
};

static bool positive(const char *arg, double *v)
{
    char *end;
    *v = strtod(arg, &end);
    return end != arg && !*end && *v >= 0 && *v < 1e7;
}

static bool size_option(const char *arg, struct run_options *o)
{
    char rest;
    return sscanf(arg, "%4dx%4d%c", &o->width, &o->height, &rest) == 2 && o->width > 0 &&
           o->height > 0;
}

/* False when the value is not understood. */
static bool take_option(struct run_options *o, int c)
{
    switch (c) {
    case OPT_MODEL:
        o->model = optarg;
        return true;
    case OPT_BACKEND:
        o->backend = optarg;
        return true;
    case OPT_PROMPT:
        o->prompt = optarg;
        return true;
    case OPT_TOKENS:
        o->tokens = optarg;
        return true;
    case OPT_BENCH:
        o->bench = optarg;
        return true;
    case OPT_SOURCES:
        o->sources = optarg;
        return true;
    case OPT_EXACT:
        o->exact = optarg;
        return metric_sets_parse(optarg) != 0;
    case OPT_VARIANT:
        o->variant = optarg;
        return true;
    case OPT_KD:
        o->kd = optarg;
        return true;
    case OPT_BLOCKS:
        o->blocks = optarg;
        return true;
    case OPT_VARIANTS:
        o->variants = optarg;
        return true;
    case OPT_REST:
        o->rest = optarg;
        return true;
    case OPT_TIMER:
        o->timer = optarg;
        return true;
    case OPT_EXECUTED:
        o->executed = optarg;
        return true;
    case OPT_SCHEDULE:
        o->schedule = optarg;
        return true;
    case OPT_THREADS:
        o->threads = optarg;
        return true;
    case OPT_SEED:
        o->seed = optarg;
        return true;
    case OPT_CONTEXT:
        o->context = optarg;
        return true;
    case OPT_NO_GRAPHS:
        o->no_graphs = true;
        return true;
    case OPT_NO_PARITY:
        o->no_parity = true;
        return true;
    case OPT_RECORD:
        o->record = optarg;
        return true;
    case OPT_HEADLESS:
        o->headless = true;
        return true;
    case OPT_SECONDS:
        return positive(optarg, &o->seconds) && o->seconds > 0;
    case OPT_REPORT:
        o->report = optarg;
        return true;
    case OPT_SCRIPT:
        o->script = optarg;
        return true;
    case OPT_SIZE:
        return size_option(optarg, o);
    case OPT_SCRIPT_FAULT:
        o->script_fault = optarg;
        return true;
    case OPT_AT:
        return positive(optarg, &o->at);
    case OPT_SPEED:
        return positive(optarg, &o->speed) && o->speed >= 0.1 && o->speed <= 64;
    case OPT_DUMP:
        o->dump = true;
        return true;
    default:
        return false;
    }
}

/* The command line as one string, for the recording. */
static void join(int argc, char **argv, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "sasstop");
    for (int i = 0; i < argc && n < size; i++) {
        bool blank = strchr(argv[i], ' ') != NULL;
        n += (size_t)snprintf(out + n, size - n, blank ? " '%s'" : " %s", argv[i]);
    }
}

static const char *report_ext(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : "";
}

/* A bad path fails before anything runs. */
static enum status check_report(const char *path)
{
    if (!report_find(report_ext(path)))
        return err_set(ERR_USAGE,
                       "no report format is called '%s'; end the name in .md, .json, .html, "
                       ".csv, .perfetto or .sqlite",
                       report_ext(path));
    if (access(path, F_OK) == 0)
        return err_set(ERR_IO, "%s is there already; nothing is overwritten", path);
    const char *slash = strrchr(path, '/');
    char folder[1024] = ".";
    if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    if (access(folder, W_OK | X_OK))
        return err_set(ERR_IO, "%s: no file can be made there: %s", path, strerror(errno));
    return OK;
}

static enum status print_summary(const struct session *s)
{
    struct buf b = {0};
    enum status st = report_summary(s, &b);
    if (st == OK && fwrite(b.data, 1, b.len, stdout) != b.len)
        st = err_set(ERR_IO, "stdout is closed or full");
    fflush(stdout);
    buf_free(&b);
    return st;
}

/* Runs the loop that the place calls for. */
static enum status run_loop(struct app *a)
{
    const struct run_options *o = a->options;
    enum status st;

    if (o->width && (st = canvas_resize(&a->canvas, o->width, o->height)) != OK) return st;
    a->canvas.ascii = screen_ascii();
    if (o->script) return loop_script(a, o->script);
    if (!o->headless && isatty(0) && isatty(1)) return loop_terminal(a);
    if (a->feed->replay) {
        app_seek(a, replay_duration(a->recorded.src));
        return print_summary(app_session(a));
    }
    bool given = o->seconds > 0;
    st = loop_headless(a, given ? o->seconds : DEFAULT_SECONDS,
                       given ? o->seconds : DEFAULT_PATIENCE);
    if (st == OK && a->live.session.ngenerations) return print_summary(&a->live.session);
    char words[320];
    if (st == OK && engine_source_status(a->live.src, words, sizeof words) == EXIT_OK)
        st = err_set(ERR_FAILED,
                     "nothing was measured: the engine had not begun when its time was over; give "
                     "it more --seconds");
    return st;
}

/* What the engine's end means for the exit status; words only when it failed. */
static int engine_verdict(const struct app *a)
{
    char words[320];
    if (!a->live.src || !a->live.ended) return EXIT_OK;
    int code = engine_source_status(a->live.src, words, sizeof words);
    if (code != EXIT_OK) fprintf(stderr, "sasstop: %s\n", words);
    return code;
}

static int run_live(const struct run_options *o)
{
    struct app a;
    int code = EXIT_OK;
    enum status st = app_init(&a, o);

    if (st == OK) st = loop_signals();
    if (st == OK) st = app_open_engine(&a, clock_mono_ns());
    if (st == OK) st = run_loop(&a);
    record_stop(&a);
    if (st == OK && o->report) st = report_save(&a.live.session, report_ext(o->report), o->report);
    if (st == OK) code = engine_verdict(&a);
    if (a.record_path[0] && !o->script) printf("recorded: %s\n", a.record_path);
    if (st != OK) code = command_fail(st);
    app_free(&a);
    return code;
}

int cmd_run(int argc, char **argv)
{
    struct run_options o = {.at = -1, .speed = 1};
    int c;

    optind = 1;
    while ((c = getopt_long(argc, argv, ":", run_long, NULL)) != -1)
        if (!take_option(&o, c)) return command_usage("run", argv);
    if (optind < argc) {
        optind++;
        return command_usage("run", argv);
    }
    join(argc, argv, o.command, sizeof o.command);
    enum status st = OK;
    if (o.tokens && !o.prompt)
        st = err_set(ERR_USAGE, "--tokens is how many follow a --prompt, and there is none; the "
                                "benchmark loop takes its lengths from --bench, e.g. pp512,tg32");
    if (st == OK && o.report) st = check_report(o.report);
    return st == OK ? run_live(&o) : command_fail(st);
}

static enum status dump_frames(const char *path)
{
    struct reader *r;
    struct frame f;
    struct buf b = {0};
    enum status st = reader_open(path, &r);

    if (st != OK) return st;
    while ((st = reader_next(r, &f)) == OK) {
        buf_reset(&b);
        proto_print(&f, &b);
        fwrite(b.data, 1, b.len, stdout);
        if (b.len == 0 || b.data[b.len - 1] != '\n') putchar('\n');
    }
    if (reader_damage(r)) fprintf(stderr, "sasstop: %s\n", reader_damage(r));
    buf_free(&b);
    reader_close(r);
    return st == ERR_END ? OK : st;
}

static int run_replay(const struct run_options *o)
{
    struct app a;
    enum status st = app_init(&a, o);

    if (st == OK) st = app_open_recording(&a, o->replay);
    if (st == OK) {
        replay_set_speed(a.recorded.src, o->speed);
        if (o->at >= 0) app_seek(&a, (uint64_t)(o->at * 1e9));
        if (!o->script) replay_play(a.recorded.src, true);
        st = run_loop(&a);
    }
    int code = st == OK ? EXIT_OK : command_fail(st);
    /* The screen has said it; who sees none is told here. */
    if (st == OK && (o->script || !isatty(1)) && replay_damage(a.recorded.src))
        fprintf(stderr, "sasstop: %s\n", replay_damage(a.recorded.src));
    app_free(&a);
    return code;
}

int cmd_replay(int argc, char **argv)
{
    struct run_options o = {.at = -1, .speed = 1};
    int c;

    optind = 1;
    while ((c = getopt_long(argc, argv, ":", replay_long, NULL)) != -1)
        if (!take_option(&o, c)) return command_usage("replay", argv);
    if (optind + 1 != argc) {
        fprintf(stderr, "sasstop replay: one recording is needed; try: sasstop replay --help\n");
        return EXIT_USAGE;
    }
    o.replay = argv[optind];
    if (o.dump) {
        enum status st = dump_frames(o.replay);
        return st == OK ? EXIT_OK : command_fail(st);
    }
    return run_replay(&o);
}
