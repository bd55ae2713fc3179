/* Broken and hostile cubins: refused in words or read, never a crash; run it under ASan and UBSan
 * too. */
#include "sass_view/census.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const files[] = {
    "tests/fixtures/sass/tiny_sm_80.cubin",
    "tests/fixtures/sass/tiny_sm_90a.cubin",
    "tests/fixtures/sass/tiny_sm_121.cubin",
    "tests/fixtures/sass/flow_sm_90a.cubin",
};
enum { NFILES = sizeof files / sizeof files[0], FLIPS = 1500 };

struct tally {
    unsigned opened, refused;
};

static uint8_t *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s can't be opened", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *p = malloc(*size);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, *size, f), *size);
    fclose(f);
    return p;
}

/* Reads all that a screen would of one file. The bytes get a block of their own size, so that the
 * sanitizer sees a read past the end. */
static void try_bytes(const uint8_t *data, size_t size, struct tally *t)
{
    struct cubin c;
    uint8_t *own = malloc(size ? size : 1);
    assert_non_null(own);
    memcpy(own, data, size);
    enum status st = cubin_open_memory(&c, own, size, "hostile");
    free(own);
    if (st) {
        assert_non_null(strstr(err_msg(), "hostile"));
        assert_null(c.kernels);
        t->refused++;
        return;
    }
    const char *name;
    size_t read = 0;
    for (size_t i = 0; (name = cubin_object_name(&c, i)); i++) {
        const void *p;
        size_t n;
        if (cubin_symbol(&c, name, &p, &n)) continue;
        for (size_t k = 0; k < n; k++) read += ((const uint8_t *)p)[k];
    }
    for (size_t i = 0; i < c.nkernels; i++) {
        struct census s;
        if (census_make(&s, &c, &c.kernels[i])) continue;
        assert_int_equal(s.total + s.padding + s.dummies, c.kernels[i].code_size / INSN_BYTES);
        census_free(&s);
    }
    assert_true(read < SIZE_MAX);
    cubin_close(&c);
    t->opened++;
}

static uint64_t next_random(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 33;
}

static void truncations(void **state)
{
    (void)state;
    struct tally t = {0};
    for (size_t f = 0; f < NFILES; f++) {
        size_t size;
        uint8_t *p = slurp(files[f], &size);
        for (size_t n = 0; n < size; n += n < 256 ? 1 : 37) try_bytes(p, n, &t);
        free(p);
    }
    /* The headers stand at the end: a shortened file has lost some. */
    assert_true(t.refused >= 1000);
    print_message("%u refused, %u opened\n", t.refused, t.opened);
}

static void byte_flips(void **state)
{
    (void)state;
    struct tally t = {0};
    uint64_t seed = 1;
    for (size_t f = 0; f < NFILES; f++) {
        size_t size;
        uint8_t *p = slurp(files[f], &size);
        for (int i = 0; i < FLIPS; i++) {
            size_t at[3];
            uint8_t old[3];
            for (int k = 0; k < 3; k++) {
                /* Every second one where it hurts: the ELF header and the section headers. */
                at[k] = next_random(&seed) % size;
                if (i & 1)
                    at[k] = i & 2 ? at[k] % 64 : size - 1 - at[k] % (size < 2048 ? size : 2048);
                old[k] = p[at[k]];
                p[at[k]] ^= (uint8_t)(1 + next_random(&seed) % 255);
            }
            try_bytes(p, size, &t);
            for (int k = 2; k >= 0; k--) p[at[k]] = old[k];
        }
        free(p);
    }
    assert_int_equal(t.refused + t.opened, FLIPS * NFILES);
    assert_true(t.refused > 100 && t.opened > 100);
    print_message("%u refused, %u opened\n", t.refused, t.opened);
}

/* Any bytes as code, in a cubin that is whole otherwise: flow and census must hold. */
static void random_code(void **state)
{
    (void)state;
    uint64_t seed = 7;
    struct cubin c;
    if (cubin_open_file(&c, files[1])) fail_msg("%s", err_msg());
    enum { INSNS = 4096 };
    uint8_t *code = malloc(INSNS * INSN_BYTES);
    assert_non_null(code);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < INSNS * INSN_BYTES; i++) code[i] = (uint8_t)next_random(&seed);
        /* Half of them branches with near targets, so that the graph is dense. */
        for (size_t i = 0; i < INSNS; i += 2) {
            uint64_t lo = 0x947 | (uint64_t)(next_random(&seed) & 0xf) << 12;
            int64_t d = (int64_t)(next_random(&seed) % (2 * INSNS)) - INSNS;
            uint64_t field = (uint64_t)(d * 4) & 0xffffffffffffff;
            lo |= (field & 0xff) << 16 | (field >> 8) << 34;
            uint64_t hi = (field >> 38) & 0x3ffff;
            hi |= UINT64_C(7) << 23;
            memcpy(code + i * INSN_BYTES, &lo, 8);
            memcpy(code + i * INSN_BYTES + 8, &hi, 8);
        }
        struct cubin_kernel k = c.kernels[0];
        struct census s;
        k.code = code;
        k.code_size = INSNS * INSN_BYTES;
        assert_int_equal(census_make(&s, &c, &k), OK);
        assert_int_equal(s.total + s.padding + s.dummies, INSNS);
        census_free(&s);
    }
    free(code);
    cubin_close(&c);
}

/* A ladder of branches that costs the search more than its budget: loops are given up, counts stay.
 */
static void search_is_bounded(void **state)
{
    (void)state;
    enum { INSNS = 1 << 17 };
    struct cubin c;
    if (cubin_open_file(&c, files[1])) fail_msg("%s", err_msg());
    uint8_t *code = calloc(INSNS, INSN_BYTES);
    assert_non_null(code);
    for (int64_t i = 0; i < INSNS; i++) {
        /* @P0 BRA to the start: one loop a branch, all nested in the same header... */
        int64_t d = (i & 1 ? -(i + 1) : (INSNS - 2 * i - 2)) * 4;
        uint64_t field = (uint64_t)d & 0xffffffffffffff;
        uint64_t lo = 0x0947 | (field & 0xff) << 16 | (field >> 8) << 34;
        uint64_t hi = ((field >> 38) & 0x3ffff) | UINT64_C(7) << 23;
        memcpy(code + i * INSN_BYTES, &lo, 8);
        memcpy(code + i * INSN_BYTES + 8, &hi, 8);
    }
    struct cubin_kernel k = c.kernels[0];
    struct census s;
    k.code = code;
    k.code_size = INSNS * INSN_BYTES;
    assert_int_equal(census_make(&s, &c, &k), OK);
    assert_int_equal(s.total + s.padding + s.dummies, INSNS);
    if (!s.loops_known) assert_int_equal(s.sum[CENSUS_LOOP], 0);
    census_free(&s);
    free(code);
    cubin_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncations),
        cmocka_unit_test(byte_flips),
        cmocka_unit_test(random_code),
        cmocka_unit_test(search_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
