/*
 * Fields of JSON objects that others wrote: what isn't there, or is of another kind, reads as not
 * known, never as a crash. The objects stay the caller's. Any thread.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>

struct cJSON;

/* The number; NAN when there is none of that name. `o` may be NULL. */
double json_number(const struct cJSON *o, const char *key);
/* The text, as long as the object lives; "" when there is none of that name. */
const char *json_text(const struct cJSON *o, const char *key);
/* The text as one line in out[size]: cut to fit, control characters as blanks. */
void json_line(const struct cJSON *o, const char *key, char *out, size_t size);

#endif
