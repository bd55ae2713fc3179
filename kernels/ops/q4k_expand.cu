/*
 * q4k_expand: super-blocks of Q4_K to the layout q4_k_int8 (kernels/q4k_gemm/prepare.c): 16 bytes
 * of header as they are, then the 256 nibbles as bytes in their order; 144 bytes become 272. For
 * variants that want their weights expanded once, at load. Arguments: const uint8_t *in (16-byte
 * aligned), uint8_t *out (the same), int units, of 16 bytes of output: 17 a super-block. Unit 0 is
 * the header; unit u holds values 16 * (u - 1) .. of which sub-block (u - 1) / 2 takes two.
 */
#include "kernels/ops/common.cuh"

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    q4k_expand(const uint8_t *in, uint8_t *out, int units)
{
    const int i = blockIdx.x * OPS_FLAT + threadIdx.x;
    if (i >= units) return;
    const int block = i / OPS_EXPAND_UNITS, unit = i % OPS_EXPAND_UNITS;
    const int sub = (unit - 1) >> 1, half = (unit - 1) & 1;
    const uint8_t *b = in + (size_t)block * 144;
    uint4 v = *(const uint4 *)(b + (unit ? 16 + (sub >> 1) * 32 + half * 16 : 0));
    if (unit) {
        const int shift = (sub & 1) * 4;
        const uint32_t M = 0x0f0f0f0fu;
        v = make_uint4(v.x >> shift & M, v.y >> shift & M, v.z >> shift & M, v.w >> shift & M);
    }
    *(uint4 *)(out + (size_t)i * 16) = v;
}
OPS_DESC(q4k_expand, "ops", "expands Q4_K's nibbles to bytes, once", "", "", "q4_k", OPS_FLAT);
