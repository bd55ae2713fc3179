/*
 * What the ladder's machine code must be made of, read out of the cubins: the class counts and the
 * order that the steps it stands for are about. Held for the compiler that they were seen with;
 * with another one only matrix instructions are held, and the rest is reported. Where a step's own
 * figure isn't what this compiler makes of it, what is held is the truth, and the rung's file says
 * why.
 */
#include "kernels/registry.h"
#include "sass_view/census.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char TOOLKIT[] = "13.0"; /* nvcc 13.0.88 */

struct fact {
    const char *file, *kernel, *key;
    /* Hot loop: a super-block for nb_kd8, KD chunks for narrow, a chunk for wide and mmq_r1. */
    uint32_t n;
    bool any_compiler;
    enum census_scope in;
};

static const struct fact facts[] = {
    /* Each word of nibbles read once; scales of two tokens; two {dsv, dmv}; A fragments. */
    {"nb", "nb_kd8", "LDS.32", 16, false, CENSUS_HOT},
    {"nb", "nb_kd8", "LDS.64", 32, false, CENSUS_HOT},
    {"nb", "nb_kd8", "LDS.128", 16, false, CENSUS_HOT},
    {"nb", "nb_kd8", "LDSM.x4", 32, true, CENSUS_HOT},
    {"nb", "nb_kd8", "IMMA", 64, true, CENSUS_HOT},
    {"nb", "nb_kd4", "LDS.32", 8, false, CENSUS_HOT},
    /* Rolled: a chunk. */
    {"nb_rolled", "nb_rolled_kd8", "IMMA", 8, true, CENSUS_HOT},
    /* r30: the words were read once already. */
    {"nb_swar", "nb_swar_kd8", "LDS.32", 16, false, CENSUS_HOT},
    {"nb_swar", "nb_swar_kd8", "LDS.64", 32, false, CENSUS_HOT},
    {"nb_swar", "nb_swar_kd8", "LDS.128", 16, false, CENSUS_HOT},
    {"nb_swar", "nb_swar_kd8", "LDSM.x4", 32, true, CENSUS_HOT},
    {"nb_swar", "nb_swar_kd8", "IMMA", 64, true, CENSUS_HOT},
    /* r31: 32 8-byte reads of token scales become 16 of 16 bytes, beside the 16 of rows' scales. */
    {"nb_qmajor", "nb_qmajor_kd8", "LDS.64", 0, false, CENSUS_HOT},
    {"nb_qmajor", "nb_qmajor_kd8", "LDS.128", 32, false, CENSUS_HOT},
    {"nb_qmajor", "nb_qmajor_kd8", "LDS.32", 16, false, CENSUS_HOT},
    {"nb_qmajor", "nb_qmajor_kd4", "LDS.128", 16, false, CENSUS_HOT},
    {"nb_qmajor", "nb_qmajor_kd8", "IMMA", 64, true, CENSUS_HOT},
    /* Times 8 warps: 72 ldmatrix a block and chunk, 64 without those of B, 48 as 32 x 64. */
    {"wide", "wide_kd8", "LDSM.x4", 9, true, CENSUS_HOT},
    {"wide", "wide_kd4", "LDSM.x4", 9, true, CENSUS_HOT},
    {"wide", "wide_kd8", "IMMA", 16, true, CENSUS_HOT},
    {"wide_prefold", "wide_prefold_kd8", "LDSM.x4", 9, true, CENSUS_HOT},
    {"wide_lds", "wide_lds_kd8", "LDSM.x4", 8, true, CENSUS_HOT},
    {"wide_lds", "wide_lds_kd8", "LDS.32", 4, false, CENSUS_HOT},
    {"wide_32x64", "wide_32x64_kd8", "LDSM.x4", 6, true, CENSUS_HOT},
    {"wide_32x64", "wide_32x64_kd4", "LDSM.x4", 6, true, CENSUS_HOT},
    {"wide_32x64", "wide_32x64_kd8", "IMMA", 16, true, CENSUS_HOT},
    /* The fold: FMUL 32 -> 20 a chunk; the conversions were shared already. */
    {"narrow_prefold", "narrow_prefold_kd4", "FMUL", 4 * 32, false, CENSUS_HOT},
    {"narrow_prefold", "narrow_prefold_kd4", "I2FP", 4 * 20, false, CENSUS_HOT},
    {"narrow", "narrow_kd4", "FMUL", 4 * 20, false, CENSUS_HOT},
    {"narrow", "narrow_kd4", "I2FP", 4 * 20, false, CENSUS_HOT},
    {"narrow", "narrow_kd4", "IMMA", 16, true, CENSUS_HOT},
    {"wide_prefold", "wide_prefold_kd4", "FMUL", 128, false, CENSUS_HOT},
    {"wide", "wide_kd4", "FMUL", 80, false, CENSUS_HOT},
    /* The legacy kernel moves words only, and multiplies the min term out. */
    {"mmq_r1", "mmq_r1_kd8", "LDSM", 0, true, CENSUS_ALL},
    {"mmq_r1", "mmq_r1_kd8", "STS.128", 0, true, CENSUS_ALL},
    {"mmq_r1", "mmq_r1_kd8", "LDG.128", 0, true, CENSUS_ALL},
    {"mmq_r1", "mmq_r1_kd8", "FMUL", 32, false, CENSUS_HOT},
    {"mmq_r1", "mmq_r1_kd8", "IMMA", 4, true, CENSUS_HOT},
    /* The first wide form: no ldmatrix, no fold: A words 32, their sums 16, B words 4. */
    {"wide_r7", "wide_r7_kd8", "LDSM", 0, true, CENSUS_ALL},
    {"wide_r7", "wide_r7_kd8", "LDS.32", 52, false, CENSUS_HOT},
    {"wide_r7", "wide_r7_kd8", "FMUL", 128, false, CENSUS_HOT},
    {"wide_r7", "wide_r7_kd8", "IMMA", 16, true, CENSUS_HOT},
    /* r20 moves loads and nothing else: the loops hold what wide's hold. */
    {"wide_split", "wide_split_kd8", "LDSM.x4", 9, true, CENSUS_HOT},
    {"wide_split", "wide_split_kd8", "IMMA", 16, true, CENSUS_HOT},
    {"wide_split", "wide_split_kd8", "LDG.64", 20, true, CENSUS_LOOP},
    {"wide_split", "wide_split_kd8", "STS.128", 16, false, CENSUS_LOOP},
    {"wide_split", "wide_split_kd8", "STS.64", 8, false, CENSUS_LOOP},
    {"wide", "wide_kd8", "LDG.64", 20, true, CENSUS_LOOP},
    {"wide", "wide_kd8", "STS.128", 16, false, CENSUS_LOOP},
    {"wide", "wide_kd8", "STS.64", 8, false, CENSUS_LOOP},
    /* r18: 8 loads of expanded weights and one of the header, instead of 4 and one. */
    {"wide_preb", "wide_preb_kd8", "LDG.128", 9, true, CENSUS_LOOP},
    {"wide", "wide_kd8", "LDG.128", 5, true, CENSUS_LOOP},
    {"wide_preb", "wide_preb_kd8", "LDSM.x4", 9, true, CENSUS_HOT},
    /* A chunk of 40 bytes is 10 copies; four chunks a thread at KD 8, here and before the loop. */
    {"wide_cpasync", "wide_cpasync_kd8", "LDGSTS.32", 40, true, CENSUS_LOOP},
    {"wide_cpasync", "wide_cpasync_kd8", "LDG.64", 0, true, CENSUS_ALL},
    {"wide_cpasync", "wide_cpasync_kd8", "LDSM.x4", 9, true, CENSUS_HOT},
    /* Twice the chains; a fragment of A serves four of B instead of two. */
    {"wide_xtile", "wide_xtile_kd4", "IMMA", 32, true, CENSUS_HOT},
    {"wide_xtile", "wide_xtile_kd4", "LDSM.x4", 10, true, CENSUS_HOT},
    {"wide_jtile", "wide_jtile_kd4", "IMMA", 32, true, CENSUS_HOT},
    {"wide_jtile", "wide_jtile_kd4", "LDSM.x4", 10, true, CENSUS_HOT},
    /* Q6_K, a chunk: two k16 products a tile. Transposed, scales of two rows instead of four, and
     * a read of token scales a tile instead of one for two. */
    {"q6k_prefold", "q6k_prefold_kd8", "IMMA", 32, true, CENSUS_HOT},
    {"q6k_wide", "q6k_wide_kd8", "IMMA", 32, true, CENSUS_HOT},
    {"q6k_wide", "q6k_wide_kd8", "LDSM.x4", 9, true, CENSUS_HOT},
    {"q6k_wide", "q6k_wide_kd8", "LDS.128", 10, false, CENSUS_HOT},
    {"q6k_bt", "q6k_bt_kd8", "IMMA", 32, true, CENSUS_HOT},
    {"q6k_bt", "q6k_bt_kd8", "LDSM.x4", 9, true, CENSUS_HOT},
    {"q6k_bt", "q6k_bt_kd8", "LDS.128", 16, false, CENSUS_HOT},
    {"q6k_bt", "q6k_bt_kd8", "LDS.64", 2, false, CENSUS_HOT},
    {"q6k_t64", "q6k_t64_kd8", "IMMA", 16, true, CENSUS_HOT},
    {"q6k_t64", "q6k_t64_kd8", "LDSM.x4", 5, true, CENSUS_HOT},
};

/* Skips the test where there are no cubins of this architecture. */
static void open_rung(struct cubin *c, struct census *s, const char *arch, const char *file,
                      const char *kernel)
{
    char path[128];
    snprintf(path, sizeof path, "build/cubin/sm_%s/%s/%s.cubin", arch,
             strncmp(file, "q6k", 3) ? "q4k_gemm" : "q6k_gemm", file);
    if (cubin_open_file(c, path) != OK) {
        print_message("%s\n", err_msg());
        skip();
    }
    const struct cubin_kernel *k = cubin_find_kernel(c, kernel);
    assert_non_null(k);
    assert_int_equal(census_make(s, c, k), OK);
    assert_true(s->loops_known);
    assert_int_equal(s->unknown, 0);
}

static void check_arch(const char *arch)
{
    int held = 0, told = 0;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const struct fact *f = &facts[i];
        struct cubin c;
        struct census s;
        open_rung(&c, &s, arch, f->file, f->kernel);
        uint32_t n = census_count(&s, f->key, f->in);
        if (f->any_compiler || !strcmp(c.toolkit, TOOLKIT)) {
            if (n != f->n)
                print_message("%s sm_%s: %s %u, should be %u\n", f->kernel, arch, f->key, n, f->n);
            assert_int_equal(n, f->n);
            held++;
        } else if (n != f->n) {
            print_message("toolkit %s: %s %s %u, was %u with %s\n", c.toolkit, f->kernel, f->key, n,
                          f->n, TOOLKIT);
            told++;
        }
        census_free(&s);
        cubin_close(&c);
    }
    assert_true(held > 0);
    if (told) print_message("%d facts not held: another compiler\n", told);
}

static void ladder_on_sm_90a(void **state)
{
    (void)state;
    check_arch("90a");
}

static void ladder_on_sm_121(void **state)
{
    (void)state;
    check_arch("121");
}

/* ---- the order of staging: what r20 is about ---- */

struct staging {
    uint32_t turns;  /* activation loads that come right after a store to shared memory */
    uint32_t behind; /* activation loads behind the hot loop: ahead of the barrier */
};

static struct staging staging_of(const char *arch, const char *file, const char *kernel)
{
    struct cubin c;
    struct census s;
    struct staging out = {0};
    bool after_store = false;
    open_rung(&c, &s, arch, file, kernel);
    const struct cubin_kernel *k = cubin_find_kernel(&c, kernel);
    for (uint32_t at = 0; at < k->code_size; at += INSN_BYTES) {
        struct insn in;
        insn_decode(decoder_get(c.sm), k->code + at, at, &in);
        if (!strncmp(in.key, "STS", 3)) after_store = true;
        if (strcmp(in.key, "LDG.64")) continue;
        out.turns += after_store;
        out.behind += at > s.hot.last;
        after_store = false;
    }
    census_free(&s);
    cubin_close(&c);
    return out;
}

static void staging_order(void **state)
{
    static const char *const archs[] = {"90a", "121"};
    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        /* One chunk at a time: a load waits behind the stores of the one before, three times. */
        struct staging serial = staging_of(archs[i], "wide_serial", "wide_serial_kd8");
        assert_true(serial.turns >= 3);
        assert_int_equal(serial.behind, 0);
        /* The compiler gathers the loads of a batch by itself. */
        struct staging wide = staging_of(archs[i], "wide", "wide_kd8");
        assert_true(wide.turns <= 1);
        assert_int_equal(wide.behind, 0);
        /* Split: the 20 loads stand behind the work on the batch before. */
        struct staging split = staging_of(archs[i], "wide_split", "wide_split_kd8");
        assert_int_equal(split.behind, 20);
    }
}

/* ---- what the descriptors say ---- */

static struct registry *open_arch(const char *arch)
{
    struct registry_options o = {.dir = "build/cubin", .arch = arch};
    struct registry *r = NULL;
    if (registry_open(&o, &r) != OK) {
        print_message("%s\n", err_msg());
        skip();
    }
    return r;
}

/* Each rung is different code, or it is no rung. */
static void no_two_rungs_share_code(void **state)
{
    static const char *const archs[] = {"90a", "121"};
    (void)state;
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++) {
        struct registry *r = open_arch(archs[a]);
        int rungs = 0;
        for (int i = 0; i < registry_count(r); i++) {
            const struct variant *v = registry_get(r, i);
            rungs += !strcmp(v->family, "q4k_gemm");
            for (int j = 0; j < i; j++) {
                if (registry_get(r, j)->code_hash != v->code_hash) continue;
                print_message("%s and %s are the same code\n", registry_get(r, j)->kernel,
                              v->kernel);
                fail();
            }
        }
        assert_true(rungs >= 36);
        registry_close(r);
    }
}

static void every_parent_is_a_rung(void **state)
{
    (void)state;
    struct registry *r = open_arch("90a");
    int roots = 0;
    for (int i = 0; i < registry_count(r); i++) {
        const struct variant *v = registry_get(r, i);
        if (strcmp(v->family, "q4k_gemm") && strcmp(v->family, "q6k_gemm")) continue;
        assert_true(v->desc.note[0]);
        if (!v->desc.parent[0]) {
            roots++;
            continue;
        }
        bool there = false;
        for (int j = 0; j < registry_count(r); j++) {
            const struct variant *p = registry_get(r, j);
            there |= !strcmp(p->family, v->family) && !strcmp(p->name, v->desc.parent);
        }
        if (!there) print_message("%s: parent %s is not there\n", v->kernel, v->desc.parent);
        assert_true(there);
        /* The texts give r18 and r31 no verdict that is known here. */
        bool told = strcmp(v->desc.step, "r18") && strcmp(v->desc.step, "r31");
        if (v->desc.step[0] && told) assert_true(v->desc.verdict[0]);
    }
    assert_true(roots > 0);
    registry_close(r);
}

/* Sums of the named buffers; 99 KB (101,376) is what a GB10 grants. */
static void shared_memory_is_what_the_ladder_says(void **state)
{
    static const struct {
        const char *kernel;
        uint32_t bytes;
    } sums[] = {
        {"wide_kd4", 73728},         {"wide_kd8", 98304},       {"wide_32x64_kd8", 98304},
        {"wide_split_kd8", 98304},   {"wide_preb_kd8", 98304},  {"wide_r7_kd4", 98304},
        {"wide_r7_kd8", 139264},     {"wide_xtile_kd4", 94208}, {"wide_jtile_kd4", 77824},
        {"wide_cpasync_kd4", 94208}, {"nb_kd8", 43008},         {"nb_pad_kd8", 45056},
        {"nb_pad_a_kd8", 53248},     {"nb_qmajor_kd8", 43008},
    };
    (void)state;
    struct registry *r = open_arch("90a");
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const struct variant *v = registry_find(r, sums[i].kernel);
        assert_non_null(v);
        if (v->dyn_smem != sums[i].bytes)
            print_message("%s: %u bytes, should be %u\n", v->kernel, v->dyn_smem, sums[i].bytes);
        assert_int_equal(v->dyn_smem, sums[i].bytes);
        assert_int_equal(v->dyn_smem, variant_smem(&v->desc));
        assert_int_equal(v->spill_bytes, 0);
    }
    registry_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ladder_on_sm_90a),
        cmocka_unit_test(ladder_on_sm_121),
        cmocka_unit_test(staging_order),
        cmocka_unit_test(no_two_rungs_share_code),
        cmocka_unit_test(every_parent_is_a_rung),
        cmocka_unit_test(shared_memory_is_what_the_ladder_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
