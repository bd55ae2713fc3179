/*
 * The numeric class bf16 without a GPU: the layout of activations, the rounding, and that the
 * class's limits take a product with bf16 operands and refuse one with a slip.
 */
#include "kernels/bf16.h"
#include "kernels/bf16_class.h"
#include "kernels/f16.h"
#include "kernels/kcheck/kcheck.h"
#include "kernels/q4k_gemm/ref.h"
#include "kernels/q8.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_value_has_a_place_of_its_own(void **state)
{
    (void)state;
    static const int tokens[] = {1, 7, 8, 33};
    for (size_t t = 0; t < 4; t++) {
        int n = tokens[t], k = 512;
        size_t bytes = bf16_bytes(n, k);
        uint8_t *seen = calloc(1, bytes);
        assert_non_null(seen);
        for (int token = 0; token < n; token++)
            for (int i = 0; i < k; i++) {
                size_t at = bf16_offset(n, token, i);
                assert_true(at % 2 == 0 && at + 2 <= bytes);
                assert_int_equal(seen[at], 0);
                seen[at] = 1;
            }
        free(seen);
    }
}

static void places_are_what_the_kernels_read(void **state)
{
    (void)state;
    /* Of 16 values the even ones first; 8 tokens x 64 values a tile; pieces turned by the token. */
    assert_int_equal(bf16_offset(16, 0, 0), 0);
    assert_int_equal(bf16_offset(16, 0, 2), 2);
    assert_int_equal(bf16_offset(16, 0, 1), 16);
    assert_int_equal(bf16_offset(16, 0, 16), 32);
    assert_int_equal(bf16_offset(16, 1, 0), 128 + 16);
    assert_int_equal(bf16_offset(16, 8, 0), 1024);
    assert_int_equal(bf16_offset(16, 0, 64), 2048);
    assert_int_equal(bf16_offset(9, 0, 64), 2048);
    assert_int_equal(bf16_offset(8, 0, 64), 1024);
}

static void rounds_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(f32_to_bf16(1.0f), 0x3f80);
    assert_int_equal(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);            /* a tie, down to even */
    assert_int_equal(f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);        /* a tie, up to even */
    assert_int_equal(f32_to_bf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81); /* above a tie */
    assert_int_equal(f32_to_bf16(2.0f - 0x1p-20f), 0x4000); /* carries into the exponent */
    assert_int_equal(f32_to_bf16(-0.0f), 0x8000);
    assert_int_equal(f32_to_bf16(INFINITY), 0x7f80);
    assert_int_equal(f32_to_bf16(NAN), 0x7fff);
    for (int i = -40; i < 40; i++) {
        float v = ldexpf(1.37f, i), r = bf16_to_f32(f32_to_bf16(v));
        assert_true(fabsf(r - v) <= 0x1p-8f * fabsf(v));
    }
}

/* ---- limits: a product as the kernels compute it ---- */

static float round_bf16(float v)
{
    return bf16_to_f32(f32_to_bf16(v));
}

/* `slip`: the min of the next sub-block. */
static float product(const uint8_t *w, const uint8_t *chunks, int k, bool slip)
{
    float sum = 0;
    for (int i = 0; i < k / Q8_CHUNK; i++, chunks += Q8_CHUNK_BYTES) {
        const uint8_t *b = w + (size_t)(i / 8) * Q4K_BLOCK_BYTES;
        int j = i % 8, sc, m, other;
        q4k_scale_min(b + Q4K_SCALES, j, &sc, &m);
        if (slip) q4k_scale_min(b + Q4K_SCALES, (j + 1) % 8, &other, &m);
        float s = round_bf16(f16_to_f32(f16_load(b)) * (float)sc);
        float o = round_bf16(-f16_to_f32(f16_load(b + 2)) * (float)m);
        float da = f16_to_f32(f16_load(chunks));
        for (int v = 0; v < Q8_CHUNK; v++) {
            int q = b[Q4K_NIBBLES + (j >> 1) * 32 + v] >> (j & 1) * 4 & 15;
            float a = round_bf16(da * (float)(int8_t)chunks[Q8_QUANTS + v]);
            sum += round_bf16(s * (float)q + o) * a;
        }
    }
    return sum;
}

static bool sound(enum input_kind kind, const struct shape *s, bool slip)
{
    const struct kernel_family *fam = family_find("q4k_gemm");
    const struct variant_desc d = {.numeric = "bf16", .layout_a = "bf16", .tile_m = 128};
    struct family_inputs in;
    struct comparison cmp;
    char why[CHECK_WHY];
    assert_int_equal(fam->make_inputs(s, kind, 7, &in), OK);
    uint8_t *buffer = malloc(check_buffer_bytes(fam, s));
    assert_non_null(buffer);
    check_buffer_fill(fam, s, buffer);
    float *y = (float *)(buffer + CHECK_GUARD_BYTES);
    for (int t = 0; t < s->n; t++)
        for (int r = 0; r < s->m; r++)
            y[t * s->m + r] = product(in.b + (size_t)r * q4k_row_bytes(s->k),
                                      in.a + (size_t)t * q8_row_bytes(s->k), s->k, slip);
    check_compare(fam, &d, s, &in, buffer, 1, &cmp);
    bool ok = check_verdict(&cmp, why);
    if (!ok && !slip) print_message("kind %d: %s\n", (int)kind, why);
    free(buffer);
    family_inputs_free(&in);
    return ok;
}

static void limits_take_a_sound_product(void **state)
{
    (void)state;
    static const struct shape shapes[] = {{1, 1, 256}, {33, 7, 512}, {16, 16, 4096}};
    for (size_t i = 0; i < 3; i++)
        for (int kind = 0; kind < INPUT_KINDS; kind++)
            assert_true(sound((enum input_kind)kind, &shapes[i], false));
}

static void limits_refuse_a_slip(void **state)
{
    (void)state;
    const struct shape s = {33, 7, 512};
    assert_false(sound(INPUT_RANDOM, &s, true));
    assert_false(sound(INPUT_NEGATIVE, &s, true));
}

static void layouts_that_are_unknown_are_refused(void **state)
{
    (void)state;
    const struct shape s = {1, 1, 256};
    struct variant_desc d = {.name = "x", .layout_a = "other"};
    uint8_t chunks[8 * Q8_CHUNK_BYTES] = {0}, *out;
    size_t bytes;
    assert_int_equal(bf16_prepare_a(&d, &s, chunks, &out, &bytes), ERR_UNAVAILABLE);
    assert_null(out);
    strcpy(d.layout_a, "bf16");
    assert_int_equal(bf16_prepare_a(&d, &s, chunks, &out, &bytes), OK);
    assert_int_equal(bytes, 8 * 256 * 2);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_a_place_of_its_own),
        cmocka_unit_test(places_are_what_the_kernels_read),
        cmocka_unit_test(rounds_to_nearest_even),
        cmocka_unit_test(limits_take_a_sound_product),
        cmocka_unit_test(limits_refuse_a_slip),
        cmocka_unit_test(layouts_that_are_unknown_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
