/*
 * kcheck's parts: comparing outputs (pure), running one variant on the GPU (in a child process),
 * watching such children (in the parent), and printing.
 *
 * The parent never touches the driver: a process that has started CUDA can't fork a usable child.
 * Parent and child talk over one pipe, in struct check_record; all of it single-threaded.
 */
#ifndef KERNELS_KCHECK_H
#define KERNELS_KCHECK_H

#include "base/status.h"
#include "kernels/family.h"
#include "kernels/registry.h"

#include <stdbool.h>
#include <stdint.h>

enum { CHECK_WHY = 240, CHECK_SHAPES_MAX = 64 };

/* What became of one shape of one variant. */
enum disposition {
    CHECK_OK,
    CHECK_FAILED,  /* wrong values, unwritten outputs, or bytes outside the output */
    CHECK_REFUSED, /* the device does not grant its shared memory, or is too old */
    CHECK_FAULT,   /* the driver reported an error, or the child died */
    CHECK_HANG,    /* no sign of life within the time limit: killed */
    CHECK_SKIPPED, /* not tried, because of what happened before */
};

/* Lower-case name: "ok", "failed"... */
const char *check_disposition_name(enum disposition d);

/* ---- compare.c: outputs against the reference ---- */

enum {
    CHECK_GUARD_BYTES = 256 << 10, /* on each side of the output */
    CHECK_GUARD = 0xa5,
    CHECK_SAMPLES = 4096,
    CHECK_FULL_MACS = 1 << 26, /* up to here every output is compared */
};

/* What comparing found. All counts 0 and both ratios at most 1: sound. */
struct comparison {
    long long compared, wrong, unwritten; /* outputs; unwritten = still NaN, or NaN */
    long long guard_bytes;                /* changed outside the output */
    double nmse, nmse_limit;
    double worst; /* largest |error| as a fraction of its limit */
    int worst_token, worst_row;
};

/* `buffer` is guard, y[n][m], guard, as check_buffer_fill() laid it out and a kernel left it. */
void check_compare(const struct kernel_family *fam, const struct variant_desc *d,
                   const struct shape *s, const struct family_inputs *in, const uint8_t *buffer,
                   uint64_t seed, struct comparison *out);

size_t check_buffer_bytes(const struct kernel_family *fam, const struct shape *s);
/* Guards and NaN-filled outputs. */
void check_buffer_fill(const struct kernel_family *fam, const struct shape *s, uint8_t *buffer);

/* True when sound; else the reason is written to why[CHECK_WHY]. */
bool check_verdict(const struct comparison *c, char *why);

/* The i-th sampled output of a shape too large to compare whole; tile edges come first. Returns
 * false at the end. */
bool check_sample(const struct variant_desc *d, const struct shape *s, uint64_t seed, int i,
                  int *token, int *row);

/* ---- child.c: one variant on the GPU ---- */

enum record_type {
    RECORD_DEVICE,  /* text = name; a = sm */
    RECORD_BEGIN,   /* shape index a starts; also a sign of life */
    RECORD_SHAPE,   /* shape index a is done: disposition, nmse, worst, text = why */
    RECORD_SYMPTOM, /* text = what kind of wrong, for broken variants and reports */
    RECORD_BENCH,   /* shape index a: bench, or text = why there is none */
    RECORD_ERROR,   /* text; b = exit status: nothing could be run */
    RECORD_END,
};

/* Microseconds of one launch: medians over batches, and interquartile ranges. */
struct bench_figures {
    double us, iqr;                 /* cold: inputs rotated */
    double hot_us, hot_iqr;         /* the same bytes again and again */
    double rotated;                 /* bytes of the rotated inputs, in sizes of the L2 */
    double cycles;                  /* us times the clocks' mean; 0 = the clock isn't known */
    double ratio, ratio_iqr;        /* time of the one it is held against / its own; 0 = none */
    uint32_t n, launches;           /* cold batches (0 = not timed), launches in one */
    uint32_t mhz_before, mhz_after; /* SM clock by NVML round the cold ones; 0 = not known */
    char throttle[64];              /* reasons, "" = none */
};

struct check_record {
    uint32_t type;
    int32_t a, b;
    uint32_t n;
    double nmse, worst;
    struct bench_figures bench;
    char text[CHECK_WHY];
};

struct check_job {
    const struct registry *reg; /* NULL: only name the device (RECORD_DEVICE) */
    const struct variant *variant;
    const struct shape *shapes;
    int n_shapes;
    uint64_t seed;
    int repeat;
    bool bench, quick;             /* quick: random inputs alone, few and short batches */
    int blocks;                    /* of the bench: forced on an SM by padding; 0: as they are */
    const struct variant *against; /* the bench's ratio; NULL: none */
    /* What the child runs; NULL: check_child. Tests put their own here. */
    int (*child)(const struct check_job *job, int fd);
};

/* Runs in the child: writes records to fd and returns the exit status. */
int check_child(const struct check_job *job, int fd);

/* ---- watch.c: the parent's side ---- */

struct check_result {
    struct shape shape;
    enum disposition disposition;
    bool measured; /* nmse and worst are figures */
    double nmse, worst;
    char why[CHECK_WHY];
    struct bench_figures bench;
};

struct check_report {
    const struct variant *variant;
    char device[CHECK_WHY];
    int sm;
    struct check_result results[CHECK_SHAPES_MAX];
    int n_results;
    char symptom[32]; /* "" = none seen */
    bool ok;          /* good: every shape ok or refused. Broken: the symptom is the expected one */
    bool refused;     /* every shape was */
};

/* Forks a child for the job and watches it. A child silent for `limit_s` seconds is killed.
 * ERR_UNAVAILABLE with the child's words when there is no GPU. */
enum status check_watch(const struct check_job *job, int limit_s, struct check_report *out);

/* ---- print.c ---- */

void check_print_text(const struct check_report *r);
/* One line: {variant, kd, device, results:[{m,n,k,disposition,nmse,worst,why}], symptom, ok}. */
enum status check_print_json(const struct check_report *r);
/* One row a shape under check_csv_head's line. */
void check_print_csv_head(void);
void check_print_csv(const struct check_report *r, const struct variant *against);
void check_print_list(const struct registry *reg);

/* ---- fragments.c: which byte a lane must hold ---- */

/* The sweep of B fragments that unpack raw nibbles in registers, against ldmatrix's places: 8
 * sub-blocks x 32 lanes x 4 registers. Pure; no GPU. Prints the map with `print`. Returns how many
 * registers differ. */
int check_fragments(bool print);

#endif
