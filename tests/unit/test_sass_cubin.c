/* Cubins: arch, kernels, figures, descriptors, hashes; spills against what ptxas says. */
#include "sass_view/cubin.h"
#include "tests/lib/sass_lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void open_ok(struct cubin *c, const char *path)
{
    enum status st = cubin_open_file(c, path);
    if (st) fail_msg("%s", err_msg());
}

static void arch_and_toolkit(void **state)
{
    (void)state;
    static const struct {
        const char *path, *arch;
        int sm;
        bool suffix;
    } rows[] = {
        {"tests/fixtures/sass/tiny_sm_80.cubin", "sm_80", 80, false},
        {"tests/fixtures/sass/tiny_sm_90a.cubin", "sm_90a", 90, true},
        {"tests/fixtures/sass/tiny_sm_121.cubin", "sm_121", 121, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cubin c;
        open_ok(&c, rows[i].path);
        assert_string_equal(c.arch, rows[i].arch);
        assert_int_equal(c.sm, rows[i].sm);
        assert_int_equal(c.arch_suffix, rows[i].suffix);
        assert_string_equal(c.toolkit, "13.0");
        assert_int_equal(c.abi, 8);
        cubin_close(&c);
    }
}

static void kernel_figures(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int regs, frame_regs, reserved;
    } rows[] = {
        {"tests/fixtures/sass/tiny_sm_80.cubin", 31, 25, 0},
        {"tests/fixtures/sass/tiny_sm_90a.cubin", 32, 26, 1024},
        {"tests/fixtures/sass/tiny_sm_121.cubin", 31, 36, 1024},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cubin c;
        open_ok(&c, rows[i].path);
        assert_int_equal(c.nkernels, 2);
        assert_string_equal(c.kernels[0].name, "frame");
        const struct cubin_kernel *k = cubin_find_kernel(&c, "tiny_kd4");
        const struct cubin_kernel *f = cubin_find_kernel(&c, "frame");
        assert_non_null(k);
        assert_null(cubin_find_kernel(&c, "tiny"));
        assert_true(k->entry && f->entry);
        assert_int_equal(k->regs, rows[i].regs);
        assert_int_equal(k->smem, 6144);
        assert_int_equal(k->smem_reserved, rows[i].reserved);
        assert_int_equal(k->stack, 0);
        assert_int_equal(k->spill_store + k->spill_load, 0);
        assert_int_equal(k->barriers, 1);
        assert_int_equal(k->params, 4);
        assert_int_equal(k->param_bytes, 28);
        assert_int_equal(k->max_threads, 128);
        assert_int_equal(f->regs, rows[i].frame_regs);
        assert_int_equal(f->smem, 0);
        assert_int_equal(f->stack, 64);
        assert_int_equal(f->spill_store, 0); /* an indexed array, not a spill */
        assert_int_equal(f->max_threads, CUBIN_UNKNOWN);
        assert_int_equal(f->max_regs, CUBIN_UNKNOWN);
        cubin_close(&c);
    }
}

struct tiny_desc {
    uint32_t abi, kd, threads, smem;
    char name[16];
};

static void descriptor_object(void **state)
{
    (void)state;
    struct cubin c;
    const void *p;
    size_t n;
    open_ok(&c, "tests/fixtures/sass/tiny_sm_90a.cubin");
    assert_string_equal(cubin_object_name(&c, 0), "tiny_kd4_desc");
    assert_null(cubin_object_name(&c, 1));
    assert_int_equal(cubin_symbol(&c, "tiny_kd4_desc", &p, &n), OK);
    assert_int_equal(n, sizeof(struct tiny_desc));
    struct tiny_desc d;
    memcpy(&d, p, sizeof d);
    assert_int_equal(d.abi, 1);
    assert_int_equal(d.kd, 4);
    assert_int_equal(d.threads, 128);
    assert_int_equal(d.smem, 6144);
    assert_string_equal(d.name, "tiny");
    assert_int_equal(cubin_symbol(&c, "none", &p, &n), ERR_FAILED);
    assert_non_null(strstr(err_msg(), "none"));
    cubin_close(&c);
}

static void hashes(void **state)
{
    (void)state;
    struct cubin a, b, o;
    open_ok(&a, "tests/fixtures/sass/tiny_sm_90a.cubin");
    open_ok(&b, "tests/fixtures/sass/tiny_sm_90a.cubin");
    open_ok(&o, "tests/fixtures/sass/tiny_sm_80.cubin");
    assert_int_equal(a.file_hash, b.file_hash);
    assert_int_equal(a.kernels[1].code_hash, b.kernels[1].code_hash);
    assert_true(a.file_hash != o.file_hash);
    assert_true(a.kernels[0].code_hash != a.kernels[1].code_hash);
    assert_true(a.kernels[1].code_hash != o.kernels[1].code_hash);
    /* The values themselves are identities in recordings: they must never drift. */
    assert_true(a.file_hash == UINT64_C(0x603f03a2506a0214));
    assert_true(a.kernels[1].code_hash == UINT64_C(0xee209bbab7b9d115));
    cubin_close(&a);
    cubin_close(&b);
    cubin_close(&o);
}

static void functions_of_a_section(void **state)
{
    (void)state;
    struct cubin c;
    open_ok(&c, "tests/fixtures/sass/flow_sm_90a.cubin");
    const struct cubin_kernel *k = cubin_find_kernel(&c, "calls");
    assert_non_null(k);
    assert_int_equal(k->nfuncs, 2);
    assert_string_equal(k->funcs[0].name, "calls");
    assert_int_equal(k->funcs[0].offset, 0);
    assert_non_null(strstr(k->funcs[1].name, "callee"));
    assert_true(k->funcs[1].offset > 0);
    cubin_close(&c);
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const char elf[64] = "\x7f"
                                "ELF\x02\x01\x01";
    struct cubin c;
    assert_int_equal(cubin_open_file(&c, "tests/fixtures/sass/absent"), ERR_IO);
    assert_non_null(strstr(err_msg(), "absent"));
    assert_int_equal(cubin_open_file(&c, "tests/fixtures/sass/tiny.cu"), ERR_FORMAT);
    assert_non_null(strstr(err_msg(), "not an ELF"));
    assert_int_equal(cubin_open_memory(&c, "", 0, "nothing"), ERR_FORMAT);
    assert_int_equal(cubin_open_memory(&c, elf, sizeof elf, "blank"), ERR_FORMAT);
    assert_non_null(strstr(err_msg(), "not CUDA"));
    assert_null(c.kernels);
    cubin_close(&c);
}

/* One line of `nvcc --resource-usage`: spill bytes of `kernel`; false when it isn't there. */
static bool ptxas_spills(const char *arch, const char *kernel, int *store, int *load)
{
    char cmd[300], line[300];
    bool mine = false, found = false;
    snprintf(cmd, sizeof cmd,
             "PATH=$PATH:/usr/local/cuda/bin ${NVCC:-nvcc} -cubin -O3 -std=c++17 -arch=sm_%s "
             "--resource-usage -o /dev/null tests/fixtures/sass/memory.cu 2>&1",
             arch);
    FILE *f = popen(cmd, "r");
    if (!f) return false;
    while (fgets(line, sizeof line, f)) {
        if (strstr(line, "Function properties for "))
            mine = strstr(line, kernel) != NULL;
        else if (mine &&
                 sscanf(line, "%*d bytes stack frame, %d bytes spill stores, %d", store, load) == 2)
            found = true;
    }
    pclose(f);
    return found;
}

static void spills_equal_ptxas(void **state)
{
    (void)state;
    static const char *const archs[] = {"80", "90a", "121"};
    if (!lab_have_nvcc()) {
        print_message("no nvcc here: spill bytes are not compared with ptxas\n");
        skip();
    }
    for (size_t i = 0; i < 3; i++) {
        const struct lab_source s = {"memory", archs[i]};
        const char *why, *path = lab_build(&s, &why);
        int store = -1, load = -1;
        struct cubin c;
        if (!path) fail_msg("sm_%s: %s", archs[i], why);
        open_ok(&c, path);
        const struct cubin_kernel *k = cubin_find_kernel(&c, "spilling");
        assert_non_null(k);
        assert_true(ptxas_spills(archs[i], "spilling", &store, &load));
        assert_true(store > 0 && load > 0);
        assert_int_equal(k->spill_store, store);
        assert_int_equal(k->spill_load, load);
        cubin_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arch_and_toolkit),       cmocka_unit_test(kernel_figures),
        cmocka_unit_test(descriptor_object),      cmocka_unit_test(hashes),
        cmocka_unit_test(functions_of_a_section), cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(spills_equal_ptxas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
