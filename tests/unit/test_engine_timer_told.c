/* The engine's side of timed rounds in a process of their own, without that process: whether there
 * is memory for it, and what it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/driver.h"
#include "engine/timer_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- memory: a driver that has less free at each question ---- */

static size_t free_mib[4];
static unsigned asked;

static drv_result mem_info(size_t *free_bytes, size_t *total)
{
    *total = (size_t)80 << 30;
    *free_bytes = free_mib[asked < 3 ? asked++ : 3] << 20;
    return DRV_SUCCESS;
}

static const struct driver *counting_driver(struct backend *b)
{
    static struct driver d = {.MemGetInfo = mem_info};
    (void)b;
    return &d;
}

/* What SOURCE says of the timer when `before` and `after` the load so many MiB are free; "" =
 * nothing. */
static void with_memory(size_t before, size_t after, char *state, char *why)
{
    static const struct backend_ops ops = {.name = "cuda", .driver = counting_driver};
    struct options opt = {.timer = "own", .model = "synth:tiny", .backend = "cpu", .tokens = 1};
    struct engine e = {.opt = &opt, .bo = &ops};
    struct frame f;
    struct msg_source s;
    uint8_t bytes[65536];
    size_t used;
    int fds[2];
    free_mib[0] = before;
    free_mib[1] = free_mib[2] = free_mib[3] = after;
    asked = 0;
    *state = *why = '\0';
    assert_int_equal(pipe(fds), 0);
    struct emit_options eo = {.fd = fds[1]};
    assert_int_equal(emit_open(&eo, &e.emit), OK);
    timer_open(&e);
    timer_load(&e);
    assert_int_equal(timer_runs(&e), before - after + 512 <= after);
    timer_close(&e);
    emit_close(e.emit);
    close(fds[1]);
    ssize_t n = read(fds[0], bytes, sizeof bytes);
    close(fds[0]);
    for (size_t at = 0; n > 0 && at < (size_t)n; at += used) {
        if (proto_next(bytes + at, (size_t)n - at, &f, &used) != OK || f.type != FRAME_SOURCE)
            break;
        assert_int_equal(proto_decode(&f, &s, sizeof s), OK);
        strcpy(state, s.state);
        strcpy(why, s.why);
    }
}

static void a_second_copy_has_to_fit(void **state)
{
    (void)state;
    char said[16], why[300];
    setenv("SASSTOP_TIMER_ENGINE", "/bin/cat", 1); /* that it leaves at once is noticed later */
    with_memory(40000, 33000, said, why);          /* 7000 more are there */
    assert_string_equal(said, "");
    with_memory(14000, 7000, said, why); /* 7000 and its context are not */
    assert_string_equal(said, "unavailable");
    assert_non_null(strstr(why, "a second copy of the weights takes 7512 MiB, the GPU has 7000"));
}

/* ---- what is told, with a backend that has auto ---- */

static const char *selected_variant = "auto";

static uint32_t one_kernel(struct backend *b, const struct kernel_info **list)
{
    static const struct kernel_info k[] = {{.family = "q4k_gemm", .variant = "nb"},
                                           {.family = "q4k_gemm", .variant = "wide"},
                                           {.family = "ops"}};
    (void)b;
    *list = k;
    return 3;
}

static bool one_selected(struct backend *b, const char *family, const char **variant, uint32_t *kd)
{
    (void)b;
    *variant = selected_variant;
    *kd = strcmp(selected_variant, "auto") ? 8 : 0;
    return !strcmp(family, "q4k_gemm");
}

/* Answers are there before the questions are. Whether the commands told are `wanted`: "verb variant
 * kd arg;" each. */
static void assert_told(struct engine *e, int other, const char *wanted)
{
    struct buf b = {0};
    struct frame f;
    struct msg_command c;
    uint8_t bytes[8192];
    char told[512] = "";
    size_t used, at = 0;
    for (const char *p = wanted; *p; p = strchr(p, ';') + 1) {
        struct msg_reply r = {.ok = 1};
        snprintf(r.verb, sizeof r.verb, "%.*s", (int)strcspn(p, " "), p);
        assert_int_equal(proto_encode(&b, FRAME_REPLY, 0, &r), OK);
    }
    if (b.len) assert_int_equal(write(other, b.data, b.len), (ssize_t)b.len);
    buf_free(&b);
    assert_int_equal(timer_sync(e), OK);
    ssize_t n = recv(other, bytes, sizeof bytes, MSG_DONTWAIT);
    for (; n > 0 && at < (size_t)n; at += used) {
        assert_int_equal(proto_next(bytes + at, (size_t)n - at, &f, &used), OK);
        assert_int_equal(proto_decode(&f, &c, sizeof c), OK);
        size_t len = strlen(told);
        snprintf(told + len, sizeof told - len, "%.20s %.20s %u %.20s;", c.verb, c.variant, c.kd,
                 c.arg);
    }
    assert_string_equal(told, wanted);
}

static void what_auto_chose_is_told_once(void **state)
{
    (void)state;
    static const struct backend_ops ops = {
        .name = "cuda", .kernels = one_kernel, .selected = one_selected};
    struct options opt = {.timer = "own"};
    struct timer t = {.state = TIMER_READY};
    static struct engine e;
    int pair[2];
    e = (struct engine){.opt = &opt, .bo = &ops, .timer = &t};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    fflush(NULL);
    if ((t.wire.pid = fork()) == 0) _exit(0); /* somebody whose pid it is */
    t.wire.fd = pair[0];
    timer_note_choice(&e, "q4k_gemm", (uint32_t[]){64, 32, 16}, "nb", 8);
    timer_note_choice(&e, "q6k_gemm", (uint32_t[]){1, 2, 3}, "other", 8);
    timer_note_choice(&e, "q4k_gemm", (uint32_t[]){16, 32, 64}, "wide", 4);
    assert_told(&e, pair[1],
                "choose  0 ;choose nb 8 64,32,16;choose wide 4 16,32,64;select auto 0 ;");
    assert_told(&e, pair[1], ""); /* nothing has changed */
    timer_note_choice(&e, "q4k_gemm", NULL, "", 0);
    timer_note_choice(&e, "q4k_gemm", (uint32_t[]){16, 32, 8}, "nb", 8);
    assert_told(&e, pair[1], "choose  0 ;choose nb 8 16,32,8;select auto 0 ;");
    selected_variant = "wide";
    e.blocks = 2;
    snprintf(e.prompt, sizeof e.prompt, "hello");
    e.prompts = 1;
    assert_told(&e, pair[1], "prompt  0 hello;select wide 8 ;blocks  2 ;");
    assert_told(&e, pair[1], "");
    timer_wire_end(&t.wire);
    close(pair[1]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_auto_chose_is_told_once),
        cmocka_unit_test(a_second_copy_has_to_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
