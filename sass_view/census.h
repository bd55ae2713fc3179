/*
 * Census: what a kernel is made of, counted.
 *
 * Counting rules. Padding is left out and counted apart: what follows the last instruction that can
 * be reached (the branch to itself that ends a kernel, and NOPs), in each function of the section.
 * Compiler-made dummies (an HGMMA with no destination and no operands) are left out and counted
 * apart too. So total + padding + dummies == instructions in .text.K; the rows' totals and the
 * classes' totals each add up to `total`; likewise for the in-loop and hot-loop figures. Unknown
 * opcodes are rows and a class of their own.
 *
 * Loops are natural loops of the flow graph (flow.h). `in_loop` counts instructions inside any
 * loop, `hot` those of the hot loop's body. The hot loop is chosen by structure: among the loops
 * that hold tensor instructions themselves, if there are any, else among the innermost loops, the
 * deepest, and of those the one with most instructions. These are static figures: what was executed
 * is another counter's business.
 *
 * The caller owns a census and frees it; it holds copies, so it outlives the cubin. Threads: any,
 * one census each.
 */
#ifndef SASS_VIEW_CENSUS_H
#define SASS_VIEW_CENSUS_H

#include "base/status.h"
#include "sass_view/cubin.h"
#include "sass_view/decode.h"
#include "sass_view/flow.h"

enum census_scope { CENSUS_ALL, CENSUS_LOOP, CENSUS_HOT, CENSUS_SCOPES };

struct census_row {
    char key[INSN_KEY_MAX]; /* "LDS.64", "IMMA.16832.S8.S8", "?0x1abc" */
    uint8_t cls;
    uint32_t n[CENSUS_SCOPES];
};

struct census {
    char *kernel;
    char arch[16];
    int sm;
    uint64_t file_hash, code_hash;
    int regs, smem, stack, barriers, max_threads, param_bytes; /* CUBIN_UNKNOWN when not stated */
    int spill_bytes; /* stores + loads, a thread; CUBIN_UNKNOWN */
    uint32_t total, padding, dummies, unknown;
    uint32_t sum[CENSUS_SCOPES]; /* sum[CENSUS_ALL] == total */
    uint32_t classes[INSN_CLASSES][CENSUS_SCOPES];
    struct census_row *rows; /* most first, then by key */
    size_t nrows;
    bool loops_known;     /* false: the flow graph was over its limit, in-loop figures are 0 */
    struct flow_loop hot; /* depth 0: there's no loop */
    uint32_t nloops;
};

/* Counts kernel `k` of `c`. ERR_NOMEM, ERR_LIMIT. On failure *out is zeroed. */
enum status census_make(struct census *out, const struct cubin *c, const struct cubin_kernel *k);
void census_free(struct census *s);

/* Instructions whose key is `name` or starts with "name.": "LDS" counts every width, "LDS.64" one.
 */
uint32_t census_count(const struct census *s, const char *name, enum census_scope scope);

/* Multiply-adds that a warp's tensor instructions of one pass through the scope do, from the shapes
 * in their keys (a warpgroup's HGMMA counts a quarter for each of its four warps). 0: none, or a
 * shape that isn't known here. */
uint64_t census_macs(const struct census *s, enum census_scope scope);

#endif
