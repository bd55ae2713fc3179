/*
 * What a kernel says about itself, inside its cubin. Read by C and by CUDA C++; fixed size.
 *
 * Each .cu file defines, for a kernel NAME (such as nb_kd8), a constant named NAME_desc with
 * VARIANT_DESC(NAME) = { ... }. The registry reads it out of the ELF with no GPU: adding a kernel
 * is adding one file. Rules, held by a test: desc.name = the kernel's symbol; the symbol is the
 * file's name followed by nothing or by "_" and a suffix (q4k_gemm: always "_kd" and the depth).
 *
 * The layout is the contract (ABI 1): fields are only ever added in the place of `reserved`.
 * All text is NUL-terminated inside its array.
 */
#ifndef KERNELS_VARIANT_H
#define KERNELS_VARIANT_H

#ifdef __cplusplus
#include <cstdint>
#else
#include <stdint.h>
#endif

enum {
    VARIANT_ABI = 1,
    VARIANT_BUFFERS = 8,
    VARIANT_NAME = 40,
};

/* struct variant_desc.flags */
enum {
    VARIANT_BROKEN = 1,   /* wrong on purpose: must be rejected by kcheck, never offered */
    VARIANT_FALLBACK = 2, /* what the launcher runs when another of its family is refused */
};

/* struct variant_desc.features */
enum {
    VARIANT_WGMMA = 1, /* sm_90a's matrix instructions, copies and clusters */
    VARIANT_EARLY = 2, /* may start before its predecessor's end: kernels/early.cuh */
};

/* One named part of the dynamic shared memory; parts lie one after the other in this order. */
struct variant_buffer {
    char name[20];
    uint32_t bytes;
};

struct variant_desc {
    uint32_t abi;              /* VARIANT_ABI */
    uint32_t size;             /* sizeof(struct variant_desc) */
    char name[VARIANT_NAME];   /* the kernel's symbol: "nb_kd8" */
    char family[24];           /* "q4k_gemm", "ops" */
    char note[160];            /* one sentence: the one idea */
    char parent[VARIANT_NAME]; /* file name of the variant it grew from; "" = a root */
    char step[12];             /* step of the campaign texts it stands for ("r29"); "" = ours */
    char numeric[12];          /* numeric class: "q8" = quantised activations, integer dots;
                                * "bf16", "f32"...: members of one class give equal tokens */
    char layout_a[20];         /* activations: "q8_chunk40", or "" for kernels without */
    char layout_b[20];         /* weights: "q4_k", or "" */
    char expect[24];           /* broken ones: how kcheck must find them: "wrong", "race",
                                * "guard", "fault", "hang"; "" for good ones */
    uint32_t tile_m, tile_n, tile_k; /* output rows, tokens, values of k per block step; 0 = none */
    uint32_t kd;                     /* 32-value activation chunks staged at once; 0 = none */
    uint32_t threads;                /* per block; for ops the largest block it takes */
    uint32_t min_blocks;             /* blocks/SM promised to the compiler; 0 = not said */
    uint32_t min_sm;                 /* lowest compute capability, 10 * major + minor */
    uint32_t features;               /* VARIANT_WGMMA..., 0: plain mma.sync */
    uint32_t flags;
    uint32_t n_buffers;
    struct variant_buffer buffers[VARIANT_BUFFERS]; /* dynamic shared memory = their sum */
    uint32_t cluster_m; /* blocks of a cluster along m: the grid is a multiple; 0 = 1 */
    uint32_t grid;      /* blocks that share all output tiles, whatever the shape; 0: one each */
    char verdict[32];   /* on its step: "landed: ...", "reverted: ..."; "" = none stated */
    uint32_t reserved[2];
};

/* Total dynamic shared memory in bytes; n_buffers beyond the array counts as the array's size. */
#ifndef __cplusplus
static inline uint32_t variant_smem(const struct variant_desc *d)
{
    uint32_t n = d->n_buffers < VARIANT_BUFFERS ? d->n_buffers : (uint32_t)VARIANT_BUFFERS;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += d->buffers[i].bytes;
    return sum;
}
_Static_assert(sizeof(struct variant_desc) == 640, "ABI 1");
#endif

#ifdef __CUDACC__
static_assert(sizeof(struct variant_desc) == 640, "ABI 1");

/* Use: VARIANT_DESC(nb_kd8) = {VARIANT_HEAD(nb_kd8), .family = "q4k_gemm", ...};
 * designated, in the order of the struct. */
#define VARIANT_DESC(NAME)                                                                         \
    extern "C" __device__ const __attribute__((used)) struct variant_desc NAME##_desc
#define VARIANT_HEAD(NAME) .abi = VARIANT_ABI, .size = sizeof(struct variant_desc), .name = #NAME
#endif

#endif
