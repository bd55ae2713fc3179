/*
 * The part of CUPTI's interface that is used here, declared by ourselves so that the build needs no
 * CUDA header (cupti_profiler_host.h is not even C: it includes <string>) and the library is found
 * at run time.
 *
 * Layouts follow the headers of CUDA 13.0 (API 130001); tests/unit/test_cupti_abi.c compares every
 * size, offset and value with the real headers where they are installed. Every params struct starts
 * with its own size and is zeroed otherwise: later versions accept the shorter ones. Handles are
 * opaque.
 */
#ifndef CUPTI_ABI_H
#define CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int cupti_result; /* CUptiResult */

/* Results that are told apart here. */
enum {
    CUPTI_R_SUCCESS = 0,
    CUPTI_R_INVALID_PARAMETER = 1, /* also what an unknown metric name gives */
    CUPTI_R_INVALID_DEVICE = 2,
    CUPTI_R_INVALID_OPERATION = 7,
    CUPTI_R_OUT_OF_MEMORY = 8, /* PM decode: hardware buffer overflow */
    CUPTI_R_MAX_LIMIT_REACHED = 12,
    CUPTI_R_NOT_COMPATIBLE = 14,
    CUPTI_R_NOT_INITIALIZED = 15,
    CUPTI_R_HARDWARE_BUSY = 26,
    CUPTI_R_NOT_SUPPORTED = 27,
    CUPTI_R_VIRTUALIZED = 33,
    CUPTI_R_INSUFFICIENT_PRIVILEGES = 35,
    CUPTI_R_LEGACY_PROFILER = 38,
    CUPTI_R_MULTIPLE_SUBSCRIBERS = 39,
    CUPTI_R_VGPU_PRIVILEGES = 40,
    CUPTI_R_CONFIDENTIAL = 41,
    CUPTI_R_CMP = 42,
    CUPTI_R_MIG = 43,
    CUPTI_R_SLI = 44,
    CUPTI_R_WSL = 45,
    CUPTI_R_INVALID_CHIP = 46,
    CUPTI_R_UNKNOWN = 999,
};

/* Size that CUPTI expects in a params struct: up to the end of its last field. */
#define CUPTI_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* ---- target, callbacks ---- */

struct cupti_plain_params { /* cuptiProfilerInitialize, DeInitialize */
    size_t size;
    void *priv;
};

struct cupti_chip_params {
    size_t size;
    void *priv;
    size_t device;
    const char *chip;
};

enum { CUPTI_API_RANGE = 0, CUPTI_API_PC = 1, CUPTI_API_SASS = 2, CUPTI_API_PM = 3 };
enum {
    CUPTI_SUPPORT_UNKNOWN = 0,
    CUPTI_SUPPORT_NO = 1,
    CUPTI_SUPPORT_DISABLED = 2,
    CUPTI_SUPPORT_YES = 3
};

struct cupti_support_params {
    size_t size;
    void *priv;
    int device; /* CUdevice */
    int supported, architecture, sli, vgpu, confidential, cmp, wsl;
    int api;
};

struct cupti_subscriber_params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size; /* at least CUPTI_OLD_NAME_MIN */
};
enum { CUPTI_OLD_NAME_MIN = 64 };

typedef void (*cupti_callback)(void *user, int domain, uint32_t id, const void *data);

/* ---- activity ---- */

enum { CUPTI_KIND_KERNEL = 3, CUPTI_KIND_CONCURRENT_KERNEL = 10, CUPTI_KIND_OVERHEAD = 17 };
enum { CUPTI_FLUSH_FORCED = 1 };
enum { CUPTI_ATTR_ZEROED_BUFFERS = 5 };

#define CUPTI_PACKED __attribute__((packed, aligned(8)))

struct CUPTI_PACKED cupti_activity {
    int kind;
};

/* The head of CUpti_ActivityKernel10 up to the last field read here; records are longer. */
struct CUPTI_PACKED cupti_kernel_record {
    int kind;
    uint8_t cache_config, smem_config;
    uint16_t regs;
    int partitioned_requested, partitioned_executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t smem_static, smem_dynamic;
    uint32_t local_per_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char *name; /* CUPTI's: copy, never free */
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, carveout_requested, carveout, padding;
    uint32_t smem_executed;
    uint64_t graph_node;
    int shmem_limit;
    uint32_t graph;
};

/* CUpti_ActivityOverhead3. `data` is the reader's to free, for the kind that has some. */
enum { CUPTI_OVERHEAD_COMMANDS_FULL = 6 << 16 };
struct CUPTI_PACKED cupti_overhead_record {
    int kind;
    int overhead; /* what it was: buffer flush, instrumentation, lazy loading... */
    int object_kind;
    uint32_t object[3];
    uint64_t start, end; /* both 0: not known */
    uint32_t correlation, reserved;
    void *data;
};

typedef void (*cupti_buffer_request)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_buffer_complete)(void *ctx, uint32_t stream, uint8_t *buffer, size_t size,
                                      size_t valid);

/* ---- profiler host: names, packing, evaluation; needs no GPU ---- */

enum { CUPTI_TYPE_RANGE = 0, CUPTI_TYPE_PM = 1 };

struct cupti_host_init_params {
    size_t size;
    void *priv;
    int type;
    const char *chip;
    const uint8_t *availability;
    void *host;
};

struct cupti_host_params { /* Deinitialize */
    size_t size;
    void *priv;
    void *host;
};

struct cupti_host_chips_params {
    size_t size;
    void *priv;
    size_t n;
    const char *const *names;
};

struct cupti_host_add_params {
    size_t size;
    void *priv;
    void *host;
    const char **names;
    size_t n;
};

struct cupti_host_image_size_params {
    size_t size;
    void *priv;
    void *host;
    size_t image_size;
};

struct cupti_host_image_params {
    size_t size;
    void *priv;
    void *host;
    size_t image_size;
    uint8_t *image;
};

struct cupti_host_passes_params {
    size_t size;
    void *priv;
    size_t image_size;
    uint8_t *image;
    size_t passes;
};

struct cupti_host_eval_params {
    size_t size;
    void *priv;
    void *host;
    const uint8_t *image;
    size_t image_size;
    size_t range;
    const char **names;
    size_t n;
    double *values;
};

/* ---- range profiler ---- */

enum { CUPTI_AUTO_RANGE = 1 };
enum { CUPTI_USER_REPLAY = 3 };

struct cupti_range_enable_params {
    size_t size;
    void *priv;
    void *ctx;
    void *object;
};

struct cupti_range_params { /* Disable, Start */
    size_t size;
    void *priv;
    void *object;
};

struct cupti_range_stop_params {
    size_t size;
    void *priv;
    void *object;
    size_t pass;
    size_t nesting;
    uint8_t all_passes;
};

struct cupti_range_config_params {
    size_t size;
    void *priv;
    void *object;
    size_t config_size;
    const uint8_t *config;
    size_t image_size;
    uint8_t *image;
    int range;
    int replay;
    size_t max_ranges;
    uint16_t nesting_levels, min_nesting;
    size_t pass;
    uint16_t target_nesting;
};

struct cupti_range_decode_params {
    size_t size;
    void *priv;
    void *object;
    size_t dropped;
};

struct cupti_range_size_params {
    size_t size;
    void *priv;
    void *object;
    const char **names;
    size_t n;
    size_t max_ranges;
    uint32_t max_nodes;
    size_t image_size;
};

struct cupti_range_image_params {
    size_t size;
    void *priv;
    void *object;
    size_t image_size;
    uint8_t *image;
};

struct cupti_range_info_params {
    size_t size;
    void *priv;
    const uint8_t *image;
    size_t image_size;
    size_t ranges;
};

/* ---- PM sampling ---- */

enum { CUPTI_PM_TRIGGER_SYSCLK = 0, CUPTI_PM_TRIGGER_TIME = 1 };
enum { CUPTI_PM_KEEP_OLDEST = 0, CUPTI_PM_KEEP_LATEST = 1 };
enum { CUPTI_PM_STOP_OTHER = 0, CUPTI_PM_STOP_IMAGE_FULL = 1, CUPTI_PM_STOP_END = 2 };

struct cupti_pm_enable_params {
    size_t size;
    void *priv;
    size_t device;
    void *object;
};

struct cupti_pm_params { /* Disable, Start, Stop */
    size_t size;
    void *priv;
    void *object;
};

struct cupti_pm_config_params {
    size_t size;
    void *priv;
    void *object;
    size_t config_size;
    const uint8_t *config;
    size_t buffer;
    uint64_t interval;
    int trigger;
    int append;
};

struct cupti_pm_decode_params {
    size_t size;
    void *priv;
    void *object;
    uint8_t *image;
    size_t image_size;
    int stop_reason;
    uint8_t overflow;
};

struct cupti_pm_size_params {
    size_t size;
    void *priv;
    void *object;
    const char **names;
    size_t n;
    uint32_t max_samples;
    size_t image_size;
};

struct cupti_pm_image_params {
    size_t size;
    void *priv;
    void *object;
    size_t image_size;
    uint8_t *image;
};

struct cupti_pm_info_params {
    size_t size;
    void *priv;
    const uint8_t *image;
    size_t image_size;
    size_t total, populated, completed;
};

struct cupti_pm_sample_params {
    size_t size;
    void *priv;
    void *object;
    const uint8_t *image;
    size_t image_size;
    size_t index;
    uint64_t start, end;
};

/* ---- PC sampling ---- */

enum { CUPTI_PC_CONTINUOUS = 1 };
enum {
    CUPTI_PC_ATTR_PERIOD = 1,
    CUPTI_PC_ATTR_STALL_REASONS = 2,
    CUPTI_PC_ATTR_HARDWARE_BUFFER = 4,
    CUPTI_PC_ATTR_MODE = 5,
    CUPTI_PC_ATTR_START_STOP = 6,
    CUPTI_PC_ATTR_DATA_BUFFER = 8,
    CUPTI_PC_ATTR_WORKER_SLEEP = 9,
};
enum { CUPTI_STALL_NAME_SIZE = 128 };

struct CUPTI_PACKED cupti_pc_stall {
    uint32_t reason;
    uint32_t samples;
};

struct CUPTI_PACKED cupti_pc_record {
    size_t size;
    uint64_t cubin_crc;
    uint64_t pc;
    uint32_t function_index, pad;
    char *function; /* shared between records */
    size_t stall_count;
    struct cupti_pc_stall *stalls;
    uint32_t correlation;
};

struct CUPTI_PACKED cupti_pc_data {
    size_t size;
    size_t max_pcs; /* room in records */
    uint64_t total_samples, dropped_samples;
    size_t pcs, remaining_pcs;
    uint64_t range_id;
    struct cupti_pc_record *records;
    uint64_t other_samples; /* of kernels that are not the user's */
    uint8_t hardware_full;
};

struct cupti_pc_attr {
    int type;
    int status;
    union {
        uint64_t data[3];
        uint32_t u32;
        size_t bytes;
        void *pointer;
        struct {
            size_t n;
            uint32_t *indices;
        } reasons;
    } v;
};

struct cupti_pc_params { /* Enable, Disable, Start, Stop */
    size_t size;
    void *priv;
    void *ctx;
};

struct cupti_pc_config_params {
    size_t size;
    void *priv;
    void *ctx;
    size_t n;
    struct cupti_pc_attr *attrs;
};

struct cupti_pc_data_params {
    size_t size;
    void *priv;
    void *ctx;
    void *data;
};

struct cupti_pc_reason_count_params {
    size_t size;
    void *priv;
    void *ctx;
    size_t *n;
};

struct cupti_pc_reasons_params {
    size_t size;
    void *priv;
    void *ctx;
    size_t n;
    uint32_t *indices;
    char **names; /* CUPTI_STALL_NAME_SIZE bytes each */
};

struct cupti_crc_params {
    size_t size;
    size_t cubin_size;
    const void *cubin;
    uint64_t crc;
};

#include "cupti/abi_sass.h"

#endif
