/*
 * Tensor types: layouts against hand-made blocks, half precision, round trips with derived error
 * bounds, and the quantisers against the plain grid that they search around.
 */
#include "base/f16.h"
#include "engine/quant.h"
#include "engine/synth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const enum quant_type all_types[] = {QUANT_F32,  QUANT_F16,  QUANT_Q4_1, QUANT_Q5_0,
                                            QUANT_Q8_0, QUANT_Q4_K, QUANT_Q6_K};
enum { TYPES = sizeof all_types / sizeof *all_types, N = 4096 };

static void test_names_and_sizes(void **state)
{
    (void)state;
    static const size_t bytes_256[TYPES] = {1024, 512, 160, 176, 272, 144, 210};
    for (size_t i = 0; i < TYPES; i++) {
        assert_true(quant_known(all_types[i]));
        assert_int_equal(quant_row_bytes(all_types[i], 256), bytes_256[i]);
        assert_int_equal(quant_row_bytes(all_types[i], 512), 2 * bytes_256[i]);
    }
    assert_string_equal(quant_name(QUANT_Q4_K), "Q4_K");
    assert_string_equal(quant_name(23), "IQ4_XS");
    assert_string_equal(quant_name(4), "unknown");
    assert_string_equal(quant_name(UINT32_MAX), "unknown");
    assert_false(quant_known(2));
    assert_false(quant_known(13));
    assert_false(quant_known(UINT32_MAX));
    assert_int_equal(quant_row_bytes(QUANT_Q4_K, 255), 0);
    assert_int_equal(quant_row_bytes(QUANT_Q8_0, 33), 0);
    assert_int_equal(quant_row_bytes(QUANT_F32, UINT64_MAX), 0);
}

/* Every half is widened to its value by definition and comes back the same. */
static void test_f16_all(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        int exp = (int)(h >> 10 & 31), man = (int)(h & 1023);
        float f = f16_to_f32((uint16_t)h);
        if (exp == 31 && man) {
            assert_true(isnan(f));
            assert_true((f32_to_f16(f) & 0x7c00) == 0x7c00 && (f32_to_f16(f) & 0x3ff));
            continue;
        }
        double want = exp == 31 ? INFINITY : exp ? ldexp(1024 + man, exp - 25) : ldexp(man, -24);
        assert_true((double)f == (h & 0x8000 ? -want : want));
        assert_int_equal(f32_to_f16(f), h);
    }
}

/* Between two neighbours the nearer is taken, at the middle the even one. */
static void test_f16_rounding(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        float lo = f16_to_f32((uint16_t)h), hi = f16_to_f32((uint16_t)(h + 1)), mid = (lo + hi) / 2;
        assert_int_equal(f32_to_f16(mid), h & 1 ? h + 1 : h);
        assert_int_equal(f32_to_f16(nextafterf(mid, 0)), h);
        assert_int_equal(f32_to_f16(nextafterf(mid, INFINITY)), h + 1);
    }
    assert_int_equal(f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(f32_to_f16(65520), 0x7c00);
    assert_int_equal(f32_to_f16(-1e30f), 0xfc00);
    assert_int_equal(f32_to_f16(1e-10f), 0);
    assert_int_equal(f32_to_f16(-0.0f), 0x8000);
}

static void test_layout_q4_1_q5_0_q8_0(void **state)
{
    (void)state;
    float v[QK];
    struct q4_1_block a = {.d = f32_to_f16(0.5f), .m = f32_to_f16(-2)};
    a.qs[3] = 0x5a;
    quant_dequant_row(QUANT_Q4_1, &a, v, QK);
    assert_float_equal(v[3], 0.5f * 10 - 2, 0);
    assert_float_equal(v[19], 0.5f * 5 - 2, 0);
    assert_float_equal(v[4], -2, 0);

    struct q5_0_block b = {.d = f32_to_f16(0.25f)};
    b.qs[7] = 0x3c;
    b.qh[0] = 0x80; /* bit 7: value 7 */
    b.qh[2] = 0x01; /* bit 16: value 16 */
    quant_dequant_row(QUANT_Q5_0, &b, v, QK);
    assert_float_equal(v[7], 0.25f * (28 - 16), 0);
    assert_float_equal(v[23], 0.25f * (3 - 16), 0);
    assert_float_equal(v[16], 0, 0);
    assert_float_equal(v[0], -4, 0);

    struct q8_0_block c = {.d = f32_to_f16(2)};
    c.qs[31] = -128;
    quant_dequant_row(QUANT_Q8_0, &c, v, QK);
    assert_float_equal(v[31], -256, 0);
    assert_float_equal(v[0], 0, 0);
}

static void test_layout_q4_k(void **state)
{
    (void)state;
    float v[QK_K];
    struct q4_k_block b = {.d = f32_to_f16(0.5f), .dmin = f32_to_f16(0.25f)};
    b.scales[1] = 0xc0 | 33;  /* scale 1 = 33, top bits of scale 5 = 3 */
    b.scales[5] = 0x80 | 17;  /* min 1 = 17, top bits of min 5 = 2 */
    b.scales[9] = 0x6b;       /* low bits: scale 5 = 11, min 5 = 6 */
    b.qs[2] = 0x7e;           /* value 2 of sub-block 0 = 14, of sub-block 1 = 7 */
    b.qs[2 * 32 + 31] = 0x9d; /* the last of sub-blocks 4 (13) and 5 (9) */
    quant_dequant_row(QUANT_Q4_K, &b, v, QK_K);
    assert_float_equal(v[2], 0, 0);
    assert_float_equal(v[32 + 2], 0.5f * 33 * 7 - 0.25f * 17, 0);
    assert_float_equal(v[32], -0.25f * 17, 0);
    assert_float_equal(v[5 * 32 + 31], 0.5f * (48 + 11) * 9 - 0.25f * (32 + 6), 0);
}

static void test_layout_q6_k(void **state)
{
    (void)state;
    float v[QK_K];
    struct q6_k_block b = {.d = f32_to_f16(0.125f)};
    for (int i = 0; i < 16; i++) b.scales[i] = (int8_t)(i - 8);
    b.ql[64 + 5] = 0x9a;      /* half 1: value 128+5 low = 10, value 128+64+5 low = 9 */
    b.ql[64 + 32 + 5] = 0x4b; /* 128+32+5 low = 11, 128+96+5 low = 4 */
    b.qh[32 + 5] = 0xb1;      /* bits 01, 00, 11, 10 */
    quant_dequant_row(QUANT_Q6_K, &b, v, QK_K);
    assert_float_equal(v[128 + 5], 0.125f * 0 * (16 + 10 - 32), 0);
    assert_float_equal(v[128 + 32 + 5], 0.125f * 2 * (11 - 32), 0);
    assert_float_equal(v[128 + 64 + 5], 0.125f * 4 * (48 + 9 - 32), 0);
    assert_float_equal(v[128 + 96 + 5], 0.125f * 6 * (32 + 4 - 32), 0);
    assert_float_equal(v[0], 0.125f * -8 * -32, 0);
}

static double normalised_error(enum quant_type t, const float *in, float *out)
{
    void *row = malloc(quant_row_bytes(t, N));
    double err = 0, ref = 0;
    assert_non_null(row);
    quant_quantize_row(t, in, row, N);
    quant_dequant_row(t, row, out, N);
    free(row);
    for (int i = 0; i < N; i++) {
        double e = (double)out[i] - (double)in[i];
        err += e * e;
        ref += (double)in[i] * (double)in[i];
    }
    return err / ref;
}

/*
 * Gaussian input. A uniform grid of step D has an error of D^2/12. The range of 32 Gaussian values
 * is about 4.1 sd (expected), 2 * 2.07; the largest of 32 is about 2.4 sd in magnitude with both
 * signs, of 16 2.1: Q4_1: D = 4.1/15 -> 0.0063;  Q5_0: D = 2.4/16 -> 0.0019;  Q8_0: D = 2.4/127 ->
 * 3e-5; Q4_K: as Q4_1 (the search wins, 6-bit scales lose a little);  Q6_K: D = 2.1/32 -> 3.6e-4;
 *   F16: relative rounding 2^-11 at worst, mean square below 2^-23.
 * Limits are those with a half more for the spread of the range, zero for F32.
 */
static void test_gaussian_error(void **state)
{
    (void)state;
    static const double limit[TYPES] = {0, 0x1p-23, 0.0095, 0.0029, 4.5e-5, 0.0075, 5.4e-4};
    float in[N], out[N];
    synth_gauss(1, 0, in, N);
    for (size_t t = 0; t < TYPES; t++) {
        double e = normalised_error(all_types[t], in, out);
        print_message("%s: %.3g\n", quant_name(all_types[t]), e);
        assert_true(e <= limit[t]);
    }
}

/* Worst element of a Q8_0, Q4_1, Q5_0 row: half a step of the stored scale, and the scale's own
 * rounding (2^-11 of the largest code); Q5_0 clips the far end of the other sign by up to one step.
 */
static void test_worst_element(void **state)
{
    (void)state;
    static const struct {
        enum quant_type t;
        float steps, clip;
    } rows[] = {{QUANT_Q8_0, 127, 0}, {QUANT_Q4_1, 15, 0}, {QUANT_Q5_0, 16, 1}};
    float in[N], out[N];
    synth_gauss(2, 0, in, N);
    for (size_t r = 0; r < 3; r++) {
        normalised_error(rows[r].t, in, out);
        for (int b = 0; b < N; b += QK) {
            float lo = 0, hi = 0, top;
            for (int i = b; i < b + QK; i++) {
                lo = fminf(lo, in[i]);
                hi = fmaxf(hi, in[i]);
            }
            top = rows[r].t == QUANT_Q4_1 ? hi - lo : fmaxf(hi, -lo);
            float bound = top / rows[r].steps * (0.5f + rows[r].clip) + 2 * top * 0x1p-11f;
            for (int i = b; i < b + QK; i++) assert_true(fabsf(out[i] - in[i]) <= bound);
        }
    }
}

/* Adversarial rows: codes stay in range and values finite and near. */
static void test_special_rows(void **state)
{
    (void)state;
    enum { ROWS = 9 };
    float in[N], out[N];
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < N; i++) {
            const float shapes[ROWS] = {0,
                                        1,
                                        -1,
                                        i % 2 ? 1.0f : -1.0f,
                                        i % 256 == 7 ? 1000.0f : 0.001f,
                                        i % 256 == 7 ? -1000.0f : 0.001f,
                                        1e-8f * (float)(i % 32),
                                        5000.0f - (float)(i % 100),
                                        -3 - 0.01f * (float)(i % 32)};
            in[i] = shapes[row];
        }
        for (size_t t = 0; t < TYPES; t++) {
            double e = normalised_error(all_types[t], in, out);
            for (int i = 0; i < N; i++) assert_true(isfinite(out[i]));
            /* 1e-8 and its multiples are below half precision's scales: they may vanish, not grow.
             */
            if (row == 6)
                for (int i = 0; i < N; i++) assert_true(fabsf(out[i]) <= 1e-5f);
            else if (row == 0)
                for (int i = 0; i < N; i++) assert_float_equal(out[i], 0, 0);
            else
                assert_true(e < 0.011);
        }
    }
}

/* The search is at least as good as the plain grid lo..hi with scales kept in full precision. */
static void test_q4_k_beats_plain_grid(void **state)
{
    (void)state;
    float in[N], out[N];
    double plain = 0, ref = 0;
    synth_gauss(4, 0, in, N);
    for (int b = 0; b < N; b += 32) {
        float lo = 0, hi = 0;
        for (int i = b; i < b + 32; i++) {
            lo = fminf(lo, in[i]);
            hi = fmaxf(hi, in[i]);
        }
        float d = (hi - lo) / 15;
        for (int i = b; i < b + 32; i++) {
            double e = (double)(lo + d * rintf((in[i] - lo) / d) - in[i]);
            plain += e * e;
            ref += (double)in[i] * (double)in[i];
        }
    }
    double searched = normalised_error(QUANT_Q4_K, in, out);
    print_message("searched %.4g, plain grid %.4g\n", searched, plain / ref);
    assert_true(searched < plain / ref);
}

/* Coding what was decoded changes nothing for types whose codes are unique. */
static void test_idempotent(void **state)
{
    (void)state;
    float in[N], once[N], twice[N];
    synth_gauss(5, 0, in, N);
    normalised_error(QUANT_F16, in, once);
    assert_true(normalised_error(QUANT_F16, once, twice) == 0);
    normalised_error(QUANT_Q8_0, in, once);
    assert_true(normalised_error(QUANT_Q8_0, once, twice) < 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_sizes), cmocka_unit_test(test_f16_all),
        cmocka_unit_test(test_f16_rounding),    cmocka_unit_test(test_layout_q4_1_q5_0_q8_0),
        cmocka_unit_test(test_layout_q4_k),     cmocka_unit_test(test_layout_q6_k),
        cmocka_unit_test(test_gaussian_error),  cmocka_unit_test(test_worst_element),
        cmocka_unit_test(test_special_rows),    cmocka_unit_test(test_q4_k_beats_plain_grid),
        cmocka_unit_test(test_idempotent),
    };
    return cmocka_run_group_tests_name("quant", tests, NULL, NULL);
}
