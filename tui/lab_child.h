/*
 * A process that runs one side of an experiment and times it when asked: `kcheck --serve` for a
 * kernel alone, `sasstop-engine --sources none`, paused between samples, for the whole engine.
 * Neither ever opens libcupti.
 *
 * One owner, one thread; at most one sample is asked for at a time, of all children together: that
 * is what makes a pair. lab_child_end() ends and reaps it, also after errors.
 */
#ifndef TUI_LAB_CHILD_H
#define TUI_LAB_CHILD_H

#include "base/buf.h"
#include "session/proto.h"
#include "tui/engine_child.h"
#include "tui/lab_side.h"

struct lab_sample {
    double us, cold_us, cycles, also_us; /* 0 = not known */
    uint32_t mhz, mw;
    char throttle[64];
};

struct lab_child_options {
    const struct lab_side *side;
    bool engine;
    bool decode;       /* engine: the bar is about decode */
    const char *shape; /* kernel: "M,N,K" */
    struct run_options engine_options;
    unsigned rounds; /* engine: a sample's; the first is the un-warmed one */
};

struct lab_child {
    bool engine, decode, running;
    unsigned rounds;
    struct engine_child process; /* kernel: fd is its stdout, err_fd its stdin */
    struct buf in;
    /* What it said of itself. */
    char device[64], kernel[48], driver[32];
    int sm, sms, clock_mhz, l2_bytes, regs, smem, pad, blocks_per_sm;
    uint64_t code_hash;
    struct msg_hello hello; /* engine */
    bool has_hello;
    /* Of the sample under way. */
    double prefill[64], decode_us[64];
    unsigned nrounds;
    uint32_t mhz, mw;
    char throttle[64];
    bool replied, reply_ok;
    char reply[300], error[300];
};

/* Starts it; returns at once. */
enum status lab_child_start(const struct lab_child_options *o, struct lab_child *c);
/* Waits until it is loaded (and an engine paused). ERR_FAILED or ERR_UNAVAILABLE with its words. */
enum status lab_child_ready(struct lab_child *c);
enum status lab_child_sample(struct lab_child *c, struct lab_sample *out);
/* Engine: checks a variant against the reference; the answer in words. */
enum status lab_child_parity(struct lab_child *c, const struct lab_side *s, bool *ok,
                             char text[300]);
void lab_child_end(struct lab_child *c); /* also fine on a zeroed struct */

/* Set from a signal handler: every wait gives up with ERR_END. */
extern volatile int lab_interrupted;

/* The program beside this one, or the one named in the environment variable. */
enum status lab_program(const char *name, const char *env, char *path, size_t size);

/* Is there an NVIDIA GPU to time kernels on, going by its device files? (Or a stand-in for kcheck.)
 */
bool lab_gpu_here(void);

#endif
