/*
 * quantize_q8: f32 activations -> q8 chunks, byte for byte what kernels/q8.c makes.
 * Eight lanes a chunk, four values a lane. Arguments: const float *x, uint8_t *chunks, int
 * n_chunks.
 */
#include "kernels/ops/quantise.cuh"

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    quantize_q8(const float *x, uint8_t *chunks, int n_chunks)
{
    int part = threadIdx.x & 7, c = blockIdx.x * (OPS_FLAT / 8) + (threadIdx.x >> 3);
    bool in = c < n_chunks;
    float4 v = make_float4(0, 0, 0, 0);
    early_release();
    early_wait();
    if (in) v = ((const float4 *)x)[(size_t)c * 8 + part];
    ops::quantise_eight(v, part, in, chunks + (size_t)c * ops::CHUNK_BYTES);
}
OPS_DESC_EARLY(quantize_q8, "ops", "f32 activations to 40-byte q8 chunks, eight lanes a chunk",
               "q8", "f32", "", OPS_FLAT);
