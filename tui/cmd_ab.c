/*
 * `sasstop ab A B`: an experiment from its words to its verdict. See docs/LAB.md.
 *
 * Exit status: 0 a verdict was reached (with --strict only LAND gives 0, the others 1), 1 failed or
 * INVALID, 2 usage, 3 unavailable. To add an option: rows in `ab_long`, take_option() and
 * commands.def.
 */
#include "tui/commands.h"

#include "sass_view/diff.h"
#include "tui/lab_print.h"
#include "tui/lab_run.h"

#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_PAIRS = 20, DEFAULT_ROUNDS = 3 };

enum option_id {
    OPT_WORKLOAD = 256,
    OPT_SHAPE,
    OPT_HYPOTHESIS,
    OPT_CLAIM,
    OPT_BAR,
    OPT_PAIRS,
    OPT_PRECISION,
    OPT_TIME,
    OPT_JSON,
    OPT_STRICT,
    OPT_FORCE,
    OPT_CONTROL,
    OPT_RECORD,
    OPT_LEDGER,
    OPT_SEED,
    OPT_MODEL,
    OPT_BACKEND,
    OPT_BENCH,
    OPT_THREADS,
    OPT_ROUNDS,
    OPT_RETRY,
    OPT_COUNTERS,
    OPT_FRAMES,
    OPT_QUIET,
    OPT_NUMBER,
    OPT_RESUME,
};

static const struct option ab_long[] = {
    {"workload", 1, NULL, OPT_WORKLOAD},
    {"shape", 1, NULL, OPT_SHAPE},
    {"hypothesis", 1, NULL, OPT_HYPOTHESIS},
    {"claim", 1, NULL, OPT_CLAIM},
    {"bar", 1, NULL, OPT_BAR},
    {"pairs", 1, NULL, OPT_PAIRS},
    {"precision", 1, NULL, OPT_PRECISION},
    {"time", 1, NULL, OPT_TIME},
    {"json", 0, NULL, OPT_JSON},
    {"strict", 0, NULL, OPT_STRICT},
    {"force-gates", 0, NULL, OPT_FORCE},
    {"control", 1, NULL, OPT_CONTROL},
    {"record", 1, NULL, OPT_RECORD},
    {"ledger", 1, NULL, OPT_LEDGER},
    {"seed", 1, NULL, OPT_SEED},
    {"model", 1, NULL, OPT_MODEL},
    {"backend", 1, NULL, OPT_BACKEND},
    {"bench", 1, NULL, OPT_BENCH},
    {"threads", 1, NULL, OPT_THREADS},
    {"rounds", 1, NULL, OPT_ROUNDS},
    {"retry", 1, NULL, OPT_RETRY},
    {"counters", 1, NULL, OPT_COUNTERS},
    {"frames-fd", 1, NULL, OPT_FRAMES},
    {"quiet", 0, NULL, OPT_QUIET},
    {"number", 1, NULL, OPT_NUMBER},
    {"resume", 1, NULL, OPT_RESUME},
    {NULL, 0, NULL, 0},
};

struct ab {
    struct lab_options lab;
    const char *workload, *control;
    bool json, strict;
};

static bool count_option(const char *arg, double least, double most, double *out)
{
    char *end;
    *out = strtod(arg, &end);
    return end != arg && !*end && *out >= least && *out <= most;
}

/* "0.5%" or "0.5": a half width in per cent. */
static bool percent_option(const char *arg, double *out)
{
    char *end;
    double v = strtod(arg, &end);
    *out = v / 100;
    return end != arg && (!*end || !strcmp(end, "%")) && v > 0 && v < 50;
}

static bool shape_option(const char *arg, struct lab_options *o)
{
    int m, n, k;
    char rest;
    if (sscanf(arg, "%d,%d,%d%c", &m, &n, &k, &rest) != 3 || m < 1 || n < 1 || k < 1) return false;
    snprintf(o->shape, sizeof o->shape, "%d,%d,%d", m, n, k);
    return true;
}

static bool take_number(struct ab *x, int c)
{
    struct lab_options *o = &x->lab;
    double v = 0;
    switch (c) {
    case OPT_PAIRS:
        if (!count_option(optarg, LAB_MIN_PAIRS, LAB_PAIRS_MAX, &v)) return false;
        o->pairs = (uint32_t)v;
        return true;
    case OPT_PRECISION:
        return percent_option(optarg, &o->precision);
    case OPT_TIME:
        return count_option(optarg, 1, 86400, &o->seconds);
    case OPT_SEED:
        if (!count_option(optarg, 0, 1e15, &v)) return false;
        o->seed = (uint64_t)v;
        return true;
    case OPT_ROUNDS:
        if (!count_option(optarg, 1, 40, &v)) return false;
        o->rounds = (unsigned)v;
        return true;
    case OPT_NUMBER:
        if (!count_option(optarg, 1, 1e6, &v)) return false;
        o->number = (uint32_t)v;
        return true;
    case OPT_FRAMES:
        if (!count_option(optarg, 3, 1000, &v)) return false;
        o->frames_fd = (int)v;
        return true;
    default:
        return false;
    }
}

static bool take_text(struct ab *x, int c)
{
    struct lab_options *o = &x->lab;
    switch (c) {
    case OPT_WORKLOAD:
        x->workload = optarg;
        return !strcmp(optarg, "kernel") || !strcmp(optarg, "engine");
    case OPT_SHAPE:
        return shape_option(optarg, o);
    case OPT_HYPOTHESIS:
        o->hypothesis = optarg;
        return true;
    case OPT_CLAIM:
        o->claim = optarg;
        return true;
    case OPT_BAR:
        o->bar = optarg;
        return true;
    case OPT_CONTROL:
        x->control = optarg;
        return true;
    case OPT_RECORD:
        o->record = optarg;
        return true;
    case OPT_LEDGER:
        o->ledger = optarg;
        return true;
    case OPT_MODEL:
        o->engine_options.model = optarg;
        return true;
    case OPT_BACKEND:
        o->engine_options.backend = optarg;
        return true;
    case OPT_BENCH:
        o->engine_options.bench = optarg;
        return true;
    case OPT_THREADS:
        o->engine_options.threads = optarg;
        return true;
    case OPT_RESUME:
        o->resume = optarg;
        return true;
    case OPT_RETRY:
        o->retry = optarg;
        return true;
    case OPT_COUNTERS:
        o->counters = optarg;
        return true;
    default:
        return take_number(x, c);
    }
}

static bool take_option(struct ab *x, int c)
{
    switch (c) {
    case OPT_JSON:
        x->json = true;
        return true;
    case OPT_STRICT:
        x->strict = true;
        return true;
    case OPT_FORCE:
        x->lab.force_gates = true;
        return true;
    case OPT_QUIET:
        x->lab.quiet = true;
        return true;
    default:
        return take_text(x, c);
    }
}

/* ---- what the words mean together ---- */

static bool cpu_variant(const struct lab_side *s)
{
    return !strcmp(s->variant, "rows") || !strcmp(s->variant, "tiles");
}

static enum status choose_workload(struct ab *x)
{
    struct lab_options *o = &x->lab;
    bool cpu = cpu_variant(&o->a) || cpu_variant(&o->b) ||
               (o->engine_options.backend && !strcmp(o->engine_options.backend, "cpu"));
    if (!x->workload && !cpu && !lab_gpu_here())
        return err_set(
            ERR_UNAVAILABLE,
            "no GPU here, so kernels can't be timed; what runs here are the CPU engine's "
            "variants: sasstop ab rows:8 tiles:8, a bar such as '>= +4%% prefill', no "
            "--control");
    o->engine = x->workload ? !strcmp(x->workload, "engine") : cpu || !lab_gpu_here();
    if (!o->engine && cpu)
        return err_set(ERR_USAGE, "the CPU's variants run in an engine only: --workload engine");
    if (o->engine && cpu && !o->engine_options.backend) o->engine_options.backend = "cpu";
    if (cpu && (o->a.blocks || o->b.blocks))
        return err_set(ERR_USAGE,
                       "blocks=N pads shared memory, which the CPU's variants have none of");
    if (o->engine) {
        bool big = !cpu && lab_gpu_here();
        if (!o->engine_options.model && big) o->engine_options.model = "synth:llama3-8b";
        if (!o->engine_options.bench) o->engine_options.bench = big ? "pp512,tg16" : "pp64,tg16";
        snprintf(o->shape, sizeof o->shape, "%s", o->engine_options.bench);
    } else if (!o->shape[0]) {
        snprintf(o->shape, sizeof o->shape, "4096,512,4096");
    }
    if (!o->counters && lab_gpu_here() && !cpu) o->counters = "range";
    if (o->counters && !strcmp(o->counters, "none")) o->no_counters = true;
    return OK;
}

static enum status check_bar(struct lab_options *o)
{
    struct claim c;
    if (!o->bar || !o->hypothesis || !o->claim)
        return err_set(ERR_USAGE,
                       "an experiment needs --hypothesis, --claim ('LDS.32 in loop 32 -> 16', "
                       "'schedule only' or 'none') and --bar ('>= +4%% prefill') before it starts");
    snprintf(o->metric, sizeof o->metric, "%s", o->engine ? "prefill" : "kernel");
    enum status st = lab_parse_bar(o->bar, o->metric, &o->gain);
    if (st == OK && strcmp(o->claim, "none") && claim_parse(&c, o->claim) != OK)
        st = err_set(ERR_USAGE, "the claim isn't understood: %s", err_msg());
    if (st == OK && o->engine == !strcmp(o->metric, "kernel"))
        st = err_set(ERR_USAGE, "a bar about %s needs --workload %s", o->metric,
                     o->engine ? "kernel" : "engine");
    return st;
}

static enum status check_all(struct ab *x, int argc, char **argv)
{
    struct lab_options *o = &x->lab;
    if (optind + 2 != argc)
        return err_set(ERR_USAGE, "two sides are needed, such as nb_rolled:8 nb:8; see sasstop ab "
                                  "--help");
    enum status st = lab_side_parse(argv[optind], &o->a);
    if (st == OK) st = lab_side_parse(argv[optind + 1], &o->b);
    if (st == OK && x->control) {
        st = lab_side_parse(x->control, &o->control);
        o->has_control = st == OK;
    }
    if (st == OK) st = choose_workload(x);
    if (st == OK && o->engine && o->has_control)
        st = err_set(ERR_USAGE, "--control is for --workload kernel; an engine's other phase is "
                                "its control");
    return st == OK ? check_bar(o) : st;
}

static void on_signal(int sig)
{
    (void)sig;
    lab_interrupted = 1;
}

static void catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
}

static int exit_code(const struct lab_experiment *e, bool strict)
{
    if (!strcmp(e->verdict.verdict, "INVALID")) return EXIT_FAILED;
    return strict && strcmp(e->verdict.verdict, "LAND") ? EXIT_FAILED : EXIT_OK;
}

/* How many words at argv[i] say only how a child talks to the screen that started it. */
static int plumbing(char **argv, int i)
{
    if (!strcmp(argv[i], "--frames-fd") || !strcmp(argv[i], "--number")) return 2;
    return !strcmp(argv[i], "--quiet");
}

/* The command as one would type it, for the recording and to run it again. */
static void join(int argc, char **argv, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "sasstop");
    for (int i = 0; i < argc && n < size;) {
        int skip = plumbing(argv, i);
        if (!skip)
            n += (size_t)snprintf(out + n, size - n, strpbrk(argv[i], " <>*$") ? " '%s'" : " %s",
                                  argv[i]);
        i += skip ? skip : 1;
    }
}

int cmd_ab(int argc, char **argv)
{
    struct ab x = {
        .lab = {.pairs = DEFAULT_PAIRS, .rounds = DEFAULT_ROUNDS, .seed = 1, .frames_fd = -1}};
    struct lab_run r = {0};
    int c;

    join(argc, argv, x.lab.engine_options.command, sizeof x.lab.engine_options.command);
    optind = 1;
    while ((c = getopt_long(argc, argv, ":", ab_long, NULL)) != -1)
        if (!take_option(&x, c)) return command_usage("ab", argv);
    enum status st = check_all(&x, argc, argv);
    if (st != OK) return command_fail(st);
    catch_signals();
    st = lab_run(&x.lab, &r);
    const struct lab_experiment *e = lab_run_experiment(&r);
    int code = st != OK ? command_fail(st) : exit_code(e, x.strict);
    if (e && x.json) lab_print_json(&r.session, e, r.path);
    if (e && !x.json) lab_print_text(e, r.path);
    lab_run_free(&r);
    return code;
}
