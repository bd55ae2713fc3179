/* Where the programs of this build lie: each beside the others. Any thread. */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The program that $env names; else `name` in the folder of the running one, or (NULL) that one
 * itself. False when it can't be run: out[size] then holds where it was looked for, "" when even
 * that can't be told. */
bool program_find(const char *env, const char *name, char *out, size_t size);

#endif
