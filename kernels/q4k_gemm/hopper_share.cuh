/*
 * How the hopper_* kernels deal out their work: which super-blocks of which output tiles a cluster
 * takes, and the place in a ring of stages. Pure arithmetic, every thread by itself.
 */
#ifndef KERNELS_Q4K_GEMM_HOPPER_SHARE_CUH
#define KERNELS_Q4K_GEMM_HOPPER_SHARE_CUH

#include <cstdint>

namespace hopper
{

/* A place in a ring of N stages; the parity flips with every turn. */
template <int N> struct ring {
    uint32_t slot = 0, parity = 0;
    __device__ __forceinline__ void next()
    {
        if (++slot == N) {
            slot = 0;
            parity ^= 1;
        }
    }
};

/* A run of super-blocks of one output tile. */
struct segment {
    int tile, first, end; /* of the tile's super-blocks */
};

/* What a cluster works on: units (tile * super-blocks + super-block) [lo, hi), as segments from the
 * last tile down to the first. So a tile that ends in a later cluster comes first, and one whose
 * start earlier clusters do comes last, when they have long finished their part of it. */
struct share {
    uint32_t total, lo, hi;
    int blocks, tile, last; /* super-blocks a tile; tiles left: [tile, last] */
    int each;               /* clusters that share a tile and have no other; 0: not so dealt */

    __device__ __forceinline__ share(uint32_t tiles, uint32_t blocks_, uint32_t cluster,
                                     uint32_t clusters)
        : total(tiles * blocks_), blocks((int)blocks_)
    {
        clusters = parties(tiles, total, clusters);
        each = clusters % tiles == 0 ? (int)(clusters / tiles) : 0;
        lo = start(min(cluster, clusters), clusters);
        hi = start(min(cluster + 1, clusters), clusters);
        tile = (int)(lo / blocks_);
        last = hi > lo ? (int)((hi - 1) / blocks_) : tile - 1;
    }
    /* total * cluster / clusters, in 32 bits: divisions of 64 bits take a while, and come first. */
    __device__ __forceinline__ uint32_t start(uint32_t cluster, uint32_t clusters) const
    {
        return total / clusters * cluster + total % clusters * cluster / clusters;
    }
    /* How many clusters take part, each with at least a unit. As many a tile where nine tenths of
     * them can: then nobody has parts of two tiles to add. */
    static __device__ __forceinline__ uint32_t parties(uint32_t tiles, uint32_t total,
                                                       uint32_t clusters)
    {
        const uint32_t even = tiles < clusters ? clusters / tiles * tiles : clusters;
        return min(even * 10 >= clusters * 9 ? even : clusters, total);
    }
    __device__ __forceinline__ bool next(segment &s)
    {
        if (last < tile) return false;
        const uint32_t base = (uint32_t)(last * blocks);
        s.tile = last--;
        s.first = (int)(max(lo, base) - base);
        s.end = (int)(min(hi, base + blocks) - base);
        return true;
    }
};

} // namespace hopper

#endif
