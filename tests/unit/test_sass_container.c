/* Fatbins, host programs and PTX: what they hold, in every packing; damage; size limits. */
#include "base/buf.h"
#include "base/clock.h"
#include "sass_view/census.h"
#include "sass_view/container.h"
#include "sass_view/demangle.h"
#include "tests/lib/sass_lab.h"
#include <lz4.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cmocka.h>

#define TINY "tests/fixtures/sass/tiny_sm_90a.cubin"
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, FLAG_A = 0x100000, HASHES_MAX = 64 };

static uint8_t *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s can't be opened", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *p = malloc(*size + 1);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, *size, f), *size);
    fclose(f);
    return p;
}

/* Appends one entry; `packed` 0 = stored. `room` bytes of payload, at least the data's. */
static void put_entry(struct buf *b, unsigned kind, const void *data, size_t packed, size_t raw,
                      uint64_t flags, size_t room)
{
    size_t have = packed ? packed : raw, payload = (have + 7) & ~(size_t)7;
    if (payload < room) payload = room;
    buf_u16(b, (uint16_t)kind);
    buf_u16(b, 0x0101);
    buf_u32(b, 0x40);
    buf_u64(b, payload);
    buf_u32(b, (uint32_t)packed);
    buf_u32(b, 0);
    buf_u32(b, 0x00010008);
    buf_u32(b, 90);
    buf_u64(b, 0);
    buf_u64(b, flags);
    buf_u64(b, 0);
    buf_u64(b, packed ? raw : 0);
    buf_put(b, data, have);
    for (size_t i = have; i < payload; i++) buf_u8(b, 0);
}

static void put_header(struct buf *b, const struct buf *entries)
{
    buf_u32(b, 0xba55ed50);
    buf_u16(b, 1);
    buf_u16(b, 16);
    buf_u64(b, entries->len);
    buf_put(b, entries->data, entries->len);
}

/* A fatbin of the tiny cubin stored, LZ4, zstd, and a PTX entry; then zeros and a second fatbin. */
static void make_fatbin(struct buf *out)
{
    size_t n;
    uint8_t *raw = slurp(TINY, &n);
    static char lz[1 << 16], zs[1 << 16];
    int nl = LZ4_compress_default((const char *)raw, lz, (int)n, sizeof lz);
    size_t nz = ZSTD_compress(zs, sizeof zs, raw, n, 3);
    assert_true(nl > 0 && !ZSTD_isError(nz));
    struct buf e = {0};
    put_entry(&e, 2, raw, 0, n, FLAG_A, 0);
    put_entry(&e, 2, lz, (size_t)nl, n, FLAG_A | FLAG_LZ4, 0);
    put_entry(&e, 2, zs, nz, n, FLAG_A | FLAG_ZSTD, 0);
    put_entry(&e, 1, ".version 9.0", 0, 12, 0, 0);
    put_header(out, &e);
    for (int i = 0; i < 24; i++) buf_u8(out, 0);
    put_header(out, &e);
    buf_free(&e);
    free(raw);
}

static void check_parts(const struct container *c)
{
    static const enum part_packing want[] = {PACKING_STORED, PACKING_LZ4, PACKING_ZSTD};
    assert_int_equal(c->nparts, 8);
    assert_int_equal(c->ncubins, 6);
    assert_int_equal(c->nptx, 2);
    assert_int_equal(c->nfatbins, 2);
    assert_string_equal(c->damage, "");
    for (size_t i = 0; i < 8; i++) {
        struct cubin cu;
        assert_int_equal(c->parts[i].fatbin, i / 4);
        if (i % 4 == 3) {
            assert_int_equal(c->parts[i].kind, PART_PTX);
            assert_string_equal(c->parts[i].arch, "compute_90");
            assert_int_equal(container_cubin(c, i, &cu), ERR_USAGE);
            continue;
        }
        assert_int_equal(c->parts[i].packing, want[i % 4]);
        assert_string_equal(c->parts[i].arch, "sm_90a");
        if (container_cubin(c, i, &cu)) fail_msg("%s", err_msg());
        assert_int_equal(cu.file_hash, UINT64_C(0x603f03a2506a0214));
        assert_int_equal(cu.nkernels, 2);
        cubin_close(&cu);
    }
}

static void fatbin_in_memory(void **state)
{
    (void)state;
    struct buf b = {0};
    struct container c;
    make_fatbin(&b);
    if (container_open_memory(&c, b.data, b.len, "made")) fail_msg("%s", err_msg());
    assert_int_equal(c.kind, CONTAINER_FATBIN);
    check_parts(&c);
    container_close(&c);
    buf_free(&b);
}

/* Any cut of it opens with what is whole, or is refused; a cubin of it is whole or refused. */
static void truncations(void **state)
{
    (void)state;
    struct buf b = {0};
    make_fatbin(&b);
    size_t opened = 0;
    for (size_t n = 0; n < b.len; n += 61) {
        struct container c;
        uint8_t *own = malloc(n ? n : 1);
        assert_non_null(own);
        if (n) memcpy(own, b.data, n);
        enum status st = container_open_memory(&c, own, n, "cut");
        free(own);
        if (st) {
            assert_non_null(strstr(err_msg(), "cut"));
            continue;
        }
        opened++;
        assert_true(c.nparts < 8);
        container_close(&c);
    }
    assert_true(opened > 0);
    buf_free(&b);
}

static void damage(void **state)
{
    (void)state;
    struct buf b = {0}, e = {0};
    struct container c;
    struct cubin cu;
    size_t n;
    uint8_t *raw = slurp(TINY, &n);
    put_entry(&e, 2, raw, 0, n, 0, 0);
    put_entry(&e, 2, raw, 100, n, FLAG_ZSTD, 0);               /* not zstd */
    put_entry(&e, 2, raw, 100, n, 0, 0);                       /* packed, but how? */
    put_entry(&e, 2, raw, 100, 200u << 20, FLAG_LZ4, 0);       /* can't unpack to that */
    put_entry(&e, 2, raw, 100, (size_t)1 << 40, FLAG_ZSTD, 0); /* over the limit */
    size_t last = e.len;
    put_entry(&e, 2, raw, 0, n, 0, 0);
    e.data[last + 8] ^= 0xff; /* a size that leaves the fatbin */
    e.data[last + 12] = 1;
    put_header(&b, &e);
    if (container_open_memory(&c, b.data, b.len, "bad")) fail_msg("%s", err_msg());
    assert_int_equal(c.nparts, 5);
    assert_non_null(strstr(c.damage, "broken fatbin entry"));
    static const enum status want[] = {OK, ERR_FORMAT, ERR_FORMAT, ERR_FORMAT, ERR_LIMIT};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(container_cubin(&c, i, &cu), want[i]);
        if (!want[i]) cubin_close(&cu);
    }
    container_close(&c);
    buf_free(&b);
    buf_free(&e);
    free(raw);
}

static void ptx_is_noted(void **state)
{
    (void)state;
    struct container c;
    const char ptx[] = "//\n// made by hand\n/* x */\n.version 9.0\n.target sm_90a\n";
    assert_int_equal(container_open_memory(&c, ptx, sizeof ptx - 1, "p"), OK);
    assert_int_equal(c.kind, CONTAINER_PTX);
    assert_int_equal(c.nptx, 1);
    assert_string_equal(c.parts[0].arch, "compute_90a");
    container_close(&c);
    assert_int_equal(container_open_memory(&c, "!<arch>\n", 8, "p"), ERR_FORMAT);
    assert_non_null(strstr(err_msg(), "ar x"));
    assert_int_equal(container_open_memory(&c, "hello", 5, "p"), ERR_FORMAT);
    assert_int_equal(container_open_memory(&c, "", 0, "p"), ERR_FORMAT);
}

/* A shared library with the fatbin in its section, made by the assembler: with NVIDIA's soname its
 * code is sealed, with another it is not. */
static void sonames(void **state)
{
    (void)state;
    static const struct {
        const char *soname;
        bool sealed;
    } rows[] = {{"libcublasLt.so.13", true}, {"libmine.so.1", false}, {"libnccl.so.2", false}};
    struct buf b = {0};
    char dir[] = "/tmp/sass_host_XXXXXX", cmd[512], path[64];
    make_fatbin(&b);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/f", dir);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
    fclose(f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct container c;
        struct cubin cu;
        struct census s;
        snprintf(
            cmd, sizeof cmd,
            "cd %s && printf '.section .nv_fatbin,\"a\"\\n.balign 8\\n.incbin \"f\"\\n' >a.s && "
            "${CC:-cc} -shared -nostdlib -Wl,-soname,%s -o so a.s 2>/dev/null",
            dir, rows[i].soname);
        if (system(cmd)) skip();
        snprintf(path, sizeof path, "%s/so", dir);
        if (container_open_file(&c, path)) fail_msg("%s", err_msg());
        assert_int_equal(c.kind, CONTAINER_HOST);
        assert_string_equal(c.soname, rows[i].soname);
        assert_int_equal(c.vendor, rows[i].sealed);
        check_parts(&c);
        assert_int_equal(container_cubin(&c, 1, &cu), OK);
        assert_int_equal(cu.kernels[1].regs, 32);
        assert_int_equal(census_make(&s, &cu, &cu.kernels[1]),
                         rows[i].sealed ? ERR_UNAVAILABLE : OK);
        if (!rows[i].sealed) assert_int_equal(s.total, 59);
        census_free(&s);
        cubin_close(&cu);
        container_close(&c);
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    assert_int_equal(system(cmd), 0);
    buf_free(&b);
}

/* 100 MiB of packed entries list by their headers: the payloads are no zstd at all. */
static void large_fatbin(void **state)
{
    (void)state;
    char path[] = "/tmp/sass_large_XXXXXX";
    int fd = mkstemp(path);
    struct container c;
    assert_true(fd >= 0);
    enum { ENTRIES = 400, ROOM = 256 << 10 };
    static const uint8_t zeros[ROOM];
    struct buf b = {0};
    buf_u32(&b, 0xba55ed50);
    buf_u16(&b, 1);
    buf_u16(&b, 16);
    buf_u64(&b, (uint64_t)ENTRIES * (64 + ROOM));
    assert_int_equal(pwrite(fd, b.data, b.len, 0), b.len);
    for (int i = 0; i < ENTRIES; i++) {
        buf_reset(&b);
        put_entry(&b, 2, zeros, ROOM - 1, 4 * ROOM, FLAG_ZSTD, 0);
        assert_int_equal(pwrite(fd, b.data, 64, 16 + (off_t)i * (64 + ROOM)), 64);
    }
    assert_int_equal(ftruncate(fd, 16 + (off_t)ENTRIES * (64 + ROOM)), 0);
    uint64_t t0 = clock_mono_ns();
    if (container_open_file(&c, path)) fail_msg("%s", err_msg());
    uint64_t ns = clock_mono_ns() - t0;
    assert_int_equal(c.ncubins, ENTRIES);
    assert_true(c.size > 100 << 20);
    print_message("%llu MB listed in %.1f ms\n", (unsigned long long)c.size >> 20,
                  (double)ns / 1e6);
    assert_true(ns < 1000000000);
    container_close(&c);
    buf_free(&b);
    close(fd);
    unlink(path);
}

/* The code hashes of every kernel of a file, in order. */
static size_t hashes(const char *path, uint64_t *out)
{
    struct container c;
    size_t n = 0;
    if (container_open_file(&c, path)) fail_msg("%s", err_msg());
    for (size_t i = 0; i < c.nparts; i++) {
        struct cubin cu;
        if (c.parts[i].kind != PART_CUBIN) continue;
        if (container_cubin(&c, i, &cu)) fail_msg("%s", err_msg());
        for (size_t k = 0; k < cu.nkernels && n < HASHES_MAX; k++) {
            struct census s;
            assert_int_equal(census_make(&s, &cu, &cu.kernels[k]), OK);
            out[n++] = s.code_hash * 31 + s.total;
            census_free(&s);
        }
        cubin_close(&cu);
    }
    container_close(&c);
    return n;
}

static void compress_modes(void **state)
{
    (void)state;
    static const char *const modes[] = {"none", "default", "size", "speed", "balance"};
    uint64_t first[HASHES_MAX], here[HASHES_MAX];
    size_t nfirst = 0;
    if (!lab_have_nvcc()) {
        print_message("no nvcc here: its compress modes aren't compared\n");
        skip();
    }
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char cmd[512], path[96];
        snprintf(path, sizeof path, "build/sass_corpus/host_%s", modes[i]);
        snprintf(cmd, sizeof cmd,
                 "mkdir -p build/sass_corpus && [ %s -nt tests/fixtures/sass/host.cu ] || "
                 "${NVCC:-/usr/local/cuda/bin/nvcc} -gencode arch=compute_80,code=sm_80 -gencode "
                 "arch=compute_90a,code=[sm_90a,compute_90a] -compress-mode=%s -o %s "
                 "tests/fixtures/sass/host.cu >/dev/null 2>&1",
                 path, modes[i], path);
        if (system(cmd)) {
            print_message("this nvcc doesn't build with -compress-mode=%s\n", modes[i]);
            skip();
        }
        size_t n = hashes(path, i ? here : first);
        if (!i) nfirst = n;
        assert_int_equal(n, nfirst);
        assert_true(n == 8);
        if (i) assert_memory_equal(first, here, n * sizeof *first);
    }
}

static void names(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"_Z5scaleIfEvPT_S0_i", "scale<float>"},
        {"_ZN3lab4foldILi64ELb1EEEvPf", "lab::fold<64, true>"},
        {"_ZN3lab4plusEPfPKfi", "lab::plus"},
        {"_Z1fIPKfN1a1bIiEEEvT_", "f<const float*, a::b<int>>"},
        {"_Z1fIN1a1bES1_EvT_T0_", "f<a::b, a::b>"},
        {"_Z1fIJifdEEvDpT_", "f<int, float, double>"},
        {"_Z1fILin3ELj7EEvv", "f<-3, 7>"},
        {"_Z1fIL1e2EEvv", "f<(e)2>"},
        {"_ZN47_GLOBAL__N__00000000_4_t_cu_a_0001gEv",
         "_ZN47_GLOBAL__N__00000000_4_t_cu_a_0001gEv"},
        {"_ZN12_GLOBAL__N_11gEv", "(anonymous)::g"},
        {"_Z1fISt6vectorIiEEvv", "f<std::vector<int>>"},
        {"plain", "plain"},
        {"", ""},
        {"_Z", "_Z"},
        {"_Z99x", "_Z99x"},
        {"_ZN1aplERKS_", "_ZN1aplERKS_"},
        {"_Z1fIXadL_Z1gvEEEvv", "_Z1fIXadL_Z1gvEEEvv"},
    };
    char out[256];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(demangle(rows[i][0], out, sizeof out), rows[i][1]);
    /* A name that doubles itself at every step ends at the limit. */
    char bomb[600] = "_Z1fI";
    for (int i = 0; i < 60; i++) strcat(bomb, "1aIS_S_E");
    assert_string_equal(
        demangle(bomb, out, sizeof out),
        "_Z1fI1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E"
        "1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E"
        "1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E"
        "1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1aIS_S_E1a");
}

static void archs(void **state)
{
    (void)state;
    assert_true(arch_matches("sm_90a", NULL));
    assert_true(arch_matches("sm_90a", "90"));
    assert_true(arch_matches("sm_90a", "sm_90a"));
    assert_false(arch_matches("sm_90", "90a"));
    assert_false(arch_matches("sm_121", "12"));
    assert_false(arch_matches("sm_90", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fatbin_in_memory),
        cmocka_unit_test(truncations),
        cmocka_unit_test(damage),
        cmocka_unit_test(ptx_is_noted),
        cmocka_unit_test(sonames),
        cmocka_unit_test(large_fatbin),
        cmocka_unit_test(compress_modes),
        cmocka_unit_test(names),
        cmocka_unit_test(archs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
