/*
 * A session made of files instead of an engine's frames: every kernel of some cubins, fatbins or
 * host programs as rows that the views show, each file a generation. What `sasstop sass --open` and
 * --save show and write; nothing in it was measured. One thread.
 */
#ifndef TUI_CODE_SESSION_H
#define TUI_CODE_SESSION_H

#include "base/status.h"

enum { CODE_SESSION_FILES_MAX = 64, CODE_SESSION_KERNELS_MAX = 200 };

/* Writes the session file `out`, which must not exist yet. `arch` (NULL: all) picks cubins. A
 * kernel NAME_kd8 gets the role kd8, others their name, so that the diff view pairs files by it.
 * Kernels past the limit are left out with a log line. ERR_FAILED when there are none. */
enum status code_session_write(const char *out, char *const *files, int nfiles, const char *arch);

#endif
