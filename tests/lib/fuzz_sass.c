/* Job: the fuzz targets of machine code and the files that hold it. */
#include "sass_view/census.h"
#include "tests/lib/fuzz_targets.h"

#include <stdlib.h>
#include <string.h>

static void hold(bool ok)
{
    if (!ok) abort();
}

/* Every kernel's census, which decodes all of it and finds its loops. */
static void use_cubin(const struct cubin *c)
{
    volatile uint64_t sum = 0;
    const char *name;
    for (size_t i = 0; (name = cubin_object_name(c, i)) && i < 1000; i++) {
        const void *p;
        size_t n;
        if (cubin_symbol(c, name, &p, &n) || !n) continue;
        sum += ((const uint8_t *)p)[0] + ((const uint8_t *)p)[n - 1];
    }
    for (size_t i = 0; i < c->nkernels; i++) {
        struct census s;
        if (census_make(&s, c, &c->kernels[i])) continue;
        hold(s.total + s.padding + s.dummies == c->kernels[i].code_size / INSN_BYTES);
        census_free(&s);
    }
}

void fuzz_cubin(const uint8_t *data, size_t size)
{
    struct cubin c;
    if (cubin_open_memory(&c, data, size, "fuzz")) return;
    use_cubin(&c);
    cubin_close(&c);
}

void fuzz_decode(const uint8_t *data, size_t size)
{
    static const int archs[] = {70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121, 7};
    if (size < 1 + INSN_BYTES) return;
    struct cubin c = {.sm = archs[data[0] % (sizeof archs / sizeof archs[0])]};
    struct cubin_kernel k = {.name = "fuzz", .code = data + 1};
    struct census s;
    k.code_size = (uint32_t)((size - 1) / INSN_BYTES * INSN_BYTES);
    if (census_make(&s, &c, &k)) return;
    hold(s.total + s.padding + s.dummies == k.code_size / INSN_BYTES);
    uint32_t rows = 0, classes = 0;
    for (size_t i = 0; i < s.nrows; i++) {
        hold(strlen(s.rows[i].key) < INSN_KEY_MAX);
        rows += s.rows[i].n[CENSUS_ALL];
    }
    for (int i = 0; i < INSN_CLASSES; i++) classes += s.classes[i][CENSUS_ALL];
    hold(rows == s.total && classes == s.total);
    census_free(&s);
}
