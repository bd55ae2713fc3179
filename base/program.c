/* See program.h. */
#include "base/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool beside(const char *name, char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash) return false;
    if (!name) return true;
    size_t room = size - (size_t)(slash + 1 - out);
    return (size_t)snprintf(slash + 1, room, "%s", name) < room;
}

bool program_find(const char *env, const char *name, char *out, size_t size)
{
    const char *asked = getenv(env);
    if (asked && *asked)
        snprintf(out, size, "%s", asked);
    else if (!beside(name, out, size))
        *out = '\0';
    return access(out, X_OK) == 0;
}
