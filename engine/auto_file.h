/*
 * The bench file of `--variant auto`: times of GEMM kernels on a model's shapes, made by kcheck on
 * this machine and kept.
 *
 * One JSON file a device and driver: $SASSTOP_CACHE, else $XDG_CACHE_HOME/sasstop, else
 * ~/.cache/sasstop, /bench-DEVICE-DRIVER.json. A row holds the hash of the kernel's code, so that a
 * kernel built anew is measured anew. Written to a name of its own and renamed: a reader sees the
 * old file or the new one. A file that is damaged or of another device is made anew, which `note`
 * says. Owned by its caller, one thread.
 */
#ifndef ENGINE_AUTO_FILE_H
#define ENGINE_AUTO_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    AUTO_FILE_FORMAT = 1,
    AUTO_FILE_BYTES = 8 << 20, /* a larger one is none of ours */
    AUTO_ROWS_MAX = 20000,
    AUTO_US_MAX = 1000000000, /* us of a launch; longer ones are none */
};

struct auto_row {
    char family[24], kernel[40];
    uint64_t code_hash;
    uint32_t mnk[3];
    char state[12]; /* kcheck's: "ok", "failed", "refused"...; only "ok" has a time */
    double us;      /* of a launch with cold inputs */
};

struct auto_file {
    char path[4096]; /* "": nowhere to keep it */
    char device[64], driver[32];
    char note[400]; /* what was wrong with the file that was there; "" = nothing */
    struct auto_row *rows;
    uint32_t n, cap;
};

/* Reads the file of this device and driver. Never fails for what it finds there: f->note. */
enum status auto_file_open(struct auto_file *f, const char *device, const char *driver);
/* The row of this code on this shape, or NULL. */
const struct auto_row *auto_file_find(const struct auto_file *f, const char *family,
                                      const char *kernel, uint64_t code_hash,
                                      const uint32_t mnk[3]);
/* Adds a row in the place of one of the same kernel and shape. */
enum status auto_file_put(struct auto_file *f, const struct auto_row *row);
/* ERR_IO: not kept, with the reason; what is in memory stays good. */
enum status auto_file_save(const struct auto_file *f);
void auto_file_free(struct auto_file *f);

#endif
