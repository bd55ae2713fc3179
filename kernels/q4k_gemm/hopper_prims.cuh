/*
 * The sm_90a instructions that the hopper_* kernels are made of, one function each: mbarriers, bulk
 * copies into shared memory (with multicast to a cluster), cluster barriers, flags between blocks,
 * and wgmma with its A operand in registers.
 *
 * mma<T>::step(): c[T/2] += A (64 rows x 16) * B (T columns x 16). Of the warpgroup's warp i, lane
 * L holds of A rows 16*i + L/4 (a[0], a[2]) and 8 further down (a[1], a[3]), columns 2*(L%4) and
 * the next in a[0] and a[1], 8 further right in a[2] and a[3]; of C the same rows, c[4*j + l]:
 * column 8*j + 2*(L%4) + (l & 1), row + 8*(l >> 1). B lies in shared memory, see b_descriptor().
 *
 * Asynchronous: fence(), steps, commit(), then wait<N>() until at most N commits are under way;
 * until then neither a[] nor c[] may be touched.
 */
#ifndef KERNELS_Q4K_GEMM_HOPPER_PRIMS_CUH
#define KERNELS_Q4K_GEMM_HOPPER_PRIMS_CUH

#include <cstdint>
#include <cuda_bf16.h>

namespace hopper
{

__device__ __forceinline__ uint32_t smem_at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- values ---- */

/* Quantised values become bf16 by a mask alone: an integer below 256 in the low bits of a bf16 is
 * that many times 2^-133, subnormal up to 127 and in the first binade from there on. Scales that
 * are 2^133 times too large put that right within the multiplication; so that they stay finite, all
 * weights are 2^-DOWN of what they are until sums are stored. Powers of two change no rounding:
 * d * scale is below 2^23, so a scale below 2^(23 + 133 - DOWN). */
enum { DOWN = 29, UP = 133 - DOWN };

__device__ __forceinline__ float power(int e)
{
    return __int_as_float((127 + e) << 23);
}

/* A value that the compiler then keeps instead of finding it anew in every turn of a loop. */
__device__ __forceinline__ uint32_t kept(uint32_t v)
{
    asm volatile("" : "+r"(v));
    return v;
}

/* ---- mbarriers; `bar` is a shared address ---- */

__device__ __forceinline__ void bar_init(uint32_t bar, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}

/* Arrives, and makes the phase wait for `bytes` of copies as well. */
__device__ __forceinline__ void bar_expect(uint32_t bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void bar_arrive(uint32_t bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

/* Arrives at the same place in block `rank` of the cluster. Predicated, not branched around: a
 * branch between two wgmma would make the compiler wait for each of them. */
__device__ __forceinline__ void bar_arrive_at(uint32_t bar, uint32_t rank, bool really)
{
    asm volatile("{\n.reg .b32 at;\n"
                 ".reg .pred really;\n"
                 "setp.ne.u32 really, %2, 0;\n"
                 "mapa.shared::cluster.u32 at, %0, %1;\n"
                 "@really mbarrier.arrive.shared::cluster.b64 _, [at];\n}" ::"r"(bar),
                 "r"(rank), "r"((uint32_t)really)
                 : "memory");
}

__device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity)
{
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void bars_visible()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* ---- copies from global to shared memory; all addresses and sizes multiples of 16 ---- */

__device__ __forceinline__ void copy(uint32_t dst, const void *src, uint32_t bytes, uint32_t bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar)
                 : "memory");
}

/* 16 bytes by one thread; bar_arrive_after_copies() arrives when all of the thread's have landed.
 */
__device__ __forceinline__ void copy_16(uint32_t dst, const void *src)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}

__device__ __forceinline__ void bar_arrive_after_copies(uint32_t bar)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

/* To the same place, and on the same barrier, of every block whose bit is in `blocks`. */
__device__ __forceinline__ void copy_to(uint32_t dst, const void *src, uint32_t bytes, uint32_t bar,
                                        uint16_t blocks)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar), "h"(blocks)
                 : "memory");
}

/* ---- clusters ---- */

__device__ __forceinline__ void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* ---- between blocks, and within ---- */

/* The first THREADS threads of the block; the others don't take part. */
template <int THREADS> __device__ __forceinline__ void consumers_barrier()
{
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

/* What was written before, by this thread or by others before a barrier of the block, is seen by
 * who saw the flag: nobody else needs a fence. */
__device__ __forceinline__ void flag_raise(unsigned *flag)
{
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}

__device__ __forceinline__ void flag_wait_and_lower(unsigned *flag)
{
    unsigned v;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    } while (!v);
    *(volatile unsigned *)flag = 0;
}

/* A place where `all` threads of as many blocks meet, fewer than 256: a count that each launch
 * raises by 256, so that nobody has to set it back. turn_of() before one's own meet(), when no
 * earlier launch runs any more. As with flags, what was written before is seen by who came out. */
__device__ __forceinline__ unsigned turn_of(const unsigned *count)
{
    return *(const volatile unsigned *)count >> 8;
}

__device__ __forceinline__ void meet(unsigned *count, unsigned turn, unsigned all, unsigned who)
{
    unsigned v;
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(count), "r"(who ? 1 : 257 - all)
                 : "memory");
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(count) : "memory");
    } while (v >> 8 == turn);
}

/* Of a warpgroup: gives registers back to the block, takes more. */
template <int N> __device__ __forceinline__ void registers_less()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> __device__ __forceinline__ void registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

/* ---- wgmma ---- */

__device__ __forceinline__ void fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> __device__ __forceinline__ void wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/* B as 8-row atoms of 1024 bytes one after the other, each row 128 bytes (64 bf16 of k) with its
 * 16-byte pieces at piece ^ row: the 128-byte swizzle. b_place(): the descriptor's low half for a
 * first atom at `at`, 1024-aligned; each 16 values of k, 32 bytes, add 2 to it. */
__device__ __forceinline__ uint32_t b_place(uint32_t at)
{
    return (1 << 16) + (at >> 4);
}

__device__ __forceinline__ uint64_t b_descriptor(uint32_t place)
{
    const uint32_t swizzle_128b = 1 << 30, stride = 1024 >> 4;
    return (uint64_t)(swizzle_128b | stride) << 32 | place;
}

template <int T> struct mma;

#define HOPPER_C4(i)  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define HOPPER_C16(i) HOPPER_C4(i), HOPPER_C4(i + 4), HOPPER_C4(i + 8), HOPPER_C4(i + 12)
#define HOPPER_C64(i) HOPPER_C16(i), HOPPER_C16(i + 16), HOPPER_C16(i + 32), HOPPER_C16(i + 48)

#define HOPPER_MMA(T, C, A, B, ...)                                                                \
    template <> struct mma<T> {                                                                    \
        static __device__ __forceinline__ void step(float (&c)[T / 2], const uint32_t (&a)[4],     \
                                                    uint64_t b)                                    \
        {                                                                                          \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #T "k16.f32.bf16.bf16 {" C "}, {" A   \
                         "}, " B ", 1, 1, 1, 0;\n"                                                 \
                         : __VA_ARGS__                                                             \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                    \
        }                                                                                          \
    }

HOPPER_MMA(32, "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15",
           "%16, %17, %18, %19", "%20", HOPPER_C16(0));
HOPPER_MMA(64,
           "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
           "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31",
           "%32, %33, %34, %35", "%36", HOPPER_C16(0), HOPPER_C16(16));
HOPPER_MMA(128,
           "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
           "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
           "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
           "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63",
           "%64, %65, %66, %67", "%68", HOPPER_C64(0));
HOPPER_MMA(256,
           "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
           "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
           "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
           "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, "
           "%66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "
           "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "
           "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "
           "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, "
           "%124, %125, %126, %127",
           "%128, %129, %130, %131", "%132", HOPPER_C64(0), HOPPER_C64(64));

} // namespace hopper

#endif
