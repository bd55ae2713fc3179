/*
 * Tensor types: names, block layouts, rows to float and back.
 *
 * Pure functions on memory owned by the caller, any thread. The layouts are ggml's public ones,
 * little endian, one block after the other with no padding, so a row of a mapped GGUF tensor can be
 * read as an array of these structs (their alignment is 2). A row's length is always a multiple of
 * quant_block_len().
 *
 *  type  values  bytes  a value is                      fields
 *  Q4_1    32      20   d*q + m          q 0..15        nibbles: byte j = value j low, j+16 high
 *  Q5_0    32      22   d*(q - 16)       q 0..31        nibbles as Q4_1; bit j of qh = fifth bit of
 * j Q8_0    32      34   d*q              q -128..127 Q4_K   256     144   d*sc*q - dmin*m  q 0..15
 * 8 sub-blocks of 32, see q4_k_scale_min() Q6_K   256     210   d*sc*(q - 32)    q 0..63        16
 * sub-blocks of 16 with int8 scales
 */
#ifndef ENGINE_QUANT_H
#define ENGINE_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are GGUF's tensor type ids. */
enum quant_type {
    QUANT_F32 = 0,
    QUANT_F16 = 1,
    QUANT_Q4_1 = 3,
    QUANT_Q5_0 = 6,
    QUANT_Q8_0 = 8,
    QUANT_Q4_K = 12,
    QUANT_Q6_K = 14,
};

enum { QK = 32, QK_K = 256 };

struct q4_1_block {
    uint16_t d, m;
    uint8_t qs[16];
};

struct q5_0_block {
    uint16_t d;
    uint8_t qh[4]; /* little endian 32 bits */
    uint8_t qs[16];
};

struct q8_0_block {
    uint16_t d;
    int8_t qs[32];
};

/* Bytes p*32 .. p*32+31 of qs (p = 0..3) hold sub-block 2p low, 2p+1 high. */
struct q4_k_block {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qs[128];
};

/* Two halves of 128 values; half h uses ql + 64h, qh + 32h, scales + 8h. For l = 0..31 the values
 * at l, l+32, l+64, l+96 of a half are: low nibbles of ql[l], of ql[l+32], high nibbles of ql[l],
 * of ql[l+32]; their upper two bits are bits 0-1, 2-3, 4-5, 6-7 of qh[l]. */
struct q6_k_block {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    uint16_t d;
};

_Static_assert(sizeof(struct q4_1_block) == 20, "Q4_1 layout");
_Static_assert(sizeof(struct q5_0_block) == 22, "Q5_0 layout");
_Static_assert(sizeof(struct q8_0_block) == 34, "Q8_0 layout");
_Static_assert(sizeof(struct q4_k_block) == 144, "Q4_K layout");
_Static_assert(sizeof(struct q6_k_block) == 210, "Q6_K layout");

/* The 6-bit scale and min of sub-block j (0..7) of a Q4_K block's 12 bytes: j < 4 takes the low six
 * bits of bytes j and j+4; j >= 4 takes a nibble of byte j+4 and the top two bits of bytes j-4
 * (scale) and j (min). */
static inline void q4_k_scale_min(const uint8_t s[12], int j, uint8_t *sc, uint8_t *m)
{
    if (j < 4) {
        *sc = s[j] & 63;
        *m = s[j + 4] & 63;
    } else {
        *sc = (uint8_t)((s[j + 4] & 15) | (s[j - 4] >> 6) << 4);
        *m = (uint8_t)((s[j + 4] >> 4) | (s[j] >> 6) << 4);
    }
}

/* Whether a GGUF type id is one of the seven types read here. */
bool quant_known(uint32_t id);

/* "Q4_K"; for ids that GGUF defines but that aren't read here also their name ("IQ4_XS"), so that a
 * file can be refused by name; "type N" never: an id nobody defined gives "unknown". Static. */
const char *quant_name(uint32_t id);

size_t quant_block_len(enum quant_type t);   /* values a block: 1, 32 or 256 */
size_t quant_block_bytes(enum quant_type t); /* bytes a block */

/* Bytes of a row of n values; 0 when n is not a multiple of the block length or the size overflows.
 */
size_t quant_row_bytes(enum quant_type t, uint64_t n);

/* n values of `row` to `out`; n a multiple of the block length. */
void quant_dequant_row(enum quant_type t, const void *row, float *out, size_t n);

/* n floats into blocks at `row` (quant_row_bytes() bytes). Finite input only. F16 and Q8_0 round to
 * nearest, Q4_1 spans the block's range, Q5_0 its greatest magnitude; Q4_K and Q6_K search a scale
 * (and min) for each sub-block by least squares, then round those to 6 bits (int8) and the values
 * again. Deterministic. */
void quant_quantize_row(enum quant_type t, const float *in, void *row, size_t n);

#endif
