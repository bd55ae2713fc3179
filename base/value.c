/* Values and how they are written in a cell; see value.h. */
#include "base/value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct value value_ok(double v, const char *source)
{
    return (struct value){.v = v, .state = VALUE_OK, .source = source, .spread = -1};
}

struct value value_spread(double v, double spread, uint32_t n, const char *source)
{
    return (struct value){.v = v, .state = VALUE_OK, .source = source, .spread = spread, .n = n};
}

struct value value_missing(enum value_state state, const char *why)
{
    return (struct value){.state = state, .why = why, .spread = -1};
}

bool value_known(const struct value *v)
{
    return v->state == VALUE_OK || v->state == VALUE_STALE || v->state == VALUE_ESTIMATE;
}

const char *value_state_name(enum value_state state)
{
    static const char *const names[] = {"unavailable", "ok",    "pending", "stale",
                                        "overflow",    "fault", "estimate"};
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "unavailable";
}

/* Shortens by dropping digits after the point until the text fits. */
static void fit_number(double v, int width, int prec, const char *suffix, char *buf, size_t size)
{
    for (; prec >= 0; prec--) {
        snprintf(buf, size, "%.*f%s", prec, v, suffix);
        if ((int)strlen(buf) <= width) return;
    }
    snprintf(buf, size, "%.0e%s", v, suffix);
    if ((int)strlen(buf) > width) snprintf(buf, size, "%.*s", width, "########");
}

static void format_number(double v, int width, int prec, int si, char *buf, size_t size)
{
    static const struct {
        double unit;
        const char *suffix;
    } scale[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};

    if (!isfinite(v)) {
        snprintf(buf, size, "%.*s", width, isnan(v) ? "nan" : "inf");
        return;
    }
    if (si && fabs(v) >= 1e5)
        for (size_t i = 0; i < sizeof scale / sizeof *scale; i++)
            if (fabs(v) >= scale[i].unit) {
                fit_number(v / scale[i].unit, width, 2, scale[i].suffix, buf, size);
                return;
            }
    fit_number(v, width, prec, "", buf, size);
}

char *value_format(const struct value *v, int width, int prec, int si, char *buf, size_t size)
{
    static const char *const signs[] = {"-", "", "...", "", "ovf", "FAULT"};

    if (size == 0) return buf;
    if (v->state == VALUE_ESTIMATE && size > 1 && width > 1) {
        buf[0] = '~';
        format_number(v->v, width - 1, prec, si, buf + 1, size - 1);
        return buf;
    }
    if (value_known(v)) {
        format_number(v->v, width, prec, si, buf, size);
        size_t len = strlen(buf);
        if (v->state == VALUE_STALE && (int)len < width && len + 1 < size) strcat(buf, "~");
        return buf;
    }
    const char *sign = (unsigned)v->state < 6 ? signs[v->state] : "-";
    snprintf(buf, size, "%.*s", width, sign);
    return buf;
}
