/*
 * The CUDA backend with no GPU: what it says when there is no driver, that every kernel it launches
 * by name is in the built cubins with the launch that it uses, and the index maps of the kernels
 * whose blocks are read by pieces, emulated and held against engine/quant.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/f16.h"
#include "engine/cuda/cuda_priv.h"
#include "engine/quant.h"
#include "kernels/ops/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* q4k_expand's pieces against the layout that kcheck prepares. */
static void test_expanded_weights(void **state)
{
    enum { BLOCKS = 3 };
    uint8_t in[BLOCKS * 144], got[16], *want = NULL;
    size_t bytes = 0;
    struct shape s = {1, 1, BLOCKS * 256};
    struct variant_desc d = {.layout_b = "q4_k_int8"};
    (void)state;
    for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(i * 37 + (i >> 3));
    assert_int_equal(family_find("q4k_gemm")->prepare(&d, &s, in, &want, &bytes), OK);
    assert_int_equal(bytes, BLOCKS * OPS_EXPAND_UNITS * 16);
    for (int i = 0; i < BLOCKS * OPS_EXPAND_UNITS; i++) {
        int unit = i % OPS_EXPAND_UNITS, sub = (unit - 1) >> 1, half = (unit - 1) & 1;
        const uint8_t *b = in + i / OPS_EXPAND_UNITS * 144;
        memcpy(got, b + (unit ? 16 + (sub >> 1) * 32 + half * 16 : 0), 16);
        for (int j = 0; unit && j < 16; j++) got[j] = got[j] >> (sub & 1) * 4 & 15;
        assert_memory_equal(got, want + i * 16, 16);
    }
    free(want);
}

static const char *const SYMBOLS[CUDA_KERNELS] = {
#define CUDA_KERNEL(id, symbol) [CUDA_##id] = symbol,
#include "engine/cuda/cuda_kernels.def"
#undef CUDA_KERNEL
};

static void test_no_driver(void **state)
{
    struct backend_options o = {.max_tokens = 8, .context = 64};
    struct backend *b = (struct backend *)state;
    setenv("SASSTOP_LIBCUDA", "/nonexistent/libcuda.so", 1);
    assert_int_equal(cuda_backend.open(&o, &b), ERR_UNAVAILABLE);
    assert_null(b);
    assert_non_null(strstr(err_msg(), "/nonexistent/libcuda.so"));
    assert_non_null(strstr(err_msg(), "CPU"));
    unsetenv("SASSTOP_LIBCUDA");
}

static void test_limits_of_options(void **state)
{
    struct backend *b = (struct backend *)state;
    struct backend_options o = {.max_tokens = CUDA_MAX_TOKENS + 1, .context = 64};
    assert_int_equal(cuda_backend.open(&o, &b), ERR_LIMIT);
    o.max_tokens = 0;
    assert_int_equal(cuda_backend.open(&o, &b), ERR_LIMIT);
    o = (struct backend_options){.max_tokens = 8, .context = UINT32_MAX};
    assert_int_equal(cuda_backend.open(&o, &b), ERR_LIMIT);
    assert_null(b);
}

static void check_arch(const char *arch)
{
    struct registry *r;
    struct registry_options o = {.arch = arch};
    char dir[64];
    const char *b = getenv("B");
    snprintf(dir, sizeof dir, "%s/cubin", b ? b : "build");
    if (access(dir, R_OK) != 0) snprintf(dir, sizeof dir, "build/cubin");
    o.dir = dir;
    if (registry_open(&o, &r) != OK) skip(); /* built with no nvcc, or for other GPUs */
    if (!registry_find(r, "quantize_q8")) {
        registry_close(r);
        skip();
    }
    for (int i = 0; i < CUDA_KERNELS; i++) {
        const struct variant *v = registry_find(r, SYMBOLS[i]);
        if (!v) fail_msg("sm_%s has no kernel %s", arch, SYMBOLS[i]);
        assert_int_equal(v->kd, 0);
        assert_false(v->broken);
        assert_true(v->desc.threads >= 32 && v->desc.threads <= 1024);
        assert_true(v->static_smem <= 48 * 1024); /* more needs the dynamic kind */
    }
    assert_non_null(registry_find(r, "q4k_expand"));
    static const uint32_t HEADS[] = {64, 96, 128, 256};
    for (int i = 0; i < 4; i++)
        assert_int_equal(registry_find(r, SYMBOLS[CUDA_PREFILL_64 + i])->dyn_smem,
                         ops_attn_prefill_smem(HEADS[i]));
    registry_close(r);
}

static void test_kernels_90a(void **state)
{
    (void)state;
    check_arch("90a");
}

static void test_kernels_121(void **state)
{
    (void)state;
    check_arch("121");
}

/* ---- index maps ---- */

static uint32_t word(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* Bytes minus `by`, as the kernels do it without a borrow between bytes. */
static uint32_t minus(uint32_t q, uint32_t by)
{
    return ((q | 0x80808080u) - by * 0x01010101u) ^ 0x80808080u;
}

static void random_bytes(void *p, size_t n, uint32_t seed)
{
    uint8_t *b = p;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        b[i] = (uint8_t)(seed >> 24);
    }
}

/* q6k_gemv: lane j of sixteen, its eight low and eight high values and their scales. */
static void test_q6k_lanes(void **state)
{
    struct q6_k_block blk;
    float ref[QK_K];
    int seen[QK_K] = {0};
    (void)state;
    random_bytes(&blk, sizeof blk, 7);
    blk.d = f32_to_f16(0.5f);
    quant_dequant_row(QUANT_Q6_K, &blk, ref, QK_K);
    const uint8_t *b = (const uint8_t *)&blk;
    for (int j = 0; j < 16; j++) {
        int h = j >> 3, i = j & 7, shift = (i >> 2) * 2;
        int at = h * 128 + (i >> 2) * 32 + (i & 3) * 8;
        for (int w = 0; w < 2; w++) {
            uint32_t ql = word(b + j * 8 + 4 * w),
                     qh = word(b + 128 + h * 32 + (i & 3) * 8 + 4 * w);
            for (int high = 0; high < 2; high++) {
                uint32_t v = minus((ql >> 4 * high & 0x0f0f0f0fu) |
                                       (qh >> (shift + 4 * high) & 0x03030303u) << 4,
                                   32);
                int sc = (int8_t)b[192 + at / 16 + 4 * high];
                for (int e = 0; e < 4; e++) {
                    int pos = at + 64 * high + 4 * w + e;
                    int8_t q = (int8_t)(v >> 8 * e);
                    assert_true(ref[pos] == 0.5f * (float)sc * (float)q);
                    seen[pos]++;
                }
            }
        }
    }
    for (int i = 0; i < QK_K; i++) assert_int_equal(seen[i], 1);
}

/* Orders of chunks in shared memory are permutations of eight. */
static void test_chunk_orders(void **state)
{
    unsigned q4 = 0, q6 = 0;
    (void)state;
    for (int c = 0; c < 8; c++) {
        q4 |= 1u << ((c & 1) * 4 + (c >> 1));
        q6 |= 1u << ((c & 2) << 1 | (c & 4) >> 1 | (c & 1));
    }
    assert_int_equal(q4, 255);
    assert_int_equal(q6, 255);
    /* q6k_gemv's lane j reads 8 bytes at 8j of its chunk order, and 128 bytes further on. */
    for (int j = 0; j < 16; j++) {
        int c = (j >> 3) * 4 + ((j & 7) >> 2), place = (c & 2) << 1 | (c & 4) >> 1 | (c & 1);
        assert_int_equal(place * 32 + (j & 3) * 8, 8 * j);
        c += 2;
        place = (c & 2) << 1 | (c & 4) >> 1 | (c & 1);
        assert_int_equal(place * 32 + (j & 3) * 8, 128 + 8 * j);
    }
}

/* Q5_0: the fifth bits of four values, spread over a word. */
static void test_q5_0_words(void **state)
{
    struct q5_0_block blk;
    float ref[QK];
    (void)state;
    random_bytes(&blk, sizeof blk, 11);
    blk.d = f32_to_f16(1.0f);
    quant_dequant_row(QUANT_Q5_0, &blk, ref, QK);
    uint32_t h = word(blk.qh);
    for (int j = 0; j < 4; j++) {
        for (int high = 0; high < 2; high++) {
            uint32_t x = h >> (16 * high + 4 * j);
            uint32_t fifth = (x & 1) << 4 | (x & 2) << 11 | (x & 4) << 18 | (x & 8) << 25;
            uint32_t v = minus((word(blk.qs + 4 * j) >> 4 * high & 0x0f0f0f0fu) | fifth, 16);
            for (int e = 0; e < 4; e++)
                assert_true(ref[16 * high + 4 * j + e] == (float)(int8_t)(v >> 8 * e));
        }
    }
}

/* The largest sum of a Q6_K chunk, scaled, is exact in f32. */
static void test_q6k_sum_is_exact(void **state)
{
    (void)state;
    assert_true(2 * 128 * 16 * 32 * 127 < 1 << 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_driver),        cmocka_unit_test(test_limits_of_options),
        cmocka_unit_test(test_kernels_90a),      cmocka_unit_test(test_kernels_121),
        cmocka_unit_test(test_expanded_weights), cmocka_unit_test(test_q6k_lanes),
        cmocka_unit_test(test_chunk_orders),     cmocka_unit_test(test_q5_0_words),
        cmocka_unit_test(test_q6k_sum_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
