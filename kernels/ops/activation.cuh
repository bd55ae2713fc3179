/* The two activations of gated units, one expression each for every kernel that has them. */
#ifndef KERNELS_OPS_ACTIVATION_CUH
#define KERNELS_OPS_ACTIVATION_CUH

namespace ops
{

static __device__ __forceinline__ float act_silu(float v)
{
    return __fdiv_rn(v, 1.0f + expf(-v));
}

static __device__ __forceinline__ float act_gelu(float v)
{
    const float root_2_over_pi = 0.79788456080286535588f;
    return 0.5f * v * (1.0f + tanhf(root_2_over_pi * v * (1.0f + 0.044715f * v * v)));
}

} // namespace ops

#endif
