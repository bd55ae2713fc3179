/*
 * The engine's life: open in the order in which the stream introduces itself, run rounds, answer
 * commands between them, leave with BYE.
 *
 * Invariants: commands are taken only at token boundaries, on this thread; what fails after the
 * stream is open is told as frames, never only on stderr (there too where no screen reads them).
 */
#include "engine/engine.h"

#include "base/clock.h"
#include "engine/auto.h"
#include "engine/ceilings.h"
#include "engine/collect.h"
#include "engine/doctor_print.h"
#include "engine/logits.h"
#include "engine/parity.h"
#include "engine/ticker.h"
#include "engine/timer.h"
#include "engine/timer_child.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAUSE_WAKE_NS = 500000000 };

/* ---- opening ---- */

static void load_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct engine *e = ctx;
    if (done < total && clock_mono_ns() - e->progress_ns < ENGINE_TEXT_TIME) return;
    while (total > UINT32_MAX) done >>= 1, total >>= 1;
    engine_progress(e, "load", (uint32_t)done, (uint32_t)total);
}

/* Sizes that the backend needs before the model is open: a text has no more tokens than bytes, and
 * a few of its own. */
static void choose_sizes(struct engine *e)
{
    const struct options *o = e->opt;
    bool gpu = strcmp(o->backend, "cpu") != 0;
    uint32_t most = o->prefill ? o->prefill : gpu ? 512 : 64;
    if (o->prompt) most = strlen(o->prompt) < 1u << 20 ? (uint32_t)strlen(o->prompt) + 8 : 1u << 20;
    uint32_t need = most + (o->prompt ? o->tokens : o->decode ? o->decode : 64) + 1;
    e->context = o->context ? o->context : need > ENGINE_CONTEXT ? need : ENGINE_CONTEXT;
    e->max_step = most < ENGINE_MIN_STEP ? ENGINE_MIN_STEP : most;
    if (e->max_step > ENGINE_MAX_STEP && !o->logits) e->max_step = ENGINE_MAX_STEP;
}

static enum status open_backend(struct engine *e)
{
    struct backend_options bo = {.threads = (int)e->opt->threads,
                                 .max_tokens = e->max_step,
                                 .context = e->context,
                                 .hooks = collect_hooks(e),
                                 .graphs = e->opt->graphs};
    const char *broken = getenv("SASSTOP_ALLOW_BROKEN");
    bo.allow_broken = broken && !strcmp(broken, "1");
    return backends_open(e, &bo);
}

static enum status make_workload(struct engine *e)
{
    const struct options *o = e->opt;
    bool cpu = !strcmp(e->bo->name, "cpu");
    uint32_t prefill = o->prefill, decode = o->decode;
    e->show_prompt = true;
    if (o->prompt) return workload_prompt(e->model, o->prompt, o->tokens, &e->work);
    if (!prefill && !decode) {
        prefill = cpu ? 64 : 512;
        decode = cpu ? 16 : 64;
    }
    return workload_bench(e->model, prefill ? prefill : 1, decode, o->seed, &e->work);
}

/* The lists for the workload: whole steps, the rest, one token. */
static enum status build_lists(struct engine *e)
{
    uint32_t n = e->work.n, rest = n % e->max_step;
    enum status st = OK;
    if (n + e->work.decode > e->context)
        return err_set(ERR_LIMIT,
                       "%u prompt tokens and %u to make don't fit a context of %u: raise --context "
                       "or make fewer",
                       n, e->work.decode, e->context);
    forward_free(&e->chunk);
    forward_free(&e->rest);
    if (n >= e->max_step)
        st = forward_build(e->bo, e->b, e->model, &e->bufs, e->max_step, &e->chunk);
    if (st == OK && rest) st = forward_build(e->bo, e->b, e->model, &e->bufs, rest, &e->rest);
    if (st == OK && !e->decode.ops && !e->bufs.all_logits)
        st = forward_build(e->bo, e->b, e->model, &e->bufs, 1, &e->decode);
    return st;
}

static enum status open_model(struct engine *e)
{
    enum status st;
    engine_progress(e, "load", 0, 1);
    struct ticker *life = ticker_start(e->emit, "load"); /* a synthetic model takes seconds */
    st = model_open(e->opt->model, &e->model);
    ticker_stop(life);
    if (st == OK && e->opt->timer_of) st = timer_child_wait(e);
    if (st != OK) return st;
    if ((st = e->bo->load(e->b, e->model, load_progress, e)) != OK) return st;
    if ((st = forward_kv_init(e->bo, e->b, e->model)) != OK) return st;
    if ((st = make_workload(e)) != OK) return st;
    st =
        forward_buffers_alloc(e->bo, e->b, e->model, e->max_step, e->opt->logits != NULL, &e->bufs);
    return st == OK ? build_lists(e) : st;
}

/* `--variant auto` at the start: a command that comes while it measures ends that, not the engine.
 */
static enum status start_auto(struct engine *e)
{
    char text[300];
    if (e->opt->kd)
        return err_set(ERR_USAGE, "--variant %s chooses the KD too: leave --kd out",
                       e->opt->variant);
    enum status st = auto_take(e, NULL, e->opt->variant, text, sizeof text);
    if (st == OK) {
        emit_log(e->emit, 0, "%s: %s", e->opt->variant, text);
    } else if (st == ERR_AGAIN) {
        emit_log(e->emit, 1, "%s: %s; what a session starts with runs, A asks again",
                 e->opt->variant, err_msg());
        st = OK;
    }
    return st;
}

/* "NAME" is one of q4k_gemm, "FAMILY/NAME" of another; the family goes to family[size]. */
static const char *start_family(const struct engine *e, char *family, size_t size)
{
    const char *name = e->opt->variant, *slash = name ? strchr(name, '/') : NULL;
    snprintf(family, size, "%.*s", slash ? (int)(slash - name) : 8, slash ? name : "q4k_gemm");
    return slash ? slash + 1 : name;
}

static enum status select_start(struct engine *e)
{
    const char *variant = "";
    char text[200], family[32];
    uint32_t kd = 0;
    if (e->opt->blocks && !e->bo->force_blocks)
        return err_set(ERR_UNAVAILABLE, "--blocks needs a GPU; without it the CPU engine runs");
    if (e->opt->blocks && e->bo->force_blocks(e->b, e->opt->blocks, text, sizeof text) != OK)
        return err_prefix(ERR_LIMIT, "--blocks %u", e->opt->blocks);
    e->blocks = e->opt->blocks;
    if (!e->opt->variant && !e->opt->kd) return OK;
    if (e->opt->variant && auto_is(e->opt->variant)) return start_auto(e);
    const char *name = start_family(e, family, sizeof family);
    if (!e->bo->selected(e->b, family, &variant, &kd))
        return err_set(ERR_UNAVAILABLE, "%s has no variants on this backend", family);
    return e->bo->select(e->b, family, name ? name : variant, e->opt->kd ? e->opt->kd : kd);
}

static enum status open_all(struct engine *e)
{
    enum status st;
    choose_sizes(e);
    if ((st = open_backend(e)) != OK) return st;
    /* Short steps on a CPU, so that progress is told while a long prompt is read. */
    if (e->bo == &cpu_backend && !e->opt->logits && e->max_step > ENGINE_CPU_STEP)
        e->max_step = ENGINE_CPU_STEP;
    collect_library(e);
    describe_hello(e);
    if (*e->fallback) emit_log(e->emit, 1, "%s", e->fallback);
    timer_open(e);
    if ((st = open_model(e)) != OK) return st;
    if ((st = select_start(e)) != OK) return st;
    timer_load(e);
    describe_model(e);
    if ((st = rows_open(e->emit, &e->rows)) != OK) return st;
    if ((st = collect_open(e, &e->collect)) != OK) return st;
    if (!e->opt->timer_of) describe_kernels(e);
    if (!e->opt->timer_of) describe_variants(e);
    char family[32];
    (void)start_family(e, family, sizeof family);
    e->generation = e->opt->generation_base;
    generation_begin(e, family, e->opt->instance > 1 ? "restart" : "start", "unchecked", "");
    return OK;
}

/* ---- commands ---- */

static void reply(struct engine *e, const char *verb, bool ok, const char *text)
{
    struct msg_reply r = {.ok = ok};
    snprintf(r.verb, sizeof r.verb, "%s", verb);
    snprintf(r.text, sizeof r.text, "%s", text);
    emit_send(e->emit, FRAME_REPLY, &r);
}

enum status engine_prompt(struct engine *e, const char *text)
{
    struct workload w, old = e->work;
    enum status st = workload_prompt(e->model, text, e->opt->tokens, &w);
    if (st != OK) return st;
    e->work = w;
    if ((st = build_lists(e)) != OK) {
        char why[300];
        snprintf(why, sizeof why, "%s", err_msg());
        workload_free(&e->work);
        e->work = old;
        (void)build_lists(e); /* it worked before */
        return err_set(st, "%s", why);
    }
    workload_free(&old);
    return OK;
}

/* Another prompt is other work: it starts a generation, so that figures don't mix. */
static void take_prompt(struct engine *e, const char *text)
{
    if (engine_prompt(e, text) != OK) {
        reply(e, "prompt", false, err_msg());
        return;
    }
    snprintf(e->prompt, sizeof e->prompt, "%s", text);
    e->prompts++;
    if (auto_refresh(e) != OK)
        emit_log(e->emit, 1, "auto on the new prompt's shapes: %s", err_msg());
    e->show_prompt = true;
    e->hash_generation = 0;
    describe_model(e);
    generation_begin(e, "q4k_gemm", "prompt", "unchecked", "");
    collect_after_flip(e->collect);
    reply(e, "prompt", true, "the prompt runs from this generation on");
}

/* A check alone, with no flip. */
static void take_parity(struct engine *e, const struct msg_command *c)
{
    const char *family = *c->family ? c->family : "q4k_gemm", *variant = "";
    char why[200];
    uint32_t kd = 0;
    if (!e->bo->selected(e->b, family, &variant, &kd)) {
        reply(e, c->verb, false, "this family has one variant here: there is nothing to check");
        return;
    }
    collect_settle(e->collect);
    bool ok = parity_gate(e, family, *c->variant ? c->variant : variant, c->kd ? c->kd : kd, why,
                          sizeof why);
    reply(e, c->verb, ok, why);
}

/* The launch knob: other occupancy is other work for the figures, so it starts a generation. */
static void take_blocks(struct engine *e, const struct msg_command *c)
{
    char text[200] = "";
    if (!e->bo->force_blocks) {
        reply(e, c->verb, false, "this backend has no blocks to force; the knob needs a GPU");
        return;
    }
    collect_settle(e->collect);
    if (e->bo->force_blocks(e->b, c->kd, text, sizeof text) != OK) {
        reply(e, c->verb, false, err_msg());
        return;
    }
    e->blocks = c->kd;
    generation_begin(e, "q4k_gemm", "blocks", "unchecked", text);
    collect_after_flip(e->collect);
    reply(e, c->verb, true, text);
}

static void take_ceilings(struct engine *e)
{
    char text[200] = "";
    collect_settle(e->collect);
    enum status st = ceilings_measure(e, text, sizeof text);
    reply(e, "ceilings", st == OK, st == OK ? text : err_msg());
}

static void take_command(struct engine *e, struct msg_command *c)
{
    emit_send(e->emit, FRAME_COMMAND, c);
    if (!strcmp(c->verb, "flip")) {
        generation_flip(e, c);
    } else if (!strcmp(c->verb, "pause") || !strcmp(c->verb, "resume")) {
        e->paused = !strcmp(c->verb, "pause");
        reply(e, c->verb, true, e->paused ? "paused" : "running");
    } else if (!strcmp(c->verb, "pc") || !strcmp(c->verb, "range") ||
               !strcmp(c->verb, "sassexec")) {
        char text[200];
        enum status st = collect_request(e->collect, c->verb, c->arg, text, sizeof text);
        reply(e, c->verb, st == OK, st == OK ? text : err_msg());
    } else if (!strcmp(c->verb, "rest")) {
        char text[200] = "";
        enum status st = collect_rest(e->collect, c->arg, text, sizeof text);
        reply(e, c->verb, st == OK, st == OK ? text : err_msg());
    } else if (!strcmp(c->verb, "ceilings")) {
        take_ceilings(e);
    } else if (!strcmp(c->verb, "parity")) {
        take_parity(e, c);
    } else if (!strcmp(c->verb, "blocks")) {
        take_blocks(e, c);
    } else if (!strcmp(c->verb, "prompt")) {
        take_prompt(e, c->arg);
    } else if (!strcmp(c->verb, "quit")) {
        e->quit = true;
        reply(e, c->verb, true, "leaving");
    } else {
        reply(e, c->verb, false,
              "no such command; there are flip, blocks, pause, resume, pc, range, rest, "
              "sassexec, ceilings, "
              "prompt and quit");
    }
}

static bool leaving(struct engine *e)
{
    return e->quit || commands_stopping(e->cmds) || emit_broken(e->emit);
}

static void take_commands(struct engine *e)
{
    struct msg_command c;
    while (!leaving(e) && commands_take(e->cmds, &c)) take_command(e, &c);
    while (e->paused && !leaving(e)) {
        engine_progress(e, "paused", 0, 0);
        commands_wait(e->cmds, PAUSE_WAKE_NS);
        while (!leaving(e) && commands_take(e->cmds, &c)) take_command(e, &c);
    }
}

/* ---- running ---- */

/* What the driver's words say. */
static const char *fault_kind(const char *text)
{
    static const struct {
        const char *word, *kind;
    } words[] = {{"illegal", "illegal access"},
                 {"misaligned", "illegal access"},
                 {"timeout", "hang"},
                 {"timed out", "hang"},
                 {"memory", "memory"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(text, words[i].word)) return words[i].kind;
    return "launch";
}

/* A step failed. A failure on the device is the selected variant's, since all else ran before it
 * too; one of memory or limits is nobody's. */
void engine_tell_fault(struct engine *e, enum status st)
{
    struct msg_fault f = {.blames = st == ERR_FAILED};
    const char *text = err_msg(), *variant = "", *kind = fault_kind(text);
    if (!strcmp(kind, "memory")) f.blames = 0;
    snprintf(f.kind, sizeof f.kind, "%s", kind);
    snprintf(f.family, sizeof f.family, "%s", e->family);
    if (e->bo->selected(e->b, f.family, &variant, &f.kd))
        snprintf(f.variant, sizeof f.variant, "%s", variant);
    /* Of a round in a process of its own the engine tells what follows. */
    snprintf(f.text, sizeof f.text, "%.220s%s", text,
             e->opt->timer_of ? "" : "; the engine restarts with the last good variant");
    emit_send(e->emit, FRAME_FAULT, &f);
}

static enum status run_rounds(struct engine *e)
{
    uint32_t whole = 0;
    for (;;) {
        take_commands(e);
        if (leaving(e)) return OK;
        enum status st = rounds_run(e);
        if (st == OK && e->opt->rounds && ++whole >= e->opt->rounds) return OK;
        if (st == OK || st == ERR_AGAIN) continue;
        if (st == ERR_NOMEM && timer_runs(e)) {
            timer_drop(e, err_msg()); /* the second copy of the weights makes room */
            continue;
        }
        engine_tell_fault(e, st);
        return st;
    }
}

/* ---- leaving ---- */

/* Whether frames go to a file or a pipe: then nobody shows BYE's words, and stderr has them too. */
static bool unwatched(int fd)
{
    struct stat s;
    return fstat(fd, &s) != 0 || !S_ISSOCK(s.st_mode);
}

/* The last window is decoded and sent here: before BYE. */
static void close_collect(struct engine *e)
{
    struct collect *c = e->collect;
    e->collect = NULL; /* hooks see it */
    collect_close(c);
}

static void close_all(struct engine *e)
{
    rows_close(e->rows);
    workload_free(&e->work);
    if (e->bo && e->b) {
        forward_free(&e->chunk);
        forward_free(&e->rest);
        forward_free(&e->decode);
        forward_buffers_free(e->bo, e->b, &e->bufs);
        e->bo->close(e->b);
    }
    model_close(e->model);
}

static void bye(struct engine *e, enum status st)
{
    struct msg_bye b = {.status = (uint32_t)err_exit_code(st)};
    const char *text = st != OK                     ? err_msg()
                       : e->quit                    ? "asked to quit"
                       : commands_stopping(e->cmds) ? "asked to leave"
                                                    : "all rounds are done";
    snprintf(b.text, sizeof b.text, "%.199s", text);
    emit_send(e->emit, FRAME_BYE, &b);
}

static int run_stream(struct engine *e)
{
    struct emit_options eo = {.fd = e->opt->fd, .epoch_ns = e->opt->epoch_ns};
    /* A run for logits alone has no reader of frames, unless one is given. */
    if (eo.fd < 0 && e->opt->logits) eo.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (!eo.epoch_ns) eo.epoch_ns = clock_mono_ns();
    enum status st = OK;
    if (fcntl(eo.fd, F_GETFD) < 0)
        st = err_set(ERR_USAGE, "--fd %d: no such descriptor is open", eo.fd);
    if (st == OK) st = emit_open(&eo, &e->emit);
    if (st == OK) st = commands_open(eo.fd, e->emit, &e->cmds);
    if (st != OK) {
        fprintf(stderr, "sasstop-engine: %s\n", err_msg());
        emit_close(e->emit);
        return err_exit_code(st);
    }
    /* Children are not to keep it: its end is how the screen sees that this process has gone. */
    fcntl(eo.fd, F_SETFD, FD_CLOEXEC);
    if (e->opt->timer_of) st = timer_child_bind(e->opt->timer_of);
    if (st == OK) st = open_all(e);
    if (st == OK)
        st = e->opt->logits     ? logits_write(e)
             : e->opt->timer_of ? timer_child_run(e)
                                : run_rounds(e);
    timer_close(e);
    if (st == OK) close_collect(e);
    bye(e, st);
    if (st != OK) {
        if (unwatched(eo.fd)) fprintf(stderr, "sasstop-engine: %s\n", err_msg());
        /* After a fault the device may answer nothing any more: what is open goes with the process,
         * and no exit handler of the driver gets to wait for it. */
        emit_flush(e->emit, 2000000000u);
        _exit(err_exit_code(st));
    }
    close_all(e);
    commands_close(e->cmds);
    emit_close(e->emit);
    return EXIT_OK;
}

int engine_run(const struct options *opt)
{
    struct engine e = {.opt = opt};
    return opt->doctor ? doctor_print(opt->json) : run_stream(&e);
}
