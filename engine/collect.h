/*
 * Between counter sources and frames: decides which rounds are counted and by what, and turns what
 * the sources find into frames.
 *
 * Without a usable source the schedule is --schedule's and the backend's own clock times launches.
 * With sources, cupti/turns.h gives the schedule: spans become SPAN_AGG, PM windows WINDOW_BEGIN,
 * SPANS, PM_SAMPLES, WINDOW_END, PC samples STALLS, exact counters COUNTER, executed counts
 * EXECUTED. A span is a row's only if its launch's tag and its kernel's name agree; else it is of
 * row 0, and counted.
 *
 * Launching thread, except that a decode thread of its own polls a real pm source.
 */
#ifndef ENGINE_COLLECT_H
#define ENGINE_COLLECT_H

#include "engine/backend.h"

#include <stdint.h>

struct engine;
struct collect;

struct collect_plan {
    bool counted;
    bool exact; /* exact_round() is to be run in place of the round */
    enum timing timing;
    const char *source; /* for ROUND; "" when timed. Static */
};

/* Loads and attaches libcupti if a source of it is wanted, so that HELLO can name it: e->cupti, or
 * e->cupti_why. The backend is open. */
void collect_library(struct engine *e);

/* Opens the sources that --sources names; sends METRIC_DEF and SOURCE frames. ERR_USAGE for a name
 * that is none. */
enum status collect_open(struct engine *e, struct collect **out);
void collect_close(struct collect *c); /* NULL is fine */

/* Around a round; the stream is drained. collect_end_pass: ERR_AGAIN = the same work again. */
void collect_begin(struct collect *c, uint32_t round, struct collect_plan *out);
void collect_phase(struct collect *c, const char *phase); /* "prefill", "decode"; static */
enum status collect_end_pass(struct collect *c);
void collect_end(struct collect *c, bool whole); /* not whole: the round's times are forgotten */

/* Between collect_begin() and, in place of everything up to, collect_end(): the passes of exact
 * counters. No ROUND comes of it. ERR_AGAIN: given up, since a command waits; it comes again. */
enum status exact_round(struct engine *e);

/* After collect_end(): whether an exact round, if it was one, made what uncounted ones make. */
void collect_output(struct collect *c, bool equal, uint64_t hash);

/* Ends what is open or armed, so that nothing counted spans two generations and a parity check in
 * another process has the counters to itself. Between rounds. */
void collect_settle(struct collect *c);

/* What runs has changed, and none of it has run yet: PC sampling is primed for it; windows, stalls
 * and exact counters come as soon as possible. */
void collect_after_flip(struct collect *c);

/* A window of "pc", "range" or "sassexec" on a key. range: arg names sets that the next pass counts
 * beside what every one does (--exact, $SASSTOP_EXACT): "sol", "stalls,pipes", "all"; "" = nothing
 * more; "products:sol" counts one layer's products alone, in the very next round. sassexec counts,
 * in the next round, the first launch of each row that arg names: "all" or "", or a kernel, then
 * its role, phase and M N K. `text`: what will come, and in how many passes. ERR_UNAVAILABLE or
 * ERR_USAGE with the reason. */
enum status collect_request(struct collect *c, const char *what, const char *arg, char *text,
                            size_t size);

/* Other seconds of rest between turns, as text; tells what holds from then on in a DUTY frame.
 * ERR_USAGE; ERR_UNAVAILABLE where no counter takes turns. */
enum status collect_rest(struct collect *c, const char *seconds, char *text, size_t size);

/* Hooks for the backend; ctx = the struct engine. Fine before collect_open(). */
struct backend_hooks collect_hooks(struct engine *e);

#endif
