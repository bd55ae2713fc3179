/*
 * Figures that follow from exact counters of a row: instructions by work, the mix of pipes,
 * achieved against theoretical occupancy, bank conflicts, traffic against the least there can be.
 *
 * Each is unknown, with the reason of what it lacks, until its counters have come; none stands for
 * a counter that was not counted. Pure; texts are static.
 */
#ifndef SESSION_EXACT_DERIVED_H
#define SESSION_EXACT_DERIVED_H

#include "session/model.h"

struct exact_derived {
    const char *key; /* for reports: "inst_per_gmac" */
    const char *label, *unit;
    const char *needs; /* key of the metric without which a session can't have it */
    const char *meaning;
    struct value (*get)(const struct session *s, const struct row *r);
};

extern const struct exact_derived exact_derived[];
extern const uint32_t nexact_derived;

#endif
