/*
 * Job: unpack the payload of a fatbin entry.
 *
 * Invariants: never writes past raw_size; a payload that gives more or fewer bytes is refused. To
 * add a packing: a case here, its flag in fatbin.c.
 */
#include "sass_view/container_priv.h"
#include <limits.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>

static bool unpack_lz4(const uint8_t *data, size_t size, uint8_t *raw, size_t raw_size)
{
    if (size > INT_MAX || raw_size > INT_MAX) return false;
    int n = LZ4_decompress_safe((const char *)data, (char *)raw, (int)size, (int)raw_size);
    return n >= 0 && (size_t)n == raw_size;
}

bool unpack(enum part_packing p, const uint8_t *data, size_t size, uint8_t *raw, size_t raw_size)
{
    switch (p) {
    case PACKING_STORED:
        if (size != raw_size) return false;
        memcpy(raw, data, size);
        return true;
    case PACKING_LZ4:
        return unpack_lz4(data, size, raw, raw_size);
    case PACKING_ZSTD:
        return ZSTD_decompress(raw, raw_size, data, size) == raw_size;
    case PACKING_UNKNOWN:
    default:
        return false;
    }
}
