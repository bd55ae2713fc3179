/*
 * q6k_bt: q6k_wide transposed: weights are the A operand and tokens the B operand, so that a thread
 * needs the scales of two rows of weights instead of four.
 */
#include "kernels/q6k_gemm/q6k.cuh"

namespace
{
struct q6k_bt_knobs : q6k::knobs {
    static const bool TRANSPOSED = true;
};
} // namespace

#define Q6K_BT(KD)                                                                                 \
    Q6K_RUNG(q6k_bt, KD, q6k_bt_knobs, 1, "q6k_wide",                                              \
             "q6k_wide transposed: weights as A operand, so a thread holds scales of two "         \
             "weight rows, not four")

Q6K_BT(4);
Q6K_BT(8);
