/* Finding kernels: load order, descriptors against symbols and files, and what must be left out. */
#include "kernels/registry.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char CUBINS[] = "build/cubin";

static int order_of(const char *const *archs, int n, int sm, const char **best)
{
    int order[8], got = registry_load_order(archs, n, sm, order);
    for (int i = 0; i < got; i++) best[i] = archs[order[i]];
    return got;
}

static void load_order_is_exact_then_lower_minor(void **state)
{
    (void)state;
    static const char *const archs[] = {"80", "86", "90", "90a", "120", "121", "x", "100a"};
    const char *b[8];
    assert_int_equal(order_of(archs, 8, 90, b), 2);
    assert_string_equal(b[0], "90a");
    assert_string_equal(b[1], "90");
    assert_int_equal(order_of(archs, 8, 121, b), 2);
    assert_string_equal(b[0], "121");
    assert_string_equal(b[1], "120");
    assert_int_equal(order_of(archs, 8, 89, b), 2);
    assert_string_equal(b[0], "86");
    assert_string_equal(b[1], "80");
    assert_int_equal(order_of(archs, 8, 103, b), 0); /* a suffix runs on its own chip only */
    assert_int_equal(order_of(archs, 8, 75, b), 0);
}

static struct variant_desc good_desc(void)
{
    return (struct variant_desc){
        .abi = VARIANT_ABI,
        .size = sizeof(struct variant_desc),
        .name = "nb_kd8",
        .family = "q4k_gemm",
        .kd = 8,
        .threads = 256,
        .n_buffers = 1,
        .buffers = {{"x", 1024}},
    };
}

static enum status check(const struct variant_desc *d)
{
    return registry_check_desc(d, "nb_kd8_desc", "nb", "q4k_gemm");
}

static void a_descriptor_must_agree_with_its_file(void **state)
{
    (void)state;
    struct variant_desc d = good_desc();
    assert_int_equal(check(&d), OK);
    assert_int_equal(registry_check_desc(&d, "nb_kd8_desc", "nbx", "q4k_gemm"), ERR_FORMAT);
    assert_int_equal(registry_check_desc(&d, "nb_kd8_desc", "n", "q4k_gemm"), ERR_FORMAT);
    assert_int_equal(registry_check_desc(&d, "nb_kd4_desc", "nb", "q4k_gemm"), ERR_FORMAT);
    assert_int_equal(registry_check_desc(&d, "nb_kd8_desc", "nb", "ops"), ERR_FORMAT);
    d.abi = 2, assert_int_equal(check(&d), ERR_FORMAT), d = good_desc();
    d.size--, assert_int_equal(check(&d), ERR_FORMAT), d = good_desc();
    d.kd = 4, assert_int_equal(check(&d), ERR_FORMAT), d = good_desc();
    d.threads = 0, assert_int_equal(check(&d), ERR_FORMAT), d = good_desc();
    d.threads = 1025, assert_int_equal(check(&d), ERR_FORMAT), d = good_desc();
    d.tile_m = 1u << 31, assert_int_equal(check(&d), ERR_FORMAT), d = good_desc();
    d.n_buffers = 9, assert_int_equal(check(&d), ERR_FORMAT), d = good_desc();
    d.buffers[0].bytes = ~0u, assert_int_equal(check(&d), ERR_FORMAT), d = good_desc();
    memset(d.note, 'x', sizeof d.note), assert_int_equal(check(&d), ERR_FORMAT), d = good_desc();
    memset(d.name, 'n', sizeof d.name), assert_int_equal(check(&d), ERR_FORMAT);
}

static struct registry *open_arch(const char *arch, bool broken)
{
    struct registry *r = NULL;
    struct registry_options o = {.dir = CUBINS, .arch = arch, .include_broken = broken};
    if (registry_open(&o, &r) != OK) {
        print_message("no cubins for sm_%s here (%s)\n", arch, err_msg());
        skip();
    }
    return r;
}

static bool has_source(const struct variant *v)
{
    char path[256];
    snprintf(path, sizeof path, "kernels/%s/%s%s.cu", v->family, v->broken ? "broken/" : "",
             v->name);
    return access(path, R_OK) == 0;
}

static void every_kernel_is_what_its_file_says(const char *arch)
{
    struct registry *r = open_arch(arch, true);
    for (int i = 0; i < registry_notes(r); i++) print_message("%s\n", registry_note(r, i));
    for (int i = 0; i < registry_count(r); i++) {
        const struct variant *v = registry_get(r, i);
        assert_int_equal(v->index, i);
        assert_string_equal(v->kernel, v->desc.name);
        assert_true(has_source(v));
        assert_true(v->desc.note[0] != '\0');
        assert_ptr_equal(registry_find(r, v->kernel), v);
        assert_ptr_equal(registry_find_kd(r, v->family, v->name, v->kd) != NULL, true);
        assert_true(v->regs > 0 && v->regs <= 255);
        assert_true(v->cubin_hash != 0 && v->code_hash != 0);
        assert_int_equal(v->broken, v->desc.expect[0] != '\0');
        for (int j = 0; j < i; j++) assert_true(registry_get(r, j)->code_hash != v->code_hash);
    }
    registry_close(r);
}

static void kernels_of_sm_90a(void **state)
{
    (void)state;
    every_kernel_is_what_its_file_says("90a");
}

static void kernels_of_sm_121(void **state)
{
    (void)state;
    every_kernel_is_what_its_file_says("121");
}

static void the_gemm_ladder_is_complete(void **state)
{
    (void)state;
    static const char *const names[] = {"narrow",   "narrow_prefold", "wide", "wide_prefold",
                                        "wide_lds", "wide_32x64",     "nb",   "nb_rolled"};
    struct registry *r = open_arch("90a", false);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int kd = 4; kd <= 8; kd += 4) {
            const struct variant *v = registry_find_kd(r, "q4k_gemm", names[i], kd);
            assert_non_null(v);
            assert_false(v->broken);
            assert_int_equal(v->spill_bytes, 0);
        }
    assert_int_equal(registry_find(r, "wide_kd4")->dyn_smem, 73728);
    assert_int_equal(registry_find(r, "wide_kd8")->dyn_smem, 98304);
    assert_string_equal(registry_fallback(r, "q4k_gemm", 4)->kernel, "narrow_kd4");
    assert_string_equal(registry_fallback(r, "q4k_gemm", 8)->kernel, "narrow_kd8");
    assert_null(registry_find(r, "broken_lane_kd8"));
    registry_close(r);
}

static void cycling_stays_in_family_and_depth(void **state)
{
    (void)state;
    struct registry *r = open_arch("90a", false);
    const struct variant *start = registry_find(r, "nb_kd8"), *v = start;
    int seen = 0;
    do {
        v = registry_cycle(r, v, 1);
        assert_int_equal(v->kd, 8);
        assert_string_equal(v->family, "q4k_gemm");
        assert_ptr_equal(registry_cycle(r, registry_cycle(r, v, 1), -1), v);
        seen++;
    } while (v != start && seen < 100);
    assert_true(seen >= 8 && seen < 100);
    assert_string_equal(registry_cycle_kd(r, start, 1)->kernel, "nb_kd4");
    assert_string_equal(registry_cycle_kd(r, registry_cycle_kd(r, start, 1), 1)->kernel, "nb_kd8");
    registry_close(r);
}

static void copy_cut(const char *from, const char *to, long keep)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    for (int c; keep-- > 0 && (c = fgetc(in)) != EOF;) fputc(c, out);
    fclose(in);
    fclose(out);
}

/* A user's own cubins: a flat folder, everything by the descriptor. */
static void own_variants_come_from_a_flat_folder(void **state)
{
    (void)state;
    char dir[] = "/tmp/own-XXXXXX", file[64], other[64];
    struct registry *r = open_arch("90a", false);
    int count = registry_count(r);
    registry_close(r);
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof file, "%s/broken_lane.cubin", dir);
    snprintf(other, sizeof other, "%s/nb.cubin", dir);
    copy_cut("build/cubin/sm_90a/q4k_gemm/nb.cubin", other, 1 << 24);
    struct registry_options o = {.dir = "build/cubin", .arch = "90a", .extra = dir};
    /* A name that is taken, then one that is marked broken: both are left out in words. */
    copy_cut("build/cubin/sm_90a/q4k_gemm/broken/broken_lane.cubin", file, 1 << 24);
    assert_int_equal(registry_open(&o, &r), OK);
    assert_int_equal(registry_count(r), count);
    assert_true(registry_notes(r) >= 2);
    registry_close(r);
    /* Without the tree's own ones under that name it is taken, family and all. */
    char tree[] = "/tmp/tree-XXXXXX", sub[80], kept[120];
    assert_non_null(mkdtemp(tree));
    snprintf(sub, sizeof sub, "%s/sm_90a", tree);
    assert_int_equal(mkdir(sub, 0700), 0);
    snprintf(sub, sizeof sub, "%s/sm_90a/q4k_gemm", tree);
    assert_int_equal(mkdir(sub, 0700), 0);
    snprintf(kept, sizeof kept, "%s/narrow.cubin", sub);
    copy_cut("build/cubin/sm_90a/q4k_gemm/narrow.cubin", kept, 1 << 24);
    o.dir = tree;
    assert_int_equal(registry_open(&o, &r), OK);
    const struct variant *v = registry_find(r, "nb_kd8");
    assert_non_null(v);
    assert_string_equal(v->family, "q4k_gemm");
    assert_string_equal(v->arch, "90a");
    assert_string_equal(v->path, other);
    registry_close(r);
    o.extra = "/tmp/no-such-folder";
    assert_int_equal(registry_open(&o, &r), ERR_USAGE);
    unlink(kept);
    rmdir(sub);
    snprintf(sub, sizeof sub, "%s/sm_90a", tree);
    rmdir(sub);
    rmdir(tree);
    unlink(file);
    unlink(other);
    rmdir(dir);
}

static void damaged_and_misplaced_files_are_left_out_in_words(void **state)
{
    (void)state;
    registry_close(open_arch("90a", false));
    char dir[] = "/tmp/sasstop-reg-XXXXXX", sub[64], path[128];
    assert_non_null(mkdtemp(dir));
    snprintf(sub, sizeof sub, "%s/sm_90a", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    snprintf(sub, sizeof sub, "%s/sm_90a/q4k_gemm", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    static const struct {
        const char *from, *to;
        long keep;
    } files[] = {
        {"q4k_gemm/nb.cubin", "nb.cubin", 1 << 30},
        {"q4k_gemm/wide.cubin", "wide.cubin", 3000},                         /* cut short */
        {"q4k_gemm/wide.cubin", "other.cubin", 1 << 30},                     /* another name */
        {"q4k_gemm/broken/broken_lane.cubin", "broken_lane.cubin", 1 << 30}, /* not in broken/ */
        {"q4k_gemm/nb.cubin", "empty.cubin", 0},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char from[128];
        snprintf(from, sizeof from, "%s/sm_90a/%s", CUBINS, files[i].from);
        snprintf(path, sizeof path, "%s/%s", sub, files[i].to);
        copy_cut(from, path, files[i].keep);
    }
    struct registry *r = NULL;
    struct registry_options o = {.dir = dir, .sm = 90};
    assert_int_equal(registry_open(&o, &r), OK);
    assert_int_equal(registry_count(r), 2); /* nb_kd4, nb_kd8 */
    assert_int_equal(registry_notes(r), 5); /* one each, two for the two kernels of other.cubin */
    registry_close(r);
    o.sm = 121;
    assert_int_equal(registry_open(&o, &r), ERR_UNAVAILABLE);
    assert_non_null(strstr(err_msg(), "sm_121"));
    assert_non_null(strstr(err_msg(), "sm_90a"));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", sub, files[i].to);
        unlink(path);
    }
    rmdir(sub);
    snprintf(sub, sizeof sub, "%s/sm_90a", dir);
    rmdir(sub);
    rmdir(dir);
}

/* A list with no device: every architecture, and one's own kernels whichever they are for. */
static void a_list_of_every_architecture_leaves_none_out(void **state)
{
    (void)state;
    registry_close(open_arch("90a", false));
    char dir[] = "/tmp/sasstop-own-XXXXXX", tree[] = "/tmp/sasstop-reg-XXXXXX", path[120], sub[80];
    const char *archs[] = {"sm_121", "sm_90a"};
    assert_non_null(mkdtemp(dir));
    assert_non_null(mkdtemp(tree));
    for (int i = 0; i < 2; i++) {
        snprintf(sub, sizeof sub, "%s/%s", tree, archs[i]);
        assert_int_equal(mkdir(sub, 0700), 0);
        snprintf(sub, sizeof sub, "%s/%s/q4k_gemm", tree, archs[i]);
        assert_int_equal(mkdir(sub, 0700), 0);
        snprintf(path, sizeof path, "%s/nb.cubin", sub);
        copy_cut("build/cubin/sm_90a/q4k_gemm/nb.cubin", path, 1 << 24);
    }
    snprintf(path, sizeof path, "%s/wide.cubin", dir);
    copy_cut("build/cubin/sm_90a/q4k_gemm/wide.cubin", path, 1 << 24);
    struct registry *r;
    struct registry_options o = {.dir = tree, .extra = dir};
    assert_int_equal(registry_open(&o, &r), OK); /* the highest alone */
    assert_int_equal(registry_count(r), 2);
    assert_int_equal(registry_notes(r), 1);
    assert_non_null(strstr(registry_note(r, 0), "for sm_90a, not for sm_121"));
    assert_non_null(strstr(registry_note(r, 0), "--arch 90a"));
    registry_close(r);
    o.every_arch = true;
    assert_int_equal(registry_open(&o, &r), OK);
    assert_int_equal(registry_notes(r), 0);
    assert_non_null(registry_find(r, "wide_kd4"));
    assert_string_equal(registry_get(r, 0)->kernel, registry_get(r, 1)->kernel);
    assert_string_not_equal(registry_get(r, 0)->arch, registry_get(r, 1)->arch);
    registry_close(r);
    unlink(path);
    rmdir(dir);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s/q4k_gemm/nb.cubin", tree, archs[i]);
        unlink(path);
        *strrchr(path, '/') = '\0';
        rmdir(path);
        *strrchr(path, '/') = '\0';
        rmdir(path);
    }
    rmdir(tree);
}

static void no_folder_says_what_to_do(void **state)
{
    (void)state;
    struct registry *r = NULL;
    struct registry_options o = {.dir = "/no/such/folder"};
    assert_int_equal(registry_open(&o, &r), ERR_UNAVAILABLE);
    assert_null(r);
    assert_non_null(strstr(err_msg(), "make cubins"));
}

/* This program lies in build/unit: no cubin folder beside it, one beside its folder. */
static void programs_of_a_subfolder_find_the_cubins(void **state)
{
    (void)state;
    const char *env = getenv("SASSTOP_CUBINS");
    char *kept = env ? strdup(env) : NULL, own[4096];
    struct registry *r = NULL;
    struct registry_options o = {.arch = "90a"};
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 8);
    assert_true(n > 0);
    own[n] = '\0';
    *strrchr(own, '/') = '\0';
    strcpy(strrchr(own, '/'), "/cubin");
    unsetenv("SASSTOP_CUBINS");
    enum status st = registry_open(&o, &r);
    if (access(own, R_OK) == 0) {
        assert_int_equal(st, OK);
        assert_string_equal(registry_dir(r), own);
    } else {
        assert_int_equal(st, ERR_UNAVAILABLE);
    }
    registry_close(r);
    if (kept) setenv("SASSTOP_CUBINS", kept, 1);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_order_is_exact_then_lower_minor),
        cmocka_unit_test(a_descriptor_must_agree_with_its_file),
        cmocka_unit_test(kernels_of_sm_90a),
        cmocka_unit_test(kernels_of_sm_121),
        cmocka_unit_test(the_gemm_ladder_is_complete),
        cmocka_unit_test(cycling_stays_in_family_and_depth),
        cmocka_unit_test(own_variants_come_from_a_flat_folder),
        cmocka_unit_test(damaged_and_misplaced_files_are_left_out_in_words),
        cmocka_unit_test(a_list_of_every_architecture_leaves_none_out),
        cmocka_unit_test(no_folder_says_what_to_do),
        cmocka_unit_test(programs_of_a_subfolder_find_the_cubins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
