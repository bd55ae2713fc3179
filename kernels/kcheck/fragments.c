/*
 * The sweep that comes before a B fragment is unpacked in registers instead of read by ldmatrix:
 * for each sub-block, lane and register, which bytes of the row it must hold, and which ones the
 * unpacking gives. Derived apart: ldmatrix's places from its definition over an expanded tile
 * (matrix i = rows 8 * (i / 2).., k half i % 2; lane L gets row L / 4, bytes 4 * (L % 4)..), the
 * unpacking from the words that nb reads.
 */
#include "kernels/kcheck/kcheck.h"
#include "kernels/q4k_gemm/ref.h"

#include <stdio.h>
#include <string.h>

enum { SUBS = 8, LANES = 32, REGS = 4, ROWS = 16 };

/* A raw tile of 16 rows of one super-block in which every nibble can be told from its neighbours:
 * the rows differ in their nibbles' order. */
static void fill_raw(uint8_t raw[ROWS][128])
{
    uint32_t state = 12345;
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 128; i++) {
            state = state * 1664525u + 1013904223u;
            raw[r][i] = (uint8_t)(state >> 24);
        }
}

/* Value `at` (0..31) of a row's sub-block. */
static uint32_t value_of(const uint8_t raw[ROWS][128], int row, int sub, int at)
{
    return raw[row][(sub >> 1) * 32 + at] >> (sub & 1) * 4 & 15;
}

/* What ldmatrix.x4 over the expanded sub-block leaves in register `reg`: matrix = register. */
static uint32_t by_ldmatrix(const uint8_t raw[ROWS][128], int sub, int lane, int reg)
{
    int row = (reg >> 1) * 8 + lane / 4, first = (reg & 1) * 16 + lane % 4 * 4;
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v |= value_of(raw, row, sub, first + i) << 8 * i;
    return v;
}

/* What the unpacking in registers leaves: nh = reg / 2, word 0 or 1 of it. */
static uint32_t by_unpacking(const uint8_t raw[ROWS][128], int sub, int lane, int reg)
{
    const uint8_t *word =
        raw[(reg >> 1) * 8 + (lane >> 2)] + (sub >> 1) * 32 + (reg & 1) * 16 + (lane & 3) * 4;
    uint32_t v;
    memcpy(&v, word, 4);
    return (sub & 1 ? v >> 4 : v) & 0x0f0f0f0fu;
}

static void print_map(void)
{
    puts("lane -> row of the fragment, values of k, by register (b[nh][word])");
    for (int lane = 0; lane < LANES; lane++) {
        printf("%4d", lane);
        for (int reg = 0; reg < REGS; reg++)
            printf("   r%d: row %2d k %2d..%2d", reg, (reg >> 1) * 8 + lane / 4,
                   (reg & 1) * 16 + lane % 4 * 4, (reg & 1) * 16 + lane % 4 * 4 + 3);
        putchar('\n');
    }
}

int check_fragments(bool print)
{
    uint8_t raw[ROWS][128];
    int differ = 0;
    fill_raw(raw);
    for (int sub = 0; sub < SUBS; sub++)
        for (int lane = 0; lane < LANES; lane++)
            for (int reg = 0; reg < REGS; reg++)
                differ += by_ldmatrix(raw, sub, lane, reg) != by_unpacking(raw, sub, lane, reg);
    if (!print) return differ;
    print_map();
    printf("%d sub-blocks x %d lanes x %d registers: %d differ from ldmatrix\n", SUBS, LANES, REGS,
           differ);
    return differ;
}
