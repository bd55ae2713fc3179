/*
 * embed: rows of the embedding matrix named by the step's tokens, dequantised, times `scale`; one
 * kernel a tensor type. A block column a token. A token id past the vocabulary gives zeros.
 * Arguments: const uint8_t *w, const struct ops_state *state, float *y, int dim, int vocab,
 * float scale. Grid {ceil(dim / OPS_FLAT), n}.
 */
#include "kernels/ops/dequant.cuh"

template <class T>
static __device__ __forceinline__ void embed_body(const uint8_t *w, const struct ops_state *state,
                                                  float *y, int dim, int vocab, float scale)
{
    int i = blockIdx.x * OPS_FLAT + threadIdx.x, t = blockIdx.y;
    if (i >= dim) return;
    uint32_t token = state->token[t];
    float v = 0;
    if (token < (uint32_t)vocab) {
        size_t block = (size_t)token * (dim / T::LEN) + i / T::LEN;
        v = T::get(w + block * T::BYTES, i % T::LEN) * scale;
    }
    y[(size_t)t * dim + i] = v;
}

#define EMBED(TYPE)                                                                                \
    extern "C" __global__ void __launch_bounds__(OPS_FLAT)                                         \
        embed_##TYPE(const uint8_t *w, const struct ops_state *state, float *y, int dim,           \
                     int vocab, float scale)                                                       \
    {                                                                                              \
        embed_body<ops::deq_##TYPE>(w, state, y, dim, vocab, scale);                               \
    }                                                                                              \
    OPS_DESC(embed_##TYPE, "ops", "embedding rows by token id, dequantised and scaled", "f32",     \
             "tokens", #TYPE, OPS_FLAT)

EMBED(f32);
EMBED(f16);
EMBED(q4_1);
EMBED(q5_0);
EMBED(q8_0);
EMBED(q4_k);
EMBED(q6_k);
