/* The Makefile passes both strings to this file alone, so that a commit rebuilds one object. */
#include "base/version.h"

#ifndef SASSTOP_VERSION
#define SASSTOP_VERSION "unknown"
#endif
#ifndef SASSTOP_COMMIT
#define SASSTOP_COMMIT "unknown"
#endif

const char *version_string(void)
{
    return SASSTOP_VERSION;
}

const char *version_commit(void)
{
    return SASSTOP_COMMIT;
}
