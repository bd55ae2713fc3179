/*
 * Parsing of the engine's command line.
 *
 * Invariant: a value is used only after its whole text was read as a number within its range. To
 * add an option: a row in OPTIONS, a case in take(), a line in USAGE.
 */
#include "engine/options.h"

#include "cupti/metrics.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
    "usage: sasstop-engine --fd N [options]\n"
    "Runs a language model and writes frames to fd N. The screen starts it; by hand it is for "
    "tests.\n"
    "  --fd N              socket (frames out, commands in), or a pipe or file (frames out)\n"
    "  --model SPEC        FILE.gguf, synth:tiny (default) or synth:llama3-8b\n"
    "  --backend B         auto (default), cpu or cuda\n"
    "  --prompt TEXT       prefill TEXT, then decode --tokens tokens, as rounds\n"
    "  --tokens N          tokens to make after a prompt (default 64)\n"
    "  --bench pp512,tg64  each round: a prefill and a decode of so many tokens\n"
    "  --rounds N          stop after N rounds (default: run until told)\n"
    "  --sources LIST      none, or of events,activity,pm,pc,range,sassexec,synth (default: all\n"
    "                      that work)\n"
    "  --exact SETS        counted exactly beside live: sol,stalls,pipes,memory, or all\n"
    "  --executed WHAT     count WHAT by instruction, once a generation: all, or\n"
    "                      \"KERNEL ROLE PHASE\"\n"
    "  --variant NAME      start variant of q4k_gemm (FAMILY/NAME: of another); --kd N its K-tile\n"
    "                      depth\n"
    "  --variant auto      the fastest sound kernel for each shape, measured once and kept; of "
    "one\n"
    "                      numeric class, or (auto:any) of any\n"
    "  --blocks N          pad GEMMs' shared memory so that N blocks fit on an SM, no more\n"
    "  --variants DIR      kernels of your own too: DIR/*.cubin, by their descriptors\n"
    "  --rest S            seconds without any counter between their turns (default 1)\n"
    "  --timer T           where rounds are timed: own (a process of its own that never opens "
    "CUPTI),\n"
    "                      here (in this one), auto (default: own where CUPTI is opened and the\n"
    "                      GPU's memory holds the weights twice)\n"
    "  --schedule T:C      T timed rounds, then C counted ones (default 3:1)\n"
    "  --threads N --seed S --context N --no-graphs --no-parity\n"
    "  --epoch-ns N --instance I --generation-base G --session ID --command TEXT\n"
    "                      set by the screen, so that a restart continues its recording\n"
    "  --doctor [--json]   print what works here; exit 0, or 3 without GPU counters\n"
    "  --logits FILE       write f32 logits of every prompt position and exit\n"
    "  --help\n"
    "exit status: 0 ok, 1 failed, 2 usage, 3 unavailable here\n";

enum opt_id {
    O_FD = 256,
    O_MODEL,
    O_BACKEND,
    O_PROMPT,
    O_TOKENS,
    O_BENCH,
    O_ROUNDS,
    O_SOURCES,
    O_EXACT,
    O_EXECUTED,
    O_VARIANT,
    O_KD,
    O_BLOCKS,
    O_VARIANTS,
    O_SCHEDULE,
    O_TIMER,
    O_TIMER_OF,
    O_REST,
    O_THREADS,
    O_SEED,
    O_CONTEXT,
    O_NO_GRAPHS,
    O_NO_PARITY,
    O_EPOCH,
    O_INSTANCE,
    O_GENERATION,
    O_SESSION,
    O_COMMAND,
    O_DOCTOR,
    O_JSON,
    O_LOGITS,
    O_FAULT,
    O_HELP,
};

static const struct option OPTIONS[] = {
    {"fd", required_argument, NULL, O_FD},
    {"model", required_argument, NULL, O_MODEL},
    {"backend", required_argument, NULL, O_BACKEND},
    {"prompt", required_argument, NULL, O_PROMPT},
    {"tokens", required_argument, NULL, O_TOKENS},
    {"bench", required_argument, NULL, O_BENCH},
    {"rounds", required_argument, NULL, O_ROUNDS},
    {"sources", required_argument, NULL, O_SOURCES},
    {"exact", required_argument, NULL, O_EXACT},
    {"executed", required_argument, NULL, O_EXECUTED},
    {"variant", required_argument, NULL, O_VARIANT},
    {"kd", required_argument, NULL, O_KD},
    {"blocks", required_argument, NULL, O_BLOCKS},
    {"variants", required_argument, NULL, O_VARIANTS},
    {"schedule", required_argument, NULL, O_SCHEDULE},
    {"timer", required_argument, NULL, O_TIMER},
    {"timer-of", required_argument, NULL, O_TIMER_OF},
    {"rest", required_argument, NULL, O_REST},
    {"threads", required_argument, NULL, O_THREADS},
    {"seed", required_argument, NULL, O_SEED},
    {"context", required_argument, NULL, O_CONTEXT},
    {"no-graphs", no_argument, NULL, O_NO_GRAPHS},
    {"no-parity", no_argument, NULL, O_NO_PARITY},
    {"epoch-ns", required_argument, NULL, O_EPOCH},
    {"instance", required_argument, NULL, O_INSTANCE},
    {"generation-base", required_argument, NULL, O_GENERATION},
    {"session", required_argument, NULL, O_SESSION},
    {"command", required_argument, NULL, O_COMMAND},
    {"doctor", no_argument, NULL, O_DOCTOR},
    {"json", no_argument, NULL, O_JSON},
    {"logits", required_argument, NULL, O_LOGITS},
    {"script-fault", required_argument, NULL, O_FAULT},
    {"help", no_argument, NULL, O_HELP},
    {NULL, 0, NULL, 0},
};

const char *options_usage(void)
{
    return USAGE;
}

/* Reads decimal digits up to `stop` (NUL: the whole text). */
static bool number(const char *text, uint64_t max, uint64_t *out, const char **end)
{
    char *e;
    errno = 0;
    if (*text < '0' || *text > '9') return false;
    unsigned long long v = strtoull(text, &e, 10);
    if (errno || v > max) return false;
    if (end)
        *end = e;
    else if (*e)
        return false;
    *out = v;
    return true;
}

static enum status take_u64(const char *name, const char *text, uint64_t min, uint64_t max,
                            uint64_t *out)
{
    uint64_t v;
    if (!number(text, max, &v, NULL) || v < min)
        return err_set(ERR_USAGE, "--%s takes a whole number from %llu to %llu, not \"%s\"", name,
                       (unsigned long long)min, (unsigned long long)max, text);
    *out = v;
    return OK;
}

static enum status take_u32(const char *name, const char *text, uint32_t min, uint32_t max,
                            uint32_t *out)
{
    uint64_t v = 0;
    enum status st = take_u64(name, text, min, max, &v);
    if (st == OK) *out = (uint32_t)v;
    return st;
}

enum status options_bench(const char *text, uint32_t *prefill, uint32_t *decode)
{
    uint64_t pp = 0, tg = 0;
    const char *p = text;
    bool ok = true;
    if (!strncmp(p, "pp", 2)) {
        ok = number(p + 2, OPTIONS_MAX_PREFILL, &pp, &p) && pp >= 1;
        if (ok && *p == ',' && !strncmp(p + 1, "tg", 2)) p++;
    }
    if (ok && !strncmp(p, "tg", 2)) ok = number(p + 2, OPTIONS_MAX_DECODE, &tg, &p) && tg >= 1;
    if (!ok || *p || p == text)
        return err_set(ERR_USAGE,
                       "--bench takes pp512,tg64 and the like (1 to %d each), not \"%s\"",
                       OPTIONS_MAX_PREFILL, text);
    *prefill = (uint32_t)pp;
    *decode = (uint32_t)tg;
    return OK;
}

static enum status take_exact(const char *text, struct options *o)
{
    if (!metric_sets_parse(text))
        return err_set(ERR_USAGE,
                       "--exact takes live, sol, stalls, pipes, memory, all, or a comma list of "
                       "them, not \"%s\"",
                       text);
    o->exact = text;
    return OK;
}

static enum status take_schedule(const char *text, struct options *o)
{
    uint64_t t, c;
    const char *p;
    if (!number(text, OPTIONS_MAX_ROUNDS_OF_A_KIND, &t, &p) || *p != ':' ||
        !number(p + 1, OPTIONS_MAX_ROUNDS_OF_A_KIND, &c, NULL) || t + c == 0)
        return err_set(ERR_USAGE, "--schedule takes TIMED:COUNTED (3:1), not \"%s\"", text);
    o->timed = (uint32_t)t;
    o->counted = (uint32_t)c;
    return OK;
}

enum status options_rest(const char *text, uint64_t *ns)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !(s >= 0.05 && s <= 3600))
        return err_set(ERR_USAGE, "a rest is 0.05 to 3600 seconds, not \"%.40s\"", text);
    *ns = (uint64_t)(s * 1e9);
    return OK;
}

/* "kill@prefill:2", "fault@variant:NAME". */
static enum status take_fault(const char *text, struct script_fault *f)
{
    static const struct {
        const char *name;
        int v;
    } what[] = {{"exit@", FAULT_EXIT},
                {"kill@", FAULT_KILL},
                {"hang@", FAULT_HANG},
                {"fault@", FAULT_ERROR}},
      where[] = {{"round:", FAULT_AT_ROUND},
                 {"prefill:", FAULT_AT_PREFILL},
                 {"decode:", FAULT_AT_DECODE},
                 {"variant:", FAULT_AT_VARIANT}};
    const char *test = getenv("SASSTOP_TEST"), *p = text;
    uint64_t n = 0;
    int w = -1, at = -1;
    if (!test || strcmp(test, "1"))
        return err_set(ERR_USAGE, "--script-fault is for tests: it needs SASSTOP_TEST=1");
    for (int i = 0; i < 4 && w < 0; i++)
        if (!strncmp(p, what[i].name, strlen(what[i].name)))
            w = what[i].v, p += strlen(what[i].name);
    for (int i = 0; i < 4 && w >= 0 && at < 0; i++)
        if (!strncmp(p, where[i].name, strlen(where[i].name)))
            at = where[i].v, p += strlen(where[i].name);
    if (at < 0 || (at != FAULT_AT_VARIANT && !number(p, UINT32_MAX, &n, NULL)))
        return err_set(ERR_USAGE,
                       "--script-fault takes exit|kill|hang|fault @ round|prefill|decode:N"
                       " or variant:NAME, not \"%s\"",
                       text);
    f->what = (enum fault_what)w;
    f->where = (enum fault_where)at;
    f->round = (uint32_t)n;
    f->name = p;
    return OK;
}

/* "timer:" before it: of the process for timed rounds, which is handed the rest. */
static enum status take_any_fault(const char *text, struct options *o)
{
    static const char TIMER[] = "timer:";
    struct script_fault its;
    if (strncmp(text, TIMER, sizeof TIMER - 1)) return take_fault(text, &o->fault);
    o->timer_fault = text + sizeof TIMER - 1;
    return take_fault(o->timer_fault, &its);
}

static enum status take_timer(const char *text, struct options *o)
{
    if (strcmp(text, "auto") && strcmp(text, "own") && strcmp(text, "here"))
        return err_set(ERR_USAGE, "--timer takes auto, own or here, not \"%s\"", text);
    o->timer = text;
    return OK;
}

static enum status take_backend(const char *text, struct options *o)
{
    if (strcmp(text, "auto") && strcmp(text, "cpu") && strcmp(text, "cuda"))
        return err_set(ERR_USAGE, "--backend takes auto, cpu or cuda, not \"%s\"", text);
    o->backend = text;
    return OK;
}

/* All or a kernel, a role, a phase. */
static enum status take_executed(const char *text, struct options *o)
{
    int words = 0;
    for (const char *at = text; *(at += strspn(at, " ")); at += strcspn(at, " ")) words++;
    if (words < 1 || words > 3)
        return err_set(ERR_USAGE,
                       "--executed takes all, or \"KERNEL ROLE PHASE\" (the last two may be left "
                       "out), not \"%.100s\"",
                       text);
    o->executed = text;
    return OK;
}

static enum status take_variants(const char *text)
{
    if (!*text) return err_set(ERR_USAGE, "--variants takes a folder of cubins, not \"\"");
    return setenv("SASSTOP_VARIANTS", text, 1) == 0 ? OK : err_set(ERR_NOMEM, "out of memory");
}

static enum status take(int id, const char *a, struct options *o)
{
    uint64_t v = 0;
    enum status st = OK;
    switch (id) {
    case O_FD:
        st = take_u64("fd", a, 0, 1 << 20, &v);
        if (st == OK) o->fd = (int)v;
        return st;
    case O_MODEL:
        o->model = a;
        return OK;
    case O_BACKEND:
        return take_backend(a, o);
    case O_PROMPT:
        o->prompt = a;
        return OK;
    case O_TOKENS:
        return take_u32("tokens", a, 1, OPTIONS_MAX_DECODE, &o->tokens);
    case O_BENCH:
        return options_bench(a, &o->prefill, &o->decode);
    case O_ROUNDS:
        return take_u32("rounds", a, 1, UINT32_MAX, &o->rounds);
    case O_SOURCES:
        o->sources = a;
        return OK;
    case O_EXACT:
        return take_exact(a, o);
    case O_VARIANT:
        o->variant = a;
        return OK;
    case O_KD:
        return take_u32("kd", a, 1, 64, &o->kd);
    case O_BLOCKS:
        return take_u32("blocks", a, 1, 32, &o->blocks);
    case O_VARIANTS:
        return take_variants(a);
    case O_REST:
        return options_rest(a, &o->rest_ns);
    case O_SCHEDULE:
        return take_schedule(a, o);
    case O_TIMER:
        return take_timer(a, o);
    case O_TIMER_OF:
        return take_u32("timer-of", a, 1, INT32_MAX, &o->timer_of);
    case O_THREADS:
        return take_u32("threads", a, 1, OPTIONS_MAX_THREADS, &o->threads);
    case O_SEED:
        return take_u64("seed", a, 0, UINT64_MAX, &o->seed);
    case O_CONTEXT:
        return take_u32("context", a, 16, 1 << 20, &o->context);
    case O_NO_GRAPHS:
        o->graphs = false;
        return OK;
    case O_NO_PARITY:
        o->parity = false;
        return OK;
    case O_EPOCH:
        return take_u64("epoch-ns", a, 0, UINT64_MAX, &o->epoch_ns);
    case O_INSTANCE:
        return take_u64("instance", a, 1, UINT32_MAX, &o->instance);
    case O_GENERATION:
        return take_u32("generation-base", a, 0, 1 << 24, &o->generation_base);
    case O_SESSION:
        o->session = a;
        return OK;
    case O_COMMAND:
        o->command = a;
        return OK;
    case O_DOCTOR:
        o->doctor = true;
        return OK;
    case O_JSON:
        o->json = true;
        return OK;
    case O_EXECUTED:
        return take_executed(a, o);
    case O_LOGITS:
        o->logits = a;
        return OK;
    case O_FAULT:
        return take_any_fault(a, o);
    case O_HELP:
        o->help = true;
        return OK;
    default:
        return err_set(ERR_USAGE, "an option is unknown or lacks its value; see --help");
    }
}

enum status options_parse(int argc, char **argv, struct options *out)
{
    *out = (struct options){.fd = -1,
                            .model = "synth:tiny",
                            .backend = "auto",
                            .timer = "auto",
                            .tokens = 64,
                            .timed = 3,
                            .counted = 1,
                            .seed = 1,
                            .instance = 1,
                            .graphs = true,
                            .parity = true,
                            .session = "",
                            .command = ""};
    int id;
    optind = 0;
    opterr = 0;
    while ((id = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        enum status st = take(id, optarg, out);
        if (st != OK) return st;
    }
    if (optind < argc) return err_set(ERR_USAGE, "\"%s\" is no option; see --help", argv[optind]);
    if (out->prompt && (out->prefill || out->decode))
        return err_set(ERR_USAGE, "--prompt and --bench exclude each other");
    if (out->logits && !out->prompt) return err_set(ERR_USAGE, "--logits needs --prompt");
    if (out->fd < 0 && !out->doctor && !out->help && !out->logits)
        return err_set(ERR_USAGE, "--fd N is needed: where the frames go; see --help");
    return OK;
}
