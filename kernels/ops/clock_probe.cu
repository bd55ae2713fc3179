/*
 * One reading of two clocks on each SM: its own cycle counter and the time in ns that all share.
 * Two readings round some work give the clock at which that work ran, with no counter hardware.
 * Arguments: uint64_t *out (struct {cycles, ns} by SM number), int sms.
 */
#include "kernels/ops/common.cuh"

extern "C" __global__ void __launch_bounds__(32) clock_probe(unsigned long long *out, int sms)
{
    unsigned sm;
    unsigned long long ns;
    if (threadIdx.x) return;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    if (sm >= (unsigned)sms) return;
    out[2 * sm] = (unsigned long long)clock64();
    out[2 * sm + 1] = ns;
}
OPS_DESC(clock_probe, "ops", "reads each SM's cycle counter beside the time", "", "", "", 32);
