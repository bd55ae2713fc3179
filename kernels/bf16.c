/* bf16 activations on the CPU; the GPU's form is kernels/ops/to_bf16.cu: equal bytes. See bf16.h.
 */
#include "kernels/bf16.h"

#include <string.h>

uint16_t f32_to_bf16(float f)
{
    uint32_t x;
    memcpy(&x, &f, 4);
    if ((x & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (uint16_t)((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}

float bf16_to_f32(uint16_t h)
{
    uint32_t x = (uint32_t)h << 16;
    float f;
    memcpy(&f, &x, 4);
    return f;
}

void bf16_put_row(const float *x, int n, int token, int k, uint8_t *out)
{
    for (int i = 0; i < k; i++) {
        uint16_t h = f32_to_bf16(x[i]);
        memcpy(out + bf16_offset(n, token, i), &h, 2);
    }
}
