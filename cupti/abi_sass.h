/* SASS metrics (cupti_sass_metrics.h): a part of cupti/abi.h, which says what holds for all of it.
 */
#ifndef CUPTI_ABI_SASS_H
#define CUPTI_ABI_SASS_H

#include <stddef.h>
#include <stdint.h>

enum { CUPTI_SASS_GPU = 0 }; /* granularity: one value for the whole GPU */

struct cupti_sass_metric {
    uint64_t id;
    const char *name, *meaning;
};

struct cupti_sass_properties_params {
    size_t size;
    void *priv;
    const char *chip, *name;
    struct cupti_sass_metric metric; /* out */
};

struct cupti_sass_config {
    uint64_t id;
    uint8_t granularity;
};

struct cupti_sass_config_params {
    size_t size;
    void *priv;
    size_t n;
    struct cupti_sass_config *configs;
    uint32_t device;
};

struct cupti_sass_unconfig_params {
    size_t size;
    void *priv;
    uint32_t device;
};

struct cupti_sass_enable_params {
    size_t size;
    void *priv;
    void *ctx;
    uint8_t lazy; /* patch a kernel at its first launch only */
};

struct cupti_sass_disable_params {
    size_t size;
    void *priv;
    void *ctx;
    size_t dropped; /* out: records that were not flushed */
};

struct cupti_sass_size_params {
    size_t size;
    void *priv;
    void *ctx;
    size_t records, instances; /* out: patched instructions; values of each */
};

struct cupti_sass_value {
    uint64_t id, value;
};

struct cupti_sass_record {
    size_t size; /* in */
    void *priv;
    uint32_t cubin_crc, function_index; /* out, like the rest */
    const char *function;
    uint32_t pc;
    struct cupti_sass_value *values; /* in: room for `instances` */
};

struct cupti_sass_flush_params {
    size_t size;
    void *priv;
    void *ctx;
    size_t records, instances;
    struct cupti_sass_record *data;
};

#endif
