/* Private to the paper CUPTI: its state and rules, shared by fake_*.c. */
#ifndef TESTS_FAKE_STATE_H
#define TESTS_FAKE_STATE_H

#include "tests/lib/fake_cupti.h"

enum { MAX_RANGES = 64, MAX_RECORDS = 512 };

struct host {
    size_t names, adds;
    bool poisoned;
};

/* What the fake writes at the head of a counter image or configuration. */
struct image {
    uint64_t magic, first, n;
};
#define MAGIC 0x46414b4543555054ull

struct fake_state {
    size_t pm_pending, pm_next, pm_room;
    bool pm_configured, pm_running;
    bool pc_configured, pc_running, pc_ever_started, pc_dead;
    size_t pc_pending, pc_next;
    struct cupti_pc_data *pc_left;
    bool range_configured, range_running;
    size_t range_pass, ranges, range_room, ranges_lost;
    cupti_buffer_request request;
    cupti_buffer_complete complete;
    struct cupti_kernel_record rec[MAX_RECORDS];
    size_t records, dropped;
    bool overhead_on;
    uint64_t sass_ids[8];
    size_t sass_metrics;
    const char *sass_kernel; /* that ran while counting was on; NULL: none did */
    uint32_t correlation;
    uint64_t clock;
};
extern struct fake_state fake_state;

long fake_scripted(const char *what, long missing);
/* Counts the call; gives the scripted answer. */
cupti_result fake_called(const char *symbol);
cupti_result fake_wrong(cupti_result r, const char *why);
void fake_sass_launch(const char *kernel); /* a kernel runs */

#define ANSWER(symbol)                                                                             \
    do {                                                                                           \
        cupti_result r_ = fake_called(symbol);                                                     \
        if (r_) return r_;                                                                         \
    } while (0)
#define RULE(cond, result)                                                                         \
    do {                                                                                           \
        if (!(cond)) return fake_wrong(result, #cond);                                             \
    } while (0)

/* As a library the calls are emitted under CUPTI's own names. */
#ifdef FAKE_CUPTI_SO
#define CALL(field, symbol, args, level) cupti_result fake_##field args __asm__(symbol);
#else
#define CALL(field, symbol, args, level) cupti_result fake_##field args;
#endif
#include "cupti/calls.def"
#undef CALL

#endif
