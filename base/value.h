/*
 * A number with its state: the only way a figure reaches a screen or a report.
 *
 * 0 never stands for "not measured": a value that is not VALUE_OK is drawn as its state, and its
 * `why` (static or session-owned text, never freed here, may be NULL) says the reason.
 */
#ifndef BASE_VALUE_H
#define BASE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_state {
    VALUE_UNAVAILABLE = 0, /* zero-initialised = unknown, on purpose */
    VALUE_OK,
    VALUE_PENDING,  /* being collected */
    VALUE_STALE,    /* was measured, its source has stopped */
    VALUE_OVERFLOW, /* the collector lost data: the figure would lie */
    VALUE_FAULT,    /* the measured thing failed */
    VALUE_ESTIMATE, /* not measured by itself: solved for from what was; `spread` tells how well */
};

struct value {
    double v;
    enum value_state state;
    const char *why;
    const char *source; /* counter source that gave it ("pm", "range", "events"...), or NULL */
    double spread;      /* interquartile range in the figure's unit; < 0 = not known */
    uint32_t n;         /* samples behind it; 0 = not counted */
};

struct value value_ok(double v, const char *source);
struct value value_spread(double v, double spread, uint32_t n, const char *source);
struct value value_missing(enum value_state state, const char *why);

/* Whether it holds a number: ok, stale or an estimate. */
bool value_known(const struct value *v);

/* Lower-case name of a state ("ok", "unavailable"...), as in reports. */
const char *value_state_name(enum value_state state);

/* At most `width` columns: the number with `%.{prec}f`-like rounding chosen to fit (SI suffixes
 * k M G T from 100,000 on when `si`), or the state's sign: "-" unavailable, "..." pending,
 * "ovf", "FAULT". A stale number carries a trailing '~' when it fits, an estimate
 * a leading one. Returns `buf`. */
char *value_format(const struct value *v, int width, int prec, int si, char *buf, size_t size);

#endif
