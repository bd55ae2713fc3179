/* The one launch path: plans on made-up limits, and the calls a launcher makes on a driver that
 * only writes down what it was asked (its kernels run as the CPU reference). */
#include "kernels/kcheck/gpu.h"
#include "kernels/kcheck/kcheck.h"
#include "kernels/q4k_gemm/ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct device_limits h200 = {
    .sm = 90, .sms = 132, .smem_optin = 232448, .smem_sm = 233472, .smem_reserved = 1024};

static struct variant make(const char *kernel, uint32_t smem, uint32_t tm, uint32_t tn)
{
    struct variant v = {.kd = 8, .static_smem = 0, .dyn_smem = smem, .regs = 100};
    v.desc = (struct variant_desc){.abi = VARIANT_ABI,
                                   .size = sizeof v.desc,
                                   .tile_m = tm,
                                   .tile_n = tn,
                                   .kd = 8,
                                   .threads = 256,
                                   .min_sm = 80,
                                   .layout_a = "q8_chunk40",
                                   .layout_b = "q4_k",
                                   .n_buffers = 1};
    v.desc.buffers[0].bytes = smem;
    snprintf(v.kernel, sizeof v.kernel, "%s", kernel);
    snprintf(v.desc.name, sizeof v.desc.name, "%s", kernel);
    snprintf(v.family, sizeof v.family, "q4k_gemm");
    return v;
}

static struct registry *open_cubins(void)
{
    struct registry *r = NULL;
    struct registry_options o = {.dir = "build/cubin", .sm = 90};
    if (registry_open(&o, &r) != OK) {
        print_message("%s\n", err_msg());
        skip();
    }
    return r;
}

static void grids_cover_every_ragged_shape(void **state)
{
    (void)state;
    struct variant v = make("x_kd8", 1024, 128, 64);
    struct launch_plan p;
    for (int m = 1; m < 400; m += 7)
        for (int n = 1; n < 200; n += 3) {
            struct shape s = {m, n, 256};
            assert_int_equal(launch_plan_make(NULL, &h200, &v, &s, NULL, &p), OK);
            assert_true((int)p.grid[0] * 64 >= n && ((int)p.grid[0] - 1) * 64 < n);
            assert_true((int)p.grid[1] * 128 >= m && ((int)p.grid[1] - 1) * 128 < m);
            assert_int_equal(p.grid[2], 1);
            assert_int_equal(p.block, 256);
            assert_int_equal(p.dyn_smem, 1024);
            assert_int_equal(p.pad, 0);
        }
    struct shape tall = {1 << 22, 1, 256}; /* 32,768 row tiles: still a grid */
    assert_int_equal(launch_plan_make(NULL, &h200, &v, &tall, NULL, &p), OK);
    v = make("x_kd8", 1024, 32, 64); /* 131,072: not */
    assert_int_equal(launch_plan_make(NULL, &h200, &v, &tall, NULL, &p), ERR_LIMIT);
}

static void the_guard_refuses_in_words(void **state)
{
    (void)state;
    struct variant v = make("wide_kd8", 98304, 128, 128);
    struct device_limits lim = h200;
    struct shape s = {256, 256, 256};
    struct launch_plan p;
    assert_int_equal(launch_plan_make(NULL, &lim, &v, &s, NULL, &p), OK);
    lim.smem_optin = 98304; /* exactly enough */
    assert_int_equal(launch_plan_make(NULL, &lim, &v, &s, NULL, &p), OK);
    v.static_smem = 16; /* static memory counts too */
    assert_int_equal(launch_plan_make(NULL, &lim, &v, &s, NULL, &p), ERR_LIMIT);
    assert_non_null(strstr(p.why, "wide_kd8 needs 98320 bytes"));
    assert_non_null(strstr(p.why, "the device grants 98304"));
    lim.lowered = true;
    assert_int_equal(launch_plan_make(NULL, &lim, &v, &s, NULL, &p), ERR_LIMIT);
    assert_non_null(strstr(p.why, "SASSTOP_SMEM_LIMIT"));
    lim.sm = 75;
    assert_int_equal(launch_plan_make(NULL, &lim, &v, &s, NULL, &p), ERR_LIMIT);
    assert_non_null(strstr(p.why, "needs sm_80"));
}

static void a_refused_kernel_falls_back_visibly(void **state)
{
    (void)state;
    struct registry *r = open_cubins();
    struct device_limits lim = h200;
    struct shape s = {256, 100, 256};
    struct launch_plan p;
    lim.smem_optin = launch_parse_size("60K");
    const struct variant *wide = registry_find(r, "wide_kd4");
    assert_int_equal(launch_plan_make(r, &lim, wide, &s, NULL, &p), OK);
    assert_true(p.fell_back);
    assert_ptr_equal(p.asked, wide);
    assert_string_equal(p.ran->kernel, "narrow_kd4");
    assert_non_null(strstr(p.why, "wide_kd4 needs 73728 bytes"));
    assert_int_equal(p.grid[0], 2); /* of narrow's tile */
    assert_int_equal(p.grid[1], 4);
    assert_int_equal(p.dyn_smem, 38912);
    struct launch_options strict = {.strict = true};
    assert_int_equal(launch_plan_make(r, &lim, wide, &s, &strict, &p), ERR_LIMIT);
    lim.smem_optin = 1000; /* not even the fallback */
    assert_int_equal(launch_plan_make(r, &lim, wide, &s, NULL, &p), ERR_LIMIT);
    /* The text's guard: 98,304 bytes still fit in 99 KB. */
    lim.smem_optin = launch_parse_size("99K");
    assert_int_equal(launch_plan_make(r, &lim, registry_find(r, "wide_kd8"), &s, NULL, &p), OK);
    assert_false(p.fell_back);
    /* The first wide form does not at KD 8, and does at KD 4. */
    const struct variant *r7 = registry_find(r, "wide_r7_kd8");
    assert_int_equal(launch_plan_make(r, &lim, r7, &s, NULL, &p), OK);
    assert_true(p.fell_back);
    assert_string_equal(p.ran->kernel, "narrow_kd8");
    assert_non_null(strstr(p.why, "139264"));
    assert_int_equal(launch_plan_make(r, &lim, registry_find(r, "wide_r7_kd4"), &s, NULL, &p), OK);
    assert_false(p.fell_back);
    /* On an H200 it runs as it is. */
    assert_int_equal(launch_plan_make(r, &h200, r7, &s, NULL, &p), OK);
    assert_false(p.fell_back);
    registry_close(r);
}

static void padding_leaves_room_for_exactly_n_blocks(void **state)
{
    (void)state;
    struct variant v = make("nb_kd8", 43008, 128, 64);
    struct shape s = {256, 256, 256};
    for (int n = 1; n <= 5; n++) {
        struct launch_options o = {.force_blocks_per_sm = n};
        struct launch_plan p;
        assert_int_equal(launch_plan_make(NULL, &h200, &v, &s, &o, &p), OK);
        int each = (int)p.dyn_smem + h200.smem_reserved;
        assert_int_equal(h200.smem_sm / each, n);
        assert_int_equal(p.dyn_smem, 43008 + p.pad);
        assert_int_equal(p.blocks_per_sm, n);
    }
    struct launch_options o = {.force_blocks_per_sm = 6};
    struct launch_plan p;
    assert_int_equal(launch_plan_make(NULL, &h200, &v, &s, &o, &p), ERR_LIMIT);
    assert_non_null(strstr(p.why, "6 blocks"));
}

static void sizes_are_read_or_refused(void **state)
{
    (void)state;
    assert_int_equal(launch_parse_size("99K"), 101376);
    assert_int_equal(launch_parse_size("101376"), 101376);
    assert_int_equal(launch_parse_size("1M"), 1 << 20);
    static const char *const bad[] = {"", "K", "-1", "99KB", "x", "99999999999", "4096M", " 1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(launch_parse_size(bad[i]), 0);
    assert_int_equal(launch_parse_size(NULL), 0);
}

/* ---- a driver that remembers ---- */

static struct {
    int modules, unloaded, functions, launches, allowed, syncs;
    unsigned grid[2], block, smem;
    const struct variant *running;
} seen;

static drv_result fake_load(struct drv_module **m, const void *image)
{
    *m = (struct drv_module *)(uintptr_t)image;
    seen.modules++;
    return 0;
}

static drv_result fake_unload(struct drv_module *m)
{
    seen.unloaded += m != NULL;
    return 0;
}

static drv_result fake_function(struct drv_func **f, struct drv_module *m, const char *name)
{
    (void)m;
    *f = (struct drv_func *)(uintptr_t)name;
    seen.functions++;
    return 0;
}

static drv_result fake_set(struct drv_func *f, int attribute, int v)
{
    (void)f;
    assert_int_equal(attribute, DRV_FUNC_MAX_DYNAMIC_SMEM);
    seen.allowed = v;
    return 0;
}

static drv_result fake_attribute(int *v, int attribute, int dev)
{
    (void)dev;
    switch (attribute) {
    case DRV_DEV_CC_MAJOR:
        *v = 9;
        return 0;
    case DRV_DEV_CC_MINOR:
        *v = 0;
        return 0;
    case DRV_DEV_SMEM_OPTIN:
        *v = h200.smem_optin;
        return 0;
    case DRV_DEV_SMEM_PER_SM:
        *v = h200.smem_sm;
        return 0;
    default:
        return 1;
    }
}

/* Device memory is host memory here; a launch computes the reference. */
static drv_result fake_launch(struct drv_func *f, unsigned gx, unsigned gy, unsigned gz,
                              unsigned bx, unsigned by, unsigned bz, unsigned smem,
                              struct drv_stream *s, void **args, void **extra)
{
    (void)f, (void)gz, (void)by, (void)bz, (void)s, (void)extra;
    seen.launches++;
    seen.grid[0] = gx, seen.grid[1] = gy, seen.block = bx, seen.smem = smem;
    const uint8_t *w = (const uint8_t *)(uintptr_t) * (drv_ptr *)args[0];
    const uint8_t *a = (const uint8_t *)(uintptr_t) * (drv_ptr *)args[1];
    float *y = (float *)(uintptr_t) * (drv_ptr *)args[2];
    int m = *(int *)args[3], n = *(int *)args[4], k = *(int *)args[5];
    for (int t = 0; t < n; t++)
        for (int r = 0; r < m; r++)
            y[(size_t)t * (size_t)m + (size_t)r] = q4k_dot_chunked(
                w + (size_t)r * q4k_row_bytes(k), a + (size_t)t * q8_row_bytes(k), k);
    return 0;
}

static drv_result fake_alloc(drv_ptr *p, size_t bytes)
{
    *p = (drv_ptr)(uintptr_t)malloc(bytes);
    return *p ? 0 : 2;
}

static drv_result fake_free(drv_ptr p)
{
    free((void *)(uintptr_t)p);
    return 0;
}

static drv_result fake_up(drv_ptr dst, const void *src, size_t n)
{
    memcpy((void *)(uintptr_t)dst, src, n);
    return 0;
}

static drv_result fake_down(void *dst, drv_ptr src, size_t n)
{
    memcpy(dst, (const void *)(uintptr_t)src, n);
    return 0;
}

static drv_result fake_sync(struct drv_stream *s)
{
    (void)s;
    seen.syncs++;
    return 0;
}

static drv_result fake_ctx_sync(void)
{
    return 0;
}

static const struct driver fake = {
    .ModuleLoadData = fake_load,
    .ModuleUnload = fake_unload,
    .ModuleGetFunction = fake_function,
    .FuncSetAttribute = fake_set,
    .DeviceGetAttribute = fake_attribute,
    .LaunchKernel = fake_launch,
    .MemAlloc = fake_alloc,
    .MemFree = fake_free,
    .MemcpyHtoD = fake_up,
    .MemcpyDtoH = fake_down,
    .StreamSynchronize = fake_sync,
    .CtxSynchronize = fake_ctx_sync,
};

static void a_launch_loads_once_allows_memory_and_passes_arguments(void **state)
{
    (void)state;
    struct registry *r = open_cubins();
    struct gpu g = {.drv = (struct driver *)(uintptr_t)&fake};
    struct gpu_case c;
    struct family_inputs in;
    struct comparison cmp;
    char why[CHECK_WHY];
    struct shape s = {130, 65, 512};
    memset(&seen, 0, sizeof seen);
    assert_int_equal(launcher_open(&g.launcher, &fake, 0, r), OK);
    assert_int_equal(launcher_limits(g.launcher)->sm, 90);
    const struct variant *v = registry_find(r, "wide_kd8");
    assert_int_equal(gpu_case_open(&g, &c, v, &s), OK);
    assert_int_equal(c.fam->make_inputs(&s, INPUT_RANDOM, 4, &in), OK);
    assert_int_equal(gpu_case_upload(&g, &c, &in), OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpu_case_run(&g, &c), OK);
        check_compare(c.fam, &v->desc, &s, &in, c.host, 1, &cmp);
        assert_true(check_verdict(&cmp, why));
    }
    assert_int_equal(seen.launches, 2);
    assert_int_equal(seen.modules, 1);
    assert_int_equal(seen.functions, 1);
    assert_int_equal(seen.allowed, 98304);
    assert_int_equal(seen.smem, 98304);
    assert_int_equal(seen.grid[0], 1);
    assert_int_equal(seen.grid[1], 2);
    assert_int_equal(seen.block, 256);
    gpu_case_close(&g, &c);
    family_inputs_free(&in);
    launcher_close(g.launcher);
    assert_int_equal(seen.unloaded, 1);
    registry_close(r);
}

static void the_environment_lowers_the_limit_and_never_raises_it(void **state)
{
    (void)state;
    struct registry *r = open_cubins();
    struct launcher *l;
    setenv("SASSTOP_SMEM_LIMIT", "99K", 1);
    assert_int_equal(launcher_open(&l, &fake, 0, r), OK);
    assert_int_equal(launcher_limits(l)->smem_optin, 101376);
    assert_true(launcher_limits(l)->lowered);
    launcher_close(l);
    setenv("SASSTOP_SMEM_LIMIT", "4M", 1);
    assert_int_equal(launcher_open(&l, &fake, 0, r), OK);
    assert_int_equal(launcher_limits(l)->smem_optin, h200.smem_optin);
    assert_false(launcher_limits(l)->lowered);
    launcher_close(l);
    setenv("SASSTOP_SMEM_LIMIT", "lots", 1);
    assert_int_equal(launcher_open(&l, &fake, 0, r), ERR_USAGE);
    unsetenv("SASSTOP_SMEM_LIMIT");
    registry_close(r);
}

static void a_library_that_is_no_driver_is_refused_in_words(void **state)
{
    (void)state;
    struct driver *d;
    setenv("SASSTOP_LIBCUDA", "libm.so.6", 1);
    assert_int_equal(driver_open(&d), ERR_UNAVAILABLE);
    assert_null(d);
    assert_non_null(strstr(err_msg(), "too old"));
    setenv("SASSTOP_LIBCUDA", "/no/such/lib.so", 1);
    assert_int_equal(driver_open(&d), ERR_UNAVAILABLE);
    assert_non_null(strstr(err_msg(), "/no/such/lib.so"));
    unsetenv("SASSTOP_LIBCUDA");
    struct driver none = {0};
    assert_string_equal(driver_error_name(&none, 700), "CUDA error 700");
    assert_int_equal(driver_check(&none, 0, "x"), OK);
    assert_int_equal(driver_check(&none, 700, "launch"), ERR_FAILED);
    assert_non_null(strstr(err_msg(), "launch: CUDA error 700"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids_cover_every_ragged_shape),
        cmocka_unit_test(the_guard_refuses_in_words),
        cmocka_unit_test(a_refused_kernel_falls_back_visibly),
        cmocka_unit_test(padding_leaves_room_for_exactly_n_blocks),
        cmocka_unit_test(sizes_are_read_or_refused),
        cmocka_unit_test(a_launch_loads_once_allows_memory_and_passes_arguments),
        cmocka_unit_test(the_environment_lowers_the_limit_and_never_raises_it),
        cmocka_unit_test(a_library_that_is_no_driver_is_refused_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
