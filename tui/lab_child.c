/*
 * See lab_child.h. Invariants: a child is in its own process group and is signalled by its own pid
 * only, before it is reaped; when this process dies, its pipes end and the child leaves by itself.
 */
#include "tui/lab_child.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/median.h"
#include "base/program.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { START_S = 180, SAMPLE_S = 120, LINE_MAX_BYTES = 64 << 10 };

volatile int lab_interrupted;

enum status lab_program(const char *name, const char *env, char *path, size_t size)
{
    if (program_find(env, name, path, size)) return OK;
    if (!*path) return err_set(ERR_IO, "can't find where this program lies");
    return err_set(ERR_FAILED, "no program at %s; build it with `make`, or name it in $%s", path,
                   env);
}

/* ---- starting ---- */

static void become(const char *const *argv, int in, int out)
{
    sigset_t none;
    int null = open("/dev/null", O_WRONLY);
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    dup2(in, 0);
    dup2(out, 1);
    dup2(null, 2);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

bool lab_gpu_here(void)
{
    const char *fake = getenv("SASSTOP_KCHECK");
    return (fake && *fake) || access("/dev/nvidiactl", F_OK) == 0 ||
           access("/dev/nvidia0", F_OK) == 0;
}

static enum status start_kernel(const struct lab_child_options *o, struct lab_child *c)
{
    char program[512], kernel[64], blocks[16];
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    enum status st = lab_program("kcheck", "SASSTOP_KCHECK", program, sizeof program);
    if (st != OK) return st;
    lab_side_kernel(o->side, kernel, sizeof kernel);
    snprintf(blocks, sizeof blocks, "%d", o->side->blocks);
    const char *argv[16] = {program, "--serve", "--variant", kernel, "--shapes", o->shape};
    unsigned n = 6;
    if (o->side->blocks) argv[n++] = "--blocks", argv[n++] = blocks;
    if (o->side->cubins[0]) argv[n++] = "--cubins", argv[n++] = o->side->cubins;
    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) goto fail;
    pid_t pid = fork();
    if (pid < 0) goto fail;
    if (pid == 0) become(argv, to[0], from[1]);
    setpgid(pid, pid);
    close(to[0]);
    close(from[1]);
    fcntl(from[0], F_SETFL, O_NONBLOCK);
    c->process = (struct engine_child){.pid = pid, .fd = from[0], .err_fd = to[1]};
    return OK;
fail:
    st = err_set(ERR_FAILED, "kcheck can't be started: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        if (to[i] >= 0) close(to[i]);
        if (from[i] >= 0) close(from[i]);
    }
    return st;
}

static void put_frame(struct lab_child *c, const char *verb, const char *variant, uint32_t kd)
{
    struct msg_command m = {.kd = kd, .origin = "lab"};
    struct buf b = {0};
    snprintf(m.verb, sizeof m.verb, "%s", verb);
    snprintf(m.family, sizeof m.family, "%s", variant ? "q4k_gemm" : "");
    snprintf(m.variant, sizeof m.variant, "%s", variant ? variant : "");
    c->replied = false;
    if (proto_encode(&b, FRAME_COMMAND, 0, &m) == OK) {
        /* A command is far smaller than the socket's buffer, which the engine keeps empty. */
        ssize_t n = write(c->process.fd, b.data, b.len);
        (void)n; /* a dead engine shows at the next read */
    }
    buf_free(&b);
}

static enum status start_engine(const struct lab_child_options *o, struct lab_child *c)
{
    struct run_options ro = o->engine_options;
    struct lab_side_text text;
    char program[512];
    enum status st = engine_program(program, sizeof program);
    if (st != OK) return st;
    ro.sources = "none";
    lab_side_options(o->side, &text, &ro);
    struct engine_spawn how = {.program = program,
                               .options = &ro,
                               .epoch_ns = clock_mono_ns(),
                               .instance = 1,
                               .session_id = "lab"};
    st = engine_spawn(&how, &c->process);
    if (st == OK) put_frame(c, "pause", NULL, 0);
    return st;
}

enum status lab_child_start(const struct lab_child_options *o, struct lab_child *c)
{
    *c = (struct lab_child){.engine = o->engine, .decode = o->decode, .rounds = o->rounds};
    c->process.fd = c->process.err_fd = -1;
    lab_side_enter(o->side);
    enum status st = o->engine ? start_engine(o, c) : start_kernel(o, c);
    lab_side_leave(o->side);
    c->running = st == OK;
    return st;
}

void lab_child_end(struct lab_child *c)
{
    if (c->running) {
        /* The end of its input is how it is told; what still runs after that is ended. */
        if (!c->engine) close(c->process.err_fd), c->process.err_fd = -1;
        engine_child_end(&c->process);
        engine_child_close(&c->process);
    }
    c->running = false;
    buf_free(&c->in);
}

/* ---- reading ---- */

/* Waits for more bytes; ERR_FAILED when there are none in time or it is gone. */
static enum status read_more(struct lab_child *c, uint64_t end_ns)
{
    char bytes[16384];
    for (;;) {
        uint64_t now = clock_mono_ns();
        struct pollfd p[2] = {{.fd = c->process.fd, .events = POLLIN},
                              {.fd = c->engine ? c->process.err_fd : -1, .events = POLLIN}};
        if (lab_interrupted) return ERR_END;
        if (now >= end_ns) return err_set(ERR_FAILED, "no answer in time");
        int wait = (end_ns - now) / 1000000 > 500 ? 500 : (int)((end_ns - now) / 1000000) + 1;
        if (poll(p, 2, wait) < 0) continue;
        if (p[1].revents) { /* what an engine prints is for nobody here, but must not block it */
            ssize_t n = read(c->process.err_fd, bytes, sizeof bytes);
            if (n <= 0 && !(n < 0 && errno == EAGAIN))
                close(c->process.err_fd), c->process.err_fd = -1;
        }
        if (!p[0].revents) continue;
        ssize_t n = read(c->process.fd, bytes, sizeof bytes);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0)
            return err_set(ERR_FAILED, "%s", c->error[0] ? c->error : "the process ended early");
        buf_put(&c->in, bytes, (size_t)n);
        return c->in.failed ? err_set(ERR_NOMEM, "out of memory") : OK;
    }
}

static void take_bytes(struct lab_child *c, size_t n)
{
    memmove(c->in.data, c->in.data + n, c->in.len - n);
    c->in.len -= n;
}

static double rate_us(uint64_t ns, uint32_t tokens)
{
    return tokens ? (double)ns / 1000.0 / tokens : 0;
}

static void take_frame(struct lab_child *c, const struct frame *f)
{
    union msg_any m;
    if (f->type >= FRAME_TYPE_END || proto_decode(f, &m, sizeof m) != OK) return;
    switch (f->type) {
    case FRAME_HELLO:
        c->hello = m.hello;
        c->has_hello = true;
        c->sm = (int)m.hello.sm;
        snprintf(c->device, sizeof c->device, "%s", m.hello.device);
        snprintf(c->driver, sizeof c->driver, "%s", m.hello.driver);
        break;
    case FRAME_ROUND:
        if (m.round.counted || c->nrounds == 64) break;
        c->prefill[c->nrounds] = rate_us(m.round.prefill_ns, m.round.prefill_tokens);
        c->decode_us[c->nrounds++] = rate_us(m.round.decode_ns, m.round.decode_tokens);
        break;
    case FRAME_CLOCKS:
        c->mhz = m.clocks.sm_mhz;
        c->mw = m.clocks.power_mw;
        snprintf(c->throttle, sizeof c->throttle, "%s", m.clocks.throttle);
        break;
    case FRAME_REPLY:
        c->replied = true;
        c->reply_ok = m.reply.ok;
        snprintf(c->reply, sizeof c->reply, "%s", m.reply.text);
        break;
    case FRAME_FAULT:
        snprintf(c->error, sizeof c->error, "%s", m.fault.text);
        break;
    case FRAME_BYE:
        if (!c->error[0]) snprintf(c->error, sizeof c->error, "%s", m.bye.text);
        break;
    default:
        break;
    }
}

/* Reads frames until `done` says so. */
static enum status until(struct lab_child *c, bool (*done)(const struct lab_child *), int seconds)
{
    uint64_t end = clock_mono_ns() + (uint64_t)seconds * 1000000000u;
    for (;;) {
        struct frame f;
        size_t used = 0;
        enum status st = proto_next(c->in.data, c->in.len, &f, &used);
        if (st == OK) take_frame(c, &f);
        if (used) take_bytes(c, used);
        if (done(c)) return OK;
        if (st == ERR_AGAIN && (st = read_more(c, end)) != OK) return st;
    }
}

static bool has_reply(const struct lab_child *c)
{
    return c->replied;
}

static bool has_rounds(const struct lab_child *c)
{
    return c->nrounds >= c->rounds;
}

/* One line of JSON; the caller deletes it. */
static enum status read_json(struct lab_child *c, int seconds, cJSON **out)
{
    uint64_t end = clock_mono_ns() + (uint64_t)seconds * 1000000000u;
    uint8_t *nl;
    *out = NULL;
    while (!(nl = c->in.len ? memchr(c->in.data, '\n', c->in.len) : NULL)) {
        if (c->in.len > LINE_MAX_BYTES) return err_set(ERR_FORMAT, "kcheck's line has no end");
        enum status st = read_more(c, end);
        if (st != OK) return st;
    }
    *nl = 0;
    *out = cJSON_Parse((const char *)c->in.data);
    take_bytes(c, (size_t)(nl - c->in.data) + 1);
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(*out, "error");
    if (*out && !e) return OK;
    enum status st = err_set(*out ? ERR_FAILED : ERR_FORMAT, "%s",
                             cJSON_IsString(e) ? e->valuestring : "kcheck's line is no JSON");
    cJSON_Delete(*out);
    *out = NULL;
    return st;
}

/* A figure that kcheck left out counts as none. */
static double number(const cJSON *o, const char *key)
{
    double v = json_number(o, key);
    return isnan(v) ? 0 : v;
}

static enum status ready_kernel(struct lab_child *c)
{
    cJSON *o;
    enum status st = read_json(c, START_S, &o);
    if (st != OK) return st;
    snprintf(c->device, sizeof c->device, "%s", json_text(o, "device"));
    snprintf(c->kernel, sizeof c->kernel, "%s", json_text(o, "kernel"));
    snprintf(c->driver, sizeof c->driver, "%s", json_text(o, "driver"));
    c->code_hash = strtoull(json_text(o, "code_hash"), NULL, 16);
    c->sm = (int)number(o, "sm");
    c->sms = (int)number(o, "sms");
    c->clock_mhz = (int)number(o, "clock_mhz");
    c->l2_bytes = (int)number(o, "l2_bytes");
    c->regs = (int)number(o, "regs");
    c->smem = (int)number(o, "smem");
    c->pad = (int)number(o, "pad");
    c->blocks_per_sm = (int)number(o, "blocks_per_sm");
    cJSON_Delete(o);
    return OK;
}

enum status lab_child_ready(struct lab_child *c)
{
    return c->engine ? until(c, has_reply, START_S) : ready_kernel(c);
}

/* ---- sampling ---- */

/* Median of the warm rounds: all but the first, when there is more than one. */
static double warm(const double *v, unsigned n)
{
    double part[64];
    unsigned from = n > 1, m = n - from;
    memcpy(part, v + from, m * sizeof *part);
    sort_doubles(part, m);
    return m % 2 ? part[m / 2] : 0.5 * (part[m / 2 - 1] + part[m / 2]);
}

/* A round may begin before the pause is read: it is waited for, so that nobody overlaps it. */
static enum status sample_engine(struct lab_child *c, struct lab_sample *out)
{
    c->nrounds = 0;
    put_frame(c, "resume", NULL, 0);
    enum status st = until(c, has_reply, SAMPLE_S);
    if (st == OK) st = until(c, has_rounds, SAMPLE_S);
    put_frame(c, "pause", NULL, 0);
    if (st == OK) st = until(c, has_reply, SAMPLE_S);
    if (st != OK) return st;
    const double *main = c->decode ? c->decode_us : c->prefill;
    const double *also = c->decode ? c->prefill : c->decode_us;
    *out = (struct lab_sample){.us = warm(main, c->nrounds),
                               .cold_us = main[0],
                               .also_us = warm(also, c->nrounds),
                               .mhz = c->mhz,
                               .mw = c->mw};
    snprintf(out->throttle, sizeof out->throttle, "%s", c->throttle);
    return OK;
}

static enum status sample_kernel(struct lab_child *c, struct lab_sample *out)
{
    cJSON *o;
    if (write(c->process.err_fd, "time\n", 5) != 5)
        return err_set(ERR_FAILED, "kcheck is gone: %s", c->error[0] ? c->error : "its pipe ended");
    enum status st = read_json(c, SAMPLE_S, &o);
    if (st != OK) return st;
    *out = (struct lab_sample){.us = number(o, "us"),
                               .cold_us = number(o, "cold_us"),
                               .cycles = number(o, "cycles"),
                               .mhz = (uint32_t)number(o, "mhz"),
                               .mw = (uint32_t)number(o, "mw")};
    if (!out->mhz) out->mhz = (uint32_t)number(o, "nvml_mhz");
    snprintf(out->throttle, sizeof out->throttle, "%s", json_text(o, "throttle"));
    cJSON_Delete(o);
    return OK;
}

enum status lab_child_sample(struct lab_child *c, struct lab_sample *out)
{
    enum status st = c->engine ? sample_engine(c, out) : sample_kernel(c, out);
    if (st == OK && !(out->us > 0)) return err_set(ERR_FAILED, "a timing of 0 came back");
    return st;
}

enum status lab_child_parity(struct lab_child *c, const struct lab_side *s, bool *ok,
                             char text[300])
{
    put_frame(c, "parity", s->variant, s->kd);
    enum status st = until(c, has_reply, START_S);
    *ok = st == OK && c->reply_ok;
    snprintf(text, 300, "%s", st == OK ? c->reply : err_msg());
    return st;
}
