/*
 * See fragment.h. The sweep is what comes before a B fragment is unpacked in registers instead of
 * read by ldmatrix. Both sides are derived apart: ldmatrix's places from its definition over an
 * expanded tile (matrix i = rows 8 * (i / 2).., k half i % 2; lane L gets row L / 4, bytes 4 * (L %
 * 4)..), the unpacking from the words that nb reads.
 */
#include "kernels/fragment.h"

#include <stdint.h>
#include <string.h>

struct fragment_place fragment_place_of(enum fragment_operand op, int lane, int reg)
{
    int row = lane / 4, four = lane % 4 * 4;
    switch (op) {
    case FRAGMENT_A:
        return (struct fragment_place){row + (reg & 1) * 8, four + (reg >> 1) * 16};
    case FRAGMENT_B:
        return (struct fragment_place){row + (reg >> 1) * 8, four + (reg & 1) * 16};
    case FRAGMENT_C:
        break;
    }
    return (struct fragment_place){row + (reg >> 1) * 8, lane % 4 * 2 + (reg & 1)};
}

/* A raw tile of 16 rows of one super-block in which every nibble can be told from its neighbours:
 * the rows differ in their nibbles' order. */
static void fill_raw(uint8_t raw[FRAGMENT_ROWS][128])
{
    uint32_t state = 12345;
    for (int r = 0; r < FRAGMENT_ROWS; r++)
        for (int i = 0; i < 128; i++) {
            state = state * 1664525u + 1013904223u;
            raw[r][i] = (uint8_t)(state >> 24);
        }
}

/* Value `at` (0..31) of a row's sub-block. */
static uint32_t value_of(const uint8_t raw[FRAGMENT_ROWS][128], int row, int sub, int at)
{
    return raw[row][(sub >> 1) * 32 + at] >> (sub & 1) * 4 & 15;
}

/* What ldmatrix.x4 over the expanded sub-block leaves in register `reg`: matrix = register. */
static uint32_t by_ldmatrix(const uint8_t raw[FRAGMENT_ROWS][128], int sub, int lane, int reg)
{
    struct fragment_place p = fragment_place_of(FRAGMENT_B, lane, reg);
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v |= value_of(raw, p.row, sub, p.col + i) << 8 * i;
    return v;
}

/* What the unpacking in registers leaves: nh = reg / 2, word 0 or 1 of it. */
static uint32_t by_unpacking(const uint8_t raw[FRAGMENT_ROWS][128], int sub, int lane, int reg)
{
    const uint8_t *word =
        raw[(reg >> 1) * 8 + (lane >> 2)] + (sub >> 1) * 32 + (reg & 1) * 16 + (lane & 3) * 4;
    uint32_t v;
    memcpy(&v, word, 4);
    return (sub & 1 ? v >> 4 : v) & 0x0f0f0f0fu;
}

int fragment_sweep(void)
{
    uint8_t raw[FRAGMENT_ROWS][128];
    int differ = 0;
    fill_raw(raw);
    for (int sub = 0; sub < FRAGMENT_SUBS; sub++)
        for (int lane = 0; lane < FRAGMENT_LANES; lane++)
            for (int reg = 0; reg < FRAGMENT_REGS; reg++)
                differ += by_ldmatrix(raw, sub, lane, reg) != by_unpacking(raw, sub, lane, reg);
    return differ;
}
