/*
 * `auto`: each product of a prefill runs the kernel that was fastest on its shape, among those that
 * kcheck found sound there. "auto" chooses within the numeric class of the variant that the family
 * starts with; "auto:any" among all classes, so that products of one model may then round
 * differently. Times are kept (auto_file.h), so only the first run on a machine measures, and a run
 * with new shapes or kernels those. Launching thread.
 */
#ifndef ENGINE_AUTO_H
#define ENGINE_AUTO_H

#include "engine/engine.h"

/* Whether a variant's name is one of the two above. */
bool auto_is(const char *variant);

/* Measures what is missing, chooses, and selects `name` for the family (NULL: for all that have a
 * choice). What came of it is written to text[size], each shape's choice into the log. ERR_AGAIN: a
 * command came while measuring; ERR_UNAVAILABLE: nothing to choose from, or no kcheck. After an
 * error what ran before goes on. */
enum status auto_take(struct engine *e, const char *family, const char *name, char *text,
                      size_t size);

/* The same for families that run under auto already, when the work's shapes have changed. */
enum status auto_refresh(struct engine *e);

#endif
