/* The quantised formats and the reference arithmetic, against independent restatements. */
#include "kernels/family.h"
#include "kernels/q4k_gemm/ref.h"
#include "kernels/q8.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void f16_every_value_survives(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        float f = f16_to_f32((uint16_t)h);
        if (isnan(f)) {
            assert_true(isnan(f16_to_f32(f32_to_f16(f))));
            continue;
        }
        assert_int_equal(f32_to_f16(f), h);
    }
}

static void f16_rounds_to_nearest_even(void **state)
{
    (void)state;
    /* Between neighbours h and h + 1 the middle goes to the even one, a hair more to the upper. */
    for (unsigned h = 0; h < 0x7bff; h++) {
        float lo = f16_to_f32((uint16_t)h), hi = f16_to_f32((uint16_t)(h + 1));
        float mid = (float)(((double)lo + hi) / 2);
        assert_int_equal(f32_to_f16(mid), h & 1 ? h + 1 : h);
        assert_int_equal(f32_to_f16(nextafterf(mid, 1e9f)), h + 1);
        assert_int_equal(f32_to_f16(-nextafterf(mid, 0)), 0x8000u | h);
    }
    assert_int_equal(f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(f32_to_f16(65520.0f), 0x7c00);
}

static float noise(unsigned *s)
{
    *s = *s * 1664525u + 1013904223u;
    return (float)(int32_t)*s / 2147483648.0f;
}

static void q8_follows_its_rule(void **state)
{
    (void)state;
    unsigned s = 5;
    for (int round = 0; round < 200; round++) {
        float x[64];
        uint8_t c[2 * Q8_CHUNK_BYTES];
        for (int i = 0; i < 64; i++) x[i] = noise(&s) * ldexpf(1, round % 40 - 20);
        q8_quantize_row(x, 64, c);
        for (int b = 0; b < 2; b++) {
            const uint8_t *p = c + b * Q8_CHUNK_BYTES;
            float amax = 0, da = f16_to_f32(f16_load(p));
            int32_t sum = 0, sa;
            for (int i = 0; i < 32; i++) amax = fmaxf(amax, fabsf(x[b * 32 + i]));
            assert_int_equal(f16_load(p), f32_to_f16(amax / 127));
            for (int i = 0; i < 32; i++) {
                int q = (int8_t)p[4 + i];
                sum += q;
                assert_in_range(q + 127, 0, 254);
                /* Half a step, and what clamping takes when da was rounded down. */
                if (da > 0 && q > -127 && q < 127)
                    assert_true(fabs((double)x[b * 32 + i] / da - q) <= 0.5);
            }
            memcpy(&sa, p + 36, 4);
            assert_int_equal(sa, sum);
            assert_int_equal(p[2] | p[3], 0);
        }
    }
}

static void q8_takes_anything(void **state)
{
    (void)state;
    float x[32] = {NAN, INFINITY, -INFINITY, 1e38f, -1e38f, 1e-45f, -0.0f};
    uint8_t c[Q8_CHUNK_BYTES];
    q8_quantize_row(x, 32, c);
    assert_int_equal(f16_load(c), 0x7bff);
    assert_int_equal((int8_t)c[4], 0);
    assert_int_equal((int8_t)c[5], 127);
    assert_int_equal((int8_t)c[6], -127);
    float zero[32] = {0}, back[32];
    q8_quantize_row(zero, 32, c);
    q8_dequantize_row(c, 32, back);
    for (int i = 0; i < 32; i++) assert_true(back[i] == 0);
}

static void q4k_scales_pack_and_unpack(void **state)
{
    (void)state;
    for (int round = 0; round < 64; round++) {
        uint8_t sc[8], m[8], packed[12];
        for (int j = 0; j < 8; j++) {
            sc[j] = (uint8_t)((round * 7 + j * 13) & 63);
            m[j] = (uint8_t)((round * 29 + j * 5 + 3) & 63);
        }
        q4k_pack_scales(packed, sc, m);
        for (int j = 0; j < 8; j++) {
            int got_sc, got_m;
            q4k_scale_min(packed, j, &got_sc, &got_m);
            assert_int_equal(got_sc, sc[j]);
            assert_int_equal(got_m, m[j]);
        }
    }
}

/* The reference must equal the plain sum over dequantised weights and activations. */
static void dots_equal_the_dequantised_sum(void **state)
{
    (void)state;
    const struct kernel_family *fam = family_find("q4k_gemm");
    struct shape s = {.m = 3, .n = 5, .k = 768};
    for (int kind = 0; kind <= INPUT_ALIKE; kind++) {
        struct family_inputs in;
        assert_int_equal(fam->make_inputs(&s, (enum input_kind)kind, 11, &in), OK);
        for (int t = 0; t < s.n; t++) {
            float x[768];
            q8_dequantize_row(in.a + (size_t)t * q8_row_bytes(s.k), s.k, x);
            for (int r = 0; r < s.m; r++) {
                const uint8_t *row = in.b + (size_t)r * q4k_row_bytes(s.k);
                double plain = 0, mag = 0;
                for (int b = 0; b < s.k / 256; b++) {
                    float w[256];
                    q4k_dequantize_block(row + b * Q4K_BLOCK_BYTES, w);
                    for (int i = 0; i < 256; i++) plain += (double)w[i] * x[b * 256 + i];
                }
                struct reference_value ref = fam->reference(&s, &in, t, r);
                struct variant_desc d = {0};
                mag = ref.mag;
                /* Dequantising rounds each weight once in f32. */
                assert_true(fabs(plain - ref.v) <= 1e-6 * mag);
                float f = q4k_dot_chunked(row, in.a + (size_t)t * q8_row_bytes(s.k), s.k);
                assert_true(fabs(f - ref.v) <= fam->tolerance(&d, &s, &ref).worst);
            }
        }
        family_inputs_free(&in);
    }
}

static void shapes_are_refused_by_rule(void **state)
{
    (void)state;
    const struct kernel_family *fam = family_find("q4k_gemm");
    static const struct shape bad[] = {{0, 1, 256},     {1, 0, 256},      {1, 1, 0},
                                       {1, 1, 255},     {1, 1, 288},      {-1, 1, 256},
                                       {1, 1, 1 << 30}, {1 << 30, 1, 256}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(fam->check_shape(&bad[i]), ERR_USAGE);
    assert_true(fam->n_shapes >= 12);
    for (int i = 0; i < fam->n_shapes; i++) assert_int_equal(fam->check_shape(&fam->shapes[i]), OK);
    assert_null(family_find("no such family"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_every_value_survives),
        cmocka_unit_test(f16_rounds_to_nearest_even),
        cmocka_unit_test(q8_follows_its_rule),
        cmocka_unit_test(q8_takes_anything),
        cmocka_unit_test(q4k_scales_pack_and_unpack),
        cmocka_unit_test(dots_equal_the_dequantised_sum),
        cmocka_unit_test(shapes_are_refused_by_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
