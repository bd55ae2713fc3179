/*
 * Starting before the kernel in front of it has ended (programmatic dependent launch, sm_90 on).
 *
 * A kernel with VARIANT_EARLY in its descriptor may be started by the launcher as soon as every
 * block of its predecessor has called early_release() or ended. Until early_wait() returns it may
 * touch nothing that a kernel before it writes or reads what it will write: only its own shared
 * memory, what no kernel ever writes (weights, tables), and what only earlier steps wrote (the cache
 * before this position): a step's first kernel isn't one of these, so it starts after all of them.
 * early_wait() returns when all of the predecessor's memory is there; so each such kernel calls it,
 * in every block, and what was launched two before has then ended too. On older machines, and where
 * the launcher doesn't overlap, both do nothing.
 */
#ifndef KERNELS_EARLY_CUH
#define KERNELS_EARLY_CUH

/* The next kernel's blocks may take the room that is left. */
static __device__ __forceinline__ void early_release()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ __forceinline__ void early_wait()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
