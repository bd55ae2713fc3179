/*
 * CRC-32, eight bytes a step ("slicing by 8"): every frame is checked twice on its way, so a table
 * of 8 KiB pays. The table is made before main() and only read afterwards.
 */
#include "session/crc.h"

enum { SLICES = 8 };

static uint32_t table[SLICES][256];

__attribute__((constructor)) static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int s = 1; s < SLICES; s++)
            table[s][i] = table[0][table[s - 1][i] & 0xff] ^ (table[s - 1][i] >> 8);
}

static uint32_t load_le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t crc32_of(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint32_t c = 0xffffffffu;

    for (; n >= 8; n -= 8, p += 8) {
        uint32_t a = c ^ load_le(p), b = load_le(p + 4);
        c = table[7][a & 0xff] ^ table[6][a >> 8 & 0xff] ^ table[5][a >> 16 & 0xff] ^
            table[4][a >> 24] ^ table[3][b & 0xff] ^ table[2][b >> 8 & 0xff] ^
            table[1][b >> 16 & 0xff] ^ table[0][b >> 24];
    }
    for (; n; n--, p++) c = table[0][(c ^ *p) & 0xff] ^ (c >> 8);
    return ~c;
}
