/* Job: the fuzz targets of machine code and the files that hold it. */
#include "sass_view/census.h"
#include "sass_view/container.h"
#include "sass_view/demangle.h"
#include "sass_view/diff.h"
#include "sass_view/expect.h"
#include "sass_view/lines.h"
#include "sass_view/operands.h"
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
        struct lines l;
        char text[256];
        demangle(c->kernels[i].name, text, sizeof text);
        if (lines_read(&l, c, &c->kernels[i]) == OK) lines_free(&l);
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

/* Both halves of the code as kernels, side by side. */
static void use_flow(const struct cubin *c, const struct cubin_kernel *k, const struct census *s)
{
    struct cubin_kernel half = *k;
    struct flow a, b;
    struct census sb;
    struct diff d;
    char text[64];
    half.code_size = k->code_size / 2 / INSN_BYTES * INSN_BYTES;
    if (flow_make(&a, c, k)) return;
    for (uint32_t i = 0; i < a.ninsns; i++)
        hold(strlen(insn_operand_text(&a.insns[i], text, sizeof text)) < sizeof text);
    if (flow_make(&b, c, &half) == OK) {
        if (census_make(&sb, c, &half) == OK) {
            if (diff_make(&d, &a, &b, s, &sb) == OK) {
                uint32_t na = d.nlines - d.n[DIFF_ONLY_B], nb = d.nlines - d.n[DIFF_ONLY_A];
                hold(na + s->padding == a.ninsns && nb + sb.padding == b.ninsns);
                diff_free(&d);
            }
            census_free(&sb);
        }
        flow_free(&b);
    }
    flow_free(&a);
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
    use_flow(&c, &k, &s);
    for (int i = 0; i < INSN_CLASSES; i++) classes += s.classes[i][CENSUS_ALL];
    hold(rows == s.total && classes == s.total);
    census_free(&s);
}

void fuzz_container(const uint8_t *data, size_t size)
{
    struct container c;
    if (container_open_memory(&c, data, size, "fuzz")) return;
    hold(c.nparts == 0 || c.parts != NULL);
    for (size_t i = 0; i < c.nparts && i < 64; i++) {
        struct cubin cu;
        hold(c.parts[i].kind != PART_CUBIN || c.parts[i].packing <= PACKING_UNKNOWN);
        /* A hostile entry may ask for the limit again and again: one of that size is enough. */
        if (c.parts[i].raw_size > 16 << 20 || container_cubin(&c, i, &cu)) continue;
        use_cubin(&cu);
        cubin_close(&cu);
    }
    container_close(&c);
}

void fuzz_lines(const uint8_t *data, size_t size)
{
    struct lines l;
    if (lines_parse(&l, data, size, NULL, 0)) return;
    for (uint32_t i = 0; i < l.nrows; i++) {
        hold(i == 0 || l.rows[i - 1].offset <= l.rows[i].offset);
        hold(l.rows[i].inlined_at <= l.nrows);
        hold(lines_at(&l, l.rows[i].offset) != NULL);
    }
    lines_free(&l);
}

void fuzz_rules(const uint8_t *data, size_t size)
{
    struct expect_set set;
    struct census s = {.sm = 90, .kernel = (char *)"tiny_kd4", .loops_known = true};
    struct claim claim;
    char text[256];
    size_t n = size < sizeof text - 1 ? size : sizeof text - 1;
    if (n) memcpy(text, data, n);
    text[n] = 0;
    claim_parse(&claim, text);
    char name[128];
    demangle(text, name, sizeof name);
    if (expect_parse(&set, (const char *)data, size, "fuzz")) return;
    for (unsigned i = 0; i < set.nrules; i++) {
        struct expect_result r;
        if (!expect_applies(&set, set.rules[i].section, &s)) continue;
        expect_hold(&set, &set.rules[i], &s, "13.0", &r);
        hold(r.state <= EXPECT_REOPENED && strlen(r.text) < sizeof r.text);
        expect_code_changed(&set, set.rules[i].section, &s);
    }
    expect_free(&set);
}

static const struct fuzz_target targets[] = {
    {"gguf", fuzz_gguf},           {"session", fuzz_session}, {"cubin", fuzz_cubin},
    {"container", fuzz_container}, {"decode", fuzz_decode},   {"lines", fuzz_lines},
    {"rules", fuzz_rules},
};

const struct fuzz_target *fuzz_target_at(size_t i)
{
    return i < sizeof targets / sizeof targets[0] ? &targets[i] : NULL;
}
