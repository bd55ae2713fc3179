/*
 * kv_store: the step's keys and values into a layer's cache [context][dim], from position pos0 on;
 * positions past the cache are dropped (the backend refuses such a step before).
 * Arguments: const float *k, const float *v, float *k_cache, float *v_cache,
 * const struct ops_state *state, int n, int dim, int context.
 */
#include "kernels/ops/common.cuh"

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    kv_store(const float *k, const float *v, float *k_cache, float *v_cache,
             const struct ops_state *state, int n, int dim, int context)
{
    size_t i = (size_t)blockIdx.x * OPS_FLAT + threadIdx.x;
    if (i >= (size_t)n * dim) return;
    size_t pos = state->pos0 + i / dim, to = pos * dim + i % dim;
    if (pos >= (size_t)context) return;
    k_cache[to] = k[i];
    v_cache[to] = v[i];
}
OPS_DESC(kv_store, "ops", "keys and values into the cache", "f32", "f32", "", OPS_FLAT);
