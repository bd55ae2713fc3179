/*
 * Packing: which metrics of the table a chip knows, and how many passes a set of them takes, by
 * asking CUPTI's Profiler Host API. Needs the library but no GPU and no driver.
 *
 * One name that a chip does not know poisons a host object silently (later adds fail, the image
 * holds only the earlier names): an object that refused a name is thrown away, and each name is
 * then tried on one of its own. Names added one call each get one pass each; added in one call they
 * share passes: a set is always added in one call.
 *
 * A struct pack_set is owned by the caller, freed with pack_free(). It is built once a chip and
 * kept for the life of a source: building costs 5 to 130 ms. Not to be used by two threads at once.
 */
#ifndef CUPTI_PACK_H
#define CUPTI_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "cupti/lib.h"
#include "cupti/metrics.h"

enum { PACK_MAX = 96, PACK_NAME = 128 };

struct pack_set {
    int type; /* CUPTI_TYPE_RANGE or CUPTI_TYPE_PM */
    size_t n;
    uint16_t ids[PACK_MAX];
    const char *names[PACK_MAX]; /* point into text */
    char text[PACK_MAX][PACK_NAME];
    size_t passes;
    void *host; /* evaluates samples of this set */
    uint8_t *config;
    size_t config_size;
    size_t refused;         /* metrics asked for that the chip doesn't know or that don't fit */
    char refused_keys[192]; /* their keys, "a b c", cut to fit */
};

/* Every metric of `sets` that the chip knows, by the first of its names that it knows, in one
 * configuration of any number of passes.
 * ERR_UNAVAILABLE: none is known, or the chip itself isn't (its name is in the message). */
enum status pack_range_set(const struct cupti_lib *lib, const char *chip, unsigned sets,
                           struct pack_set *out);

/* The PM metrics that share one pass, first in the table first: each takes the first of its names
 * that is known and keeps the set at one pass. keys: comma list of metric keys, NULL = all PM
 * metrics; an unknown key is ERR_USAGE. ERR_UNAVAILABLE as above. */
enum status pack_pm_set(const struct cupti_lib *lib, const char *chip, const char *keys,
                        struct pack_set *out);

void pack_free(const struct cupti_lib *lib, struct pack_set *set);

/* Values of one range or sample of a counter image, in the set's order. Units as CUPTI gives them.
 */
enum status pack_evaluate(const struct cupti_lib *lib, const struct pack_set *set,
                          const uint8_t *image, size_t image_size, size_t index, double *values);

/* Is this name known on this chip? */
bool pack_knows(const struct cupti_lib *lib, const char *chip, int type, const char *name);

/* Chips that this libcupti knows; the names are the library's. *n = 0 on failure. */
const char *const *pack_chips(const struct cupti_lib *lib, size_t *n);

#endif
