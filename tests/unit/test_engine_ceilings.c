/* Ceilings over a driver on paper: launches take the time that given rates would take, so the rates
 * must come back; what is missing or fails is told as that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/driver.h"
#include "base/value.h"
#include "engine/ceilings.h"
#include "engine/emit.h"

enum { SMS = 132 };

static struct {
    double clock_ms, start_ms, end_ms;
    double cold,
        warms;   /* a kernel's first launch takes that much longer, the next this much of it */
    double late; /* of the launch to come */
    size_t free_bytes;
    const char *fails; /* kernel whose launch does */
    int events, allocations, loaded, launches;
    char names[64][40];
    int n;
    struct buf got;
} paper;

/* Operations a second of each kernel, and of one warp in a round. */
static const struct {
    const char *kernel;
    double rate, work;
} kernels[] = {
    {"ceiling_read", 4.1e12, 0},
    {"ceiling_copy", 3.7e12, 0},
    {"ceiling_s8", 6.5e14, 8.0 * 16 * 8 * 32},
    {"ceiling_bf16", 3.2e14, 8.0 * 16 * 8 * 16},
    {"ceiling_wgmma_s8", 9.0e14, 16.0 * 64 * 128 * 32 / 4},
    {"ceiling_wgmma_bf16", 4.6e14, 16.0 * 64 * 128 * 16 / 4},
    {"ceiling_issue", 9.8e11, 256},
};
enum { NKERNELS = sizeof kernels / sizeof *kernels };

static drv_result get_attribute(int *v, int attribute, int dev)
{
    (void)dev;
    *v = attribute == DRV_DEV_CC_MAJOR ? 9 : attribute == DRV_DEV_SM_COUNT ? SMS : 0;
    if (attribute == DRV_DEV_SMEM_OPTIN || attribute == DRV_DEV_SMEM_PER_SM) *v = 232448;
    return 0;
}

static drv_result mem_info(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = paper.free_bytes;
    return 0;
}

static drv_result mem_alloc(drv_ptr *p, size_t bytes)
{
    *p = 4096 + bytes;
    paper.allocations++;
    return 0;
}

static drv_result mem_free(drv_ptr p)
{
    (void)p;
    paper.allocations--;
    return 0;
}

static drv_result memset_d8(drv_ptr p, unsigned char v, size_t n)
{
    (void)p, (void)v, (void)n;
    return 0;
}

static drv_result load(struct drv_module **m, const void *image)
{
    (void)image;
    *m = (struct drv_module *)&paper;
    paper.loaded++;
    return 0;
}

static drv_result unload(struct drv_module *m)
{
    (void)m;
    paper.loaded--;
    return 0;
}

static drv_result function(struct drv_func **f, struct drv_module *m, const char *name)
{
    (void)m;
    paper.late = paper.cold;
    snprintf(paper.names[paper.n], sizeof paper.names[0], "%s", name);
    *f = (struct drv_func *)paper.names[paper.n++];
    return 0;
}

static drv_result function_set(struct drv_func *f, int attribute, int v)
{
    (void)f, (void)attribute, (void)v;
    return 0;
}

static drv_result launch(struct drv_func *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                         unsigned by, unsigned bz, unsigned smem, struct drv_stream *s, void **args,
                         void **extra)
{
    (void)smem, (void)s, (void)extra;
    const char *name = (const char *)f;
    assert_true(gx == 4 * SMS && gy == 1 && gz == 1 && by == 1 && bz == 1);
    paper.launches++;
    if (paper.fails && !strcmp(paper.fails, name)) return DRV_ILLEGAL_ADDRESS;
    for (int i = 0; i < NKERNELS; i++) {
        if (strcmp(kernels[i].kernel, name)) continue;
        double work;
        if (kernels[i].work > 0) {
            int rounds;
            memcpy(&rounds, args[0], sizeof rounds);
            assert_in_range(rounds, 1, 1 << 20);
            work = kernels[i].work * rounds * gx * bx / 32;
        } else {
            uint64_t words;
            memcpy(&words, args[1], sizeof words);
            work = 16.0 * (double)words * (i ? 2 : 1);
        }
        paper.clock_ms += work / kernels[i].rate * 1e3 * (1 + paper.late);
        paper.late *= paper.warms;
        return 0;
    }
    fail_msg("a launch of %s", name);
    return 1;
}

static drv_result event_create(struct drv_event **e, unsigned flags)
{
    (void)flags;
    *e = (struct drv_event *)(paper.events++ ? &paper.end_ms : &paper.start_ms);
    return 0;
}

static drv_result event_destroy(struct drv_event *e)
{
    (void)e;
    paper.events--;
    return 0;
}

static drv_result event_record(struct drv_event *e, struct drv_stream *s)
{
    (void)s;
    *(double *)e = paper.clock_ms;
    return 0;
}

static drv_result event_wait(struct drv_event *e)
{
    (void)e;
    return 0;
}

static drv_result event_elapsed(float *ms, struct drv_event *start, struct drv_event *end)
{
    *ms = (float)(*(double *)end - *(double *)start);
    return 0;
}

static drv_result error_name(drv_result r, const char **name)
{
    *name = r == DRV_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
    return 0;
}

static const struct driver drv = {
    .DeviceGetAttribute = get_attribute,
    .MemGetInfo = mem_info,
    .MemAlloc = mem_alloc,
    .MemFree = mem_free,
    .MemsetD8 = memset_d8,
    .ModuleLoadData = load,
    .ModuleUnload = unload,
    .ModuleGetFunction = function,
    .FuncSetAttribute = function_set,
    .LaunchKernel = launch,
    .EventCreate = event_create,
    .EventDestroy = event_destroy,
    .EventRecord = event_record,
    .EventSynchronize = event_wait,
    .EventElapsedTime = event_elapsed,
    .GetErrorName = error_name,
    .GetErrorString = error_name,
};

static const struct driver *the_driver(struct backend *b)
{
    (void)b;
    return &drv;
}

static void *the_stream(struct backend *b)
{
    (void)b;
    return NULL;
}

static ssize_t to_memory(int fd, const void *p, size_t n)
{
    (void)fd;
    buf_put(&paper.got, p, n);
    return (ssize_t)n;
}

/* Measures; the CEILING frames that came, in order. */
static enum status measure(struct msg_ceiling *out, unsigned *n)
{
    static const struct backend_ops ops = {
        .name = "paper", .driver = the_driver, .stream = the_stream};
    struct engine e = {.bo = &ops, .limits = {.sm = 90, .sms = SMS, .l2_bytes = 50 << 20}};
    struct emit_options eo = {.fd = 1, .write = to_memory};
    char text[200] = "";
    struct frame f;
    size_t at = 0, used;

    *n = 0;
    buf_reset(&paper.got);
    assert_int_equal(emit_open(&eo, &e.emit), OK);
    enum status st = ceilings_measure(&e, text, sizeof text);
    emit_close(e.emit);
    while (proto_next(paper.got.data + at, paper.got.len - at, &f, &used) == OK) {
        at += used;
        if (f.type == FRAME_CEILING)
            assert_int_equal(proto_decode(&f, &out[(*n)++], sizeof out[0]), OK);
    }
    assert_int_equal(paper.allocations, 0);
    assert_int_equal(paper.events, 0);
    assert_int_equal(paper.loaded, 0);
    if (st == OK) assert_non_null(strstr(text, "measured"));
    return st;
}

static int setup(void **state)
{
    (void)state;
    buf_free(&paper.got);
    memset(&paper, 0, sizeof paper);
    paper.free_bytes = (size_t)8 << 30;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buf_free(&paper.got);
    return 0;
}

static bool built(void)
{
    if (access("build/cubin/sm_90a/ops/ceiling.cubin", R_OK) == 0) {
        setenv("SASSTOP_CUBINS", "build/cubin", 1);
        return true;
    }
    print_message("skip: build/cubin has no kernels for sm_90a (no nvcc here)\n");
    return false;
}

static void rates_come_back(void **state)
{
    static const char *const keys[] = {"dram_read",  "dram_copy",  "int8_mma", "bf16_mma",
                                       "int8_wgmma", "bf16_wgmma", "issue"};
    struct msg_ceiling m[16];
    unsigned n;
    (void)state;
    if (!built()) skip();
    assert_int_equal(measure(m, &n), OK);
    assert_int_equal(n, NKERNELS);
    for (unsigned i = 0; i < n; i++) {
        assert_string_equal(m[i].key, keys[i]);
        assert_int_equal(m[i].state, VALUE_OK);
        assert_int_equal(m[i].n, 15);
        assert_true(fabs(m[i].v / kernels[i].rate - 1) < 1e-3);
        assert_true(m[i].spread >= 0 && m[i].spread < 1e-3 * m[i].v);
        assert_string_equal(m[i].unit, i < 2 ? "B/s" : i < 6 ? "MAC/s" : "inst/s");
    }
    /* Two first launches, three with the work of 4 ms that take the same time, fifteen that count.
     */
    assert_int_equal(paper.launches, 2 * 17 + 5 * 20);
}

/* A clock that rises is waited for; one that goes on changing isn't. */
static void the_clock_settles_first(void **state)
{
    struct msg_ceiling m[16];
    unsigned n;
    (void)state;
    if (!built()) skip();
    paper.cold = 0.06;
    paper.warms = 0.8;
    assert_int_equal(measure(m, &n), OK);
    for (unsigned i = 2; i < n; i++) assert_true(m[i].spread < 0.005 * m[i].v);
    paper.launches = 0;
    paper.warms = -1;
    assert_int_equal(measure(m, &n), OK);
    assert_int_equal(paper.launches, 2 * 17 + 5 * (2 + 32 + 15));
}

static void without_memory_the_rest_is_measured(void **state)
{
    struct msg_ceiling m[16];
    unsigned n;
    (void)state;
    if (!built()) skip();
    paper.free_bytes = 100 << 20;
    assert_int_equal(measure(m, &n), OK);
    assert_int_equal(n, NKERNELS);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(m[i].state, i < 2 ? VALUE_UNAVAILABLE : VALUE_OK);
        if (i < 2) assert_non_null(strstr(m[i].why, "memory"));
    }
}

static void a_failure_ends_it_with_its_reason(void **state)
{
    struct msg_ceiling m[16];
    unsigned n;
    (void)state;
    if (!built()) skip();
    paper.fails = "ceiling_bf16";
    assert_int_equal(measure(m, &n), ERR_FAILED);
    assert_int_equal(n, 4);
    assert_int_equal(m[2].state, VALUE_OK);
    assert_int_equal(m[3].state, VALUE_UNAVAILABLE);
    assert_non_null(strstr(m[3].why, "ILLEGAL_ADDRESS"));
}

static void a_cpu_has_none(void **state)
{
    static const struct backend_ops cpu = {.name = "cpu"};
    struct engine e = {.bo = &cpu};
    char text[80] = "";
    (void)state;
    assert_int_equal(ceilings_measure(&e, text, sizeof text), ERR_UNAVAILABLE);
    assert_non_null(strstr(err_msg(), "CPU"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(rates_come_back),
        T(the_clock_settles_first),
        T(without_memory_the_rest_is_measured),
        T(a_failure_ends_it_with_its_reason),
        T(a_cpu_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
