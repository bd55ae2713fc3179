/* What build this is. Both strings are static. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

const char *version_string(void); /* "0.1.0" */
const char *version_commit(void); /* short hash, "-dirty" when edited, or "unknown" */

#endif
