/*
 * The engine's command line, parsed and checked once.
 *
 * options_parse() fills a struct whose strings are argv's own: it lives as long as argv. Nothing is
 * allocated. One thread, at start.
 */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    OPTIONS_MAX_PREFILL = 1 << 16, /* tokens of a bench prefill */
    OPTIONS_MAX_DECODE = 1 << 16,  /* tokens of a decode */
    OPTIONS_MAX_ROUNDS_OF_A_KIND = 1000,
    OPTIONS_MAX_THREADS = 256,
};

/* A scripted fault (tests only): what happens, where, and at which count or variant. */
enum fault_what { FAULT_NONE, FAULT_EXIT, FAULT_KILL, FAULT_HANG, FAULT_ERROR };
enum fault_where { FAULT_AT_ROUND, FAULT_AT_PREFILL, FAULT_AT_DECODE, FAULT_AT_VARIANT };

struct script_fault {
    enum fault_what what;
    enum fault_where where;
    uint32_t round;   /* 1.. for all but FAULT_AT_VARIANT */
    const char *name; /* FAULT_AT_VARIANT */
};

struct options {
    int fd; /* -1: none given */
    const char *model, *backend, *prompt, *sources, *exact, *variant, *session, *command, *logits;
    const char *timer;        /* where rounds are timed: auto, own, here (engine/timer.h) */
    const char *timer_fault;  /* a scripted fault of the process for timed rounds; NULL = none */
    uint32_t timer_of;        /* this is that process, of the engine with this pid; 0 = no */
    const char *executed;     /* what collect_request("sassexec") takes; NULL: on request alone */
    uint32_t prefill, decode; /* bench: tokens; 0 = the backend's default */
    uint32_t tokens;          /* prompt: tokens to make */
    uint32_t rounds;          /* 0 = until told */
    uint32_t kd;              /* 0 = default */
    uint32_t blocks;          /* forced on an SM by padding; 0 = none */
    uint32_t timed, counted;  /* schedule */
    uint32_t threads, context;
    uint64_t seed, epoch_ns, instance;
    uint64_t rest_ns; /* between turns of the counters; 0 = default */
    uint32_t generation_base;
    bool graphs, parity, doctor, json, help;
    struct script_fault fault;
};

/* ERR_USAGE with the option and what it takes. --script-fault is refused unless SASSTOP_TEST=1. */
enum status options_parse(int argc, char **argv, struct options *out);

/* "2.5" -> ns. ERR_USAGE outside 0.05 to 3600 s. */
enum status options_rest(const char *text, uint64_t *ns);

/* The text of --help. Static. */
const char *options_usage(void);

/* "pp512,tg64" -> 512, 64. Either part may be missing and is then 0. */
enum status options_bench(const char *text, uint32_t *prefill, uint32_t *decode);

#endif
