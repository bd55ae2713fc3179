/* See model_cache.h; the cache's place is that of tools/model.sh. */
#include "tests/lib/model_cache.h"

#include "engine/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void cache_path(const char *file, char *out, size_t size)
{
    const char *own = getenv("SASSTOP_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    if (own && *own)
        snprintf(out, size, "%s/%s", own, file);
    else if (xdg && *xdg)
        snprintf(out, size, "%s/sasstop/%s", xdg, file);
    else
        snprintf(out, size, "%s/.cache/sasstop/%s", home ? home : "", file);
}

struct model *model_cache_open(const char *file)
{
    char path[4096];
    struct model *m;
    cache_path(file, path, sizeof path);
    if (access(path, R_OK) != 0) {
        print_message("skipped: %s isn't in the cache (tools/model.sh fetches it)\n", file);
        skip();
    }
    if (model_open(path, &m) != OK) fail_msg("%s", err_msg());
    return m;
}
