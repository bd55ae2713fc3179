/*
 * NVIDIA's driver API, found at run time: libcuda.so.1 by dlopen, no CUDA header needed.
 *
 * struct driver is a table of the calls used here, each under its driver name without "cu".
 * Handles are opaque. The table is made once by driver_open() and shared by all threads; the calls
 * keep the driver's own rules (a context is current per thread).
 */
#ifndef BASE_DRIVER_H
#define BASE_DRIVER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct drv_ctx;
struct drv_module;
struct drv_func;
struct drv_stream;
struct drv_event;
struct drv_graph;
struct drv_graph_exec;
typedef uint64_t drv_ptr; /* CUdeviceptr */
typedef int drv_result;   /* CUresult: 0 = success */

/* Values of the driver's enumerations that are used here (cuda.h, stable ABI). */
enum {
    DRV_SUCCESS = 0,
    DRV_NOT_READY = 600,
    DRV_ILLEGAL_ADDRESS = 700,
    DRV_LAUNCH_TIMEOUT = 702,
    /* device attributes */
    DRV_DEV_MAX_THREADS_PER_BLOCK = 1,
    DRV_DEV_SMEM_PER_BLOCK = 8,
    DRV_DEV_CLOCK_KHZ = 13,
    DRV_DEV_SM_COUNT = 16,
    DRV_DEV_L2_BYTES = 38,
    DRV_DEV_MAX_THREADS_PER_SM = 39,
    DRV_DEV_CC_MAJOR = 75,
    DRV_DEV_CC_MINOR = 76,
    DRV_DEV_SMEM_PER_SM = 81,
    DRV_DEV_REGS_PER_SM = 82,
    DRV_DEV_SMEM_OPTIN = 97,
    DRV_DEV_SMEM_RESERVED = 111, /* reserved by the driver in each block */
    /* function attributes */
    DRV_FUNC_STATIC_SMEM = 1,
    DRV_FUNC_LOCAL_BYTES = 3,
    DRV_FUNC_REGS = 4,
    DRV_FUNC_MAX_DYNAMIC_SMEM = 8,
    DRV_FUNC_SMEM_CARVEOUT = 9,
    /* flags */
    DRV_STREAM_NON_BLOCKING = 1,
    DRV_EVENT_DEFAULT = 0,
    DRV_EVENT_DISABLE_TIMING = 2,
    DRV_CAPTURE_THREAD_LOCAL = 1,
    DRV_CAPTURE_RELAXED = 2,
    /* launch attributes */
    DRV_LAUNCH_OVERLAP = 6, /* programmatic stream serialization: kernels/early.cuh */
};

/* CUlaunchAttribute and CUlaunchConfig. */
struct drv_launch_attribute {
    int id;
    uint32_t pad;
    union {
        char room[64];
        int allowed; /* DRV_LAUNCH_OVERLAP */
    } value;
};

struct drv_launch {
    unsigned grid[3], block[3], smem;
    struct drv_stream *stream;
    const struct drv_launch_attribute *attributes;
    unsigned n_attributes;
};

/* _(field, symbol, arguments): every call returns drv_result. */
#define DRIVER_CALLS(_)                                                                            \
    _(Init, "cuInit", (unsigned flags))                                                            \
    _(DriverGetVersion, "cuDriverGetVersion", (int *version))                                      \
    _(GetErrorName, "cuGetErrorName", (drv_result r, const char **name))                           \
    _(GetErrorString, "cuGetErrorString", (drv_result r, const char **text))                       \
    _(DeviceGetCount, "cuDeviceGetCount", (int *count))                                            \
    _(DeviceGet, "cuDeviceGet", (int *dev, int ordinal))                                           \
    _(DeviceGetName, "cuDeviceGetName", (char *name, int len, int dev))                            \
    _(DeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *id, int len, int dev))                      \
    _(DeviceGetAttribute, "cuDeviceGetAttribute", (int *v, int attribute, int dev))                \
    _(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, int dev))                            \
    _(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (struct drv_ctx * *ctx, int dev))        \
    _(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int dev))                          \
    _(CtxSetCurrent, "cuCtxSetCurrent", (struct drv_ctx * ctx))                                    \
    _(CtxGetCurrent, "cuCtxGetCurrent", (struct drv_ctx * *ctx))                                   \
    _(CtxSynchronize, "cuCtxSynchronize", (void))                                                  \
    _(MemGetInfo, "cuMemGetInfo_v2", (size_t * free_bytes, size_t * total))                        \
    _(MemAlloc, "cuMemAlloc_v2", (drv_ptr * p, size_t bytes))                                      \
    _(MemFree, "cuMemFree_v2", (drv_ptr p))                                                        \
    _(MemAllocHost, "cuMemAllocHost_v2", (void **p, size_t bytes))                                 \
    _(MemFreeHost, "cuMemFreeHost", (void *p))                                                     \
    _(MemcpyHtoD, "cuMemcpyHtoD_v2", (drv_ptr dst, const void *src, size_t bytes))                 \
    _(MemcpyDtoH, "cuMemcpyDtoH_v2", (void *dst, drv_ptr src, size_t bytes))                       \
    _(MemcpyDtoD, "cuMemcpyDtoD_v2", (drv_ptr dst, drv_ptr src, size_t bytes))                     \
    _(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                     \
      (drv_ptr dst, const void *src, size_t bytes, struct drv_stream *s))                          \
    _(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                     \
      (void *dst, drv_ptr src, size_t bytes, struct drv_stream *s))                                \
    _(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                     \
      (drv_ptr dst, drv_ptr src, size_t bytes, struct drv_stream * s))                             \
    _(MemsetD8, "cuMemsetD8_v2", (drv_ptr dst, unsigned char v, size_t n))                         \
    _(MemsetD32, "cuMemsetD32_v2", (drv_ptr dst, unsigned v, size_t n))                            \
    _(MemsetD8Async, "cuMemsetD8Async",                                                            \
      (drv_ptr dst, unsigned char v, size_t n, struct drv_stream *s))                              \
    _(MemsetD32Async, "cuMemsetD32Async",                                                          \
      (drv_ptr dst, unsigned v, size_t n, struct drv_stream *s))                                   \
    _(ModuleLoadData, "cuModuleLoadData", (struct drv_module * *m, const void *image))             \
    _(ModuleUnload, "cuModuleUnload", (struct drv_module * m))                                     \
    _(ModuleGetFunction, "cuModuleGetFunction",                                                    \
      (struct drv_func * *f, struct drv_module * m, const char *name))                             \
    _(ModuleGetGlobal, "cuModuleGetGlobal_v2",                                                     \
      (drv_ptr * p, size_t * bytes, struct drv_module * m, const char *name))                      \
    _(FuncGetAttribute, "cuFuncGetAttribute", (int *v, int attribute, struct drv_func *f))         \
    _(FuncSetAttribute, "cuFuncSetAttribute", (struct drv_func * f, int attribute, int v))         \
    _(LaunchKernel, "cuLaunchKernel",                                                              \
      (struct drv_func * f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned smem, struct drv_stream *s, void **args, void **extra))               \
    _(LaunchKernelEx, "cuLaunchKernelEx",                                                          \
      (const struct drv_launch *how, struct drv_func *f, void **args, void **extra))               \
    _(OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",    \
      (int *blocks, struct drv_func *f, int threads, size_t dyn_smem))                             \
    _(StreamCreate, "cuStreamCreate", (struct drv_stream * *s, unsigned flags))                    \
    _(StreamDestroy, "cuStreamDestroy_v2", (struct drv_stream * s))                                \
    _(StreamSynchronize, "cuStreamSynchronize", (struct drv_stream * s))                           \
    _(StreamQuery, "cuStreamQuery", (struct drv_stream * s))                                       \
    _(StreamWaitEvent, "cuStreamWaitEvent",                                                        \
      (struct drv_stream * s, struct drv_event * e, unsigned flags))                               \
    _(EventCreate, "cuEventCreate", (struct drv_event * *e, unsigned flags))                       \
    _(EventDestroy, "cuEventDestroy_v2", (struct drv_event * e))                                   \
    _(EventRecord, "cuEventRecord", (struct drv_event * e, struct drv_stream * s))                 \
    _(EventQuery, "cuEventQuery", (struct drv_event * e))                                          \
    _(EventSynchronize, "cuEventSynchronize", (struct drv_event * e))                              \
    _(EventElapsedTime, "cuEventElapsedTime",                                                      \
      (float *ms, struct drv_event *start, struct drv_event *end))                                 \
    _(StreamBeginCapture, "cuStreamBeginCapture_v2", (struct drv_stream * s, int mode))            \
    _(StreamEndCapture, "cuStreamEndCapture", (struct drv_stream * s, struct drv_graph * *g))      \
    _(GraphInstantiate, "cuGraphInstantiateWithFlags",                                             \
      (struct drv_graph_exec * *x, struct drv_graph * g, unsigned long long flags))                \
    _(GraphLaunch, "cuGraphLaunch", (struct drv_graph_exec * x, struct drv_stream * s))            \
    _(GraphDestroy, "cuGraphDestroy", (struct drv_graph * g))                                      \
    _(GraphExecDestroy, "cuGraphExecDestroy", (struct drv_graph_exec * x))

struct driver {
    void *lib;
    int version; /* 13000 = CUDA 13.0 */
#define DRIVER_FIELD(field, symbol, args) drv_result(*field) args;
    DRIVER_CALLS(DRIVER_FIELD)
#undef DRIVER_FIELD
};

/* Opens libcuda.so.1 ($SASSTOP_LIBCUDA names another file, for tests), finds every call and runs
 * cuInit. ERR_UNAVAILABLE with the cause when there is no driver, none of the calls, or no GPU.
 * *out is NULL on failure; release with driver_close(). */
enum status driver_open(struct driver **out);
void driver_close(struct driver *d); /* NULL is fine; no call may be in flight */

/* OK for 0; else ERR_FAILED with "what: NAME (text)". */
enum status driver_check(const struct driver *d, drv_result r, const char *what);

/* "CUDA_ERROR_ILLEGAL_ADDRESS", or "CUDA error N" for an unknown one. Never NULL. */
const char *driver_error_name(const struct driver *d, drv_result r);

/* A device attribute (DRV_DEV_*), or `missing` when this driver doesn't know it. */
int driver_attribute(const struct driver *d, int dev, int attribute, int missing);

/* "580.159.04": what the kernel module says of itself; else "CUDA 13.0". */
void driver_name(const struct driver *d, char *out, size_t size);

#endif
