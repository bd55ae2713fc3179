/* Censuses: exact counts of the committed cubins, sums over every cubin at hand, loops, occupancy.
 */
#include "sass_view/census.h"
#include "sass_view/occupancy.h"
#include "tests/lib/sass_lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void census_of(struct census *s, const char *path, const char *kernel)
{
    struct cubin c;
    if (cubin_open_file(&c, path)) fail_msg("%s", err_msg());
    const struct cubin_kernel *k = cubin_find_kernel(&c, kernel);
    if (!k) fail_msg("%s: no %s", path, kernel);
    if (census_make(s, &c, k)) fail_msg("%s", err_msg());
    cubin_close(&c); /* a census outlives its cubin */
}

static void counts_of_tiny(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        uint32_t total, padding, loop;
    } rows[] = {
        {"tests/fixtures/sass/tiny_sm_80.cubin", 54, 10, 24},
        {"tests/fixtures/sass/tiny_sm_90a.cubin", 59, 13, 22},
        {"tests/fixtures/sass/tiny_sm_121.cubin", 51, 13, 18},
    };
    static const char *const once[] = {"IMMA.16832.S8.S8", "LDSM.x4", "LDS.32",  "LDS.64",
                                       "STS.128",          "STS.64",  "LDG.128", "LDG.64"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct census s;
        census_of(&s, rows[i].path, "tiny_kd4");
        assert_int_equal(s.total, rows[i].total);
        assert_int_equal(s.padding, rows[i].padding);
        assert_int_equal(s.unknown, 0);
        assert_int_equal(s.nloops, 1);
        assert_int_equal(s.sum[CENSUS_LOOP], rows[i].loop);
        assert_int_equal(s.sum[CENSUS_HOT], rows[i].loop);
        assert_int_equal(s.hot.insns, rows[i].loop);
        for (size_t k = 0; k < sizeof once / sizeof once[0]; k++)
            assert_int_equal(census_count(&s, once[k], CENSUS_HOT), 1);
        assert_int_equal(census_count(&s, "LDS", CENSUS_ALL), 2);
        assert_int_equal(census_count(&s, "LDSM", CENSUS_ALL), 1);
        assert_int_equal(census_count(&s, "LD", CENSUS_ALL), 0);
        assert_int_equal(census_count(&s, "IMMA", CENSUS_LOOP), 1);
        assert_int_equal(census_count(&s, "STG", CENSUS_LOOP), 0);
        assert_int_equal(census_count(&s, "BAR.SYNC", CENSUS_HOT), 2);
        assert_int_equal(s.classes[INSN_CLASS_TENSOR][CENSUS_ALL], 1);
        assert_int_equal(s.classes[INSN_CLASS_SHARED][CENSUS_HOT], 5);
        assert_int_equal(s.classes[INSN_CLASS_GLOBAL][CENSUS_ALL], 3);
        assert_int_equal(s.smem, 6144);
        assert_int_equal(s.spill_bytes, 0);
        census_free(&s);
    }
}

static void loops_of_flow(void **state)
{
    (void)state;
    static const char path[] = "tests/fixtures/sass/flow_sm_90a.cubin";
    static const struct {
        const char *kernel;
        uint32_t loops;
        int depth;
    } rows[] = {
        {"nested", 4, 3},    {"straight", 0, 0}, {"calls", 1, 1},
        {"slow_path", 0, 0}, {"branches", 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct census s;
        census_of(&s, path, rows[i].kernel);
        assert_true(s.loops_known);
        assert_int_equal(s.nloops, rows[i].loops);
        assert_int_equal(s.hot.depth, rows[i].depth);
        assert_int_equal(s.hot.insns, s.sum[CENSUS_HOT]);
        census_free(&s);
    }
}

static void nesting_is_a_tree(void **state)
{
    (void)state;
    struct cubin c;
    struct flow f;
    if (cubin_open_file(&c, "tests/fixtures/sass/flow_sm_90a.cubin")) fail_msg("%s", err_msg());
    assert_int_equal(flow_make(&f, &c, cubin_find_kernel(&c, "nested")), OK);
    int by_depth[4] = {0};
    for (uint32_t i = 0; i < f.nloops; i++) {
        const struct flow_loop *l = &f.loops[i];
        by_depth[l->depth]++;
        if (l->depth == 1)
            assert_int_equal(l->parent, -1);
        else
            assert_int_equal(f.loops[l->parent].depth, l->depth - 1);
        if (l->parent >= 0) assert_true(l->insns < f.loops[l->parent].insns);
        assert_int_equal(l->innermost, l->depth == 3 || i + 1 == f.nloops);
    }
    assert_int_equal(by_depth[1], 2);
    assert_int_equal(by_depth[2], 1);
    assert_int_equal(by_depth[3], 1);
    assert_true(flow_in_loop(&f, f.hot, 0));
    assert_false(flow_in_loop(&f, 0, f.hot));
    assert_false(flow_in_loop(&f, -1, 0));
    flow_free(&f);
    cubin_close(&c);
}

struct sums {
    size_t kernels, insns, unknown;
};

static void check_sums(const struct census *s)
{
    for (int scope = 0; scope < CENSUS_SCOPES; scope++) {
        uint32_t rows = 0, classes = 0;
        for (size_t i = 0; i < s->nrows; i++) rows += s->rows[i].n[scope];
        for (int c = 0; c < INSN_CLASSES; c++) classes += s->classes[c][scope];
        assert_int_equal(rows, s->sum[scope]);
        assert_int_equal(classes, s->sum[scope]);
    }
    assert_int_equal(s->sum[CENSUS_ALL], s->total);
    assert_true(s->sum[CENSUS_HOT] <= s->sum[CENSUS_LOOP] && s->sum[CENSUS_LOOP] <= s->total);
    for (size_t i = 1; i < s->nrows; i++) {
        assert_true(s->rows[i - 1].n[0] >= s->rows[i].n[0]);
        assert_string_not_equal(s->rows[i - 1].key, s->rows[i].key);
    }
}

static void sum_file(const char *path, void *ctx)
{
    struct sums *t = ctx;
    struct cubin c;
    if (cubin_open_file(&c, path)) fail_msg("%s", err_msg());
    for (size_t i = 0; i < c.nkernels; i++) {
        struct census s;
        if (census_make(&s, &c, &c.kernels[i])) fail_msg("%s: %s", path, err_msg());
        check_sums(&s);
        assert_int_equal(s.total + s.padding + s.dummies, c.kernels[i].code_size / INSN_BYTES);
        assert_true(s.regs > 0 && s.regs <= 255 && s.smem >= 0 && s.spill_bytes >= 0);
        if (s.unknown) print_message("%s %s: %u unknown\n", path, s.kernel, s.unknown);
        t->kernels++;
        t->insns += s.total;
        t->unknown += s.unknown;
        census_free(&s);
    }
    cubin_close(&c);
}

static void sums_everywhere(void **state)
{
    (void)state;
    struct sums t = {0};
    size_t files = lab_each_cubin(sum_file, &t);
    print_message("%zu cubins, %zu kernels, %zu instructions, %zu unknown\n", files, t.kernels,
                  t.insns, t.unknown);
    assert_true(files >= 4 && t.kernels >= 11);
    assert_int_equal(t.unknown, 0);
}

static void occupancy_by_hand(void **state)
{
    (void)state;
    static const struct {
        int sm, regs, smem, threads, blocks;
        enum occupancy_limit limit;
    } rows[] = {
        {90, 128, 0, 256, 2, OCC_LIMIT_REGS},         /* 4096 a warp: 4 in each sub-core */
        {90, 123, 0, 256, 2, OCC_LIMIT_REGS},         /* rounded up to 4096 a warp */
        {90, 113, 40 * 1024, 256, 2, OCC_LIMIT_REGS}, /* 3840 a warp: still 4 */
        {121, 96, 48 * 1024, 256, 2, OCC_LIMIT_REGS}, /* 3072: 5 a sub-core, 20 warps, 2 blocks */
        {121, 64, 49 * 1024, 128, 2, OCC_LIMIT_SMEM}, /* two of 50 KiB fill 100 KiB */
        {121, 64, 50 * 1024, 128, 1, OCC_LIMIT_SMEM},
        {90, 32, 0, 1024, 2, OCC_LIMIT_REGS},
        {86, 32, 0, 1024, 1, OCC_LIMIT_THREADS},
        {86, 16, 0, 32, 16, OCC_LIMIT_BLOCKS},
        {89, 16, 0, 32, 24, OCC_LIMIT_BLOCKS},
        {80, 0, 163 * 1024, 128, 1, OCC_LIMIT_SMEM},  /* registers not known: no limit */
        {80, 64, 164 * 1024, 128, 0, OCC_LIMIT_SMEM}, /* more than a block may have */
        {90, 255, 0, 512, 0, OCC_LIMIT_REGS},         /* 8192 a warp, 16 warps: over 64 K */
        {90, 32, 0, 2048, 0, OCC_LIMIT_THREADS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct chip_limits *lim = chip_limits_find(rows[i].sm);
        assert_non_null(lim);
        struct occupancy o = occupancy_compute(lim, rows[i].regs, rows[i].smem, rows[i].threads);
        if (o.blocks != rows[i].blocks || o.limit != rows[i].limit)
            fail_msg("row %zu: %d blocks by %s", i, o.blocks, occupancy_limit_name(o.limit));
        assert_int_equal(o.warps, o.blocks * ((rows[i].threads + 31) / 32));
        assert_true(o.fraction >= 0 && o.fraction <= 1);
    }
    assert_null(chip_limits_find(52));
}

static void macs(void **state)
{
    (void)state;
    struct census_row rows[] = {
        {.key = "IMMA.16832.S8.S8", .cls = INSN_CLASS_TENSOR, .n = {64, 64, 64}},
        {.key = "HGMMA.64x128x16.F32", .cls = INSN_CLASS_TENSOR, .n = {2, 0, 0}},
        {.key = "FADD", .cls = INSN_CLASS_FLOAT, .n = {9, 9, 9}},
        {.key = "UTCHMMA", .cls = INSN_CLASS_TENSOR, .n = {0, 0, 0}},
    };
    struct census s = {.rows = rows, .nrows = 4};
    assert_int_equal(census_macs(&s, CENSUS_HOT), 64 * 16 * 8 * 32);
    assert_int_equal(census_macs(&s, CENSUS_ALL), 64 * 16 * 8 * 32 + 2 * 64 * 128 * 16 / 4);
    rows[3].n[CENSUS_HOT] = 1; /* no shape in its key: nothing is said */
    assert_int_equal(census_macs(&s, CENSUS_HOT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_tiny),    cmocka_unit_test(loops_of_flow),
        cmocka_unit_test(nesting_is_a_tree), cmocka_unit_test(sums_everywhere),
        cmocka_unit_test(occupancy_by_hand), cmocka_unit_test(macs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
