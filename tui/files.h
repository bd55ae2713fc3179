/* Files to choose from. Plain functions, any thread. (Apart from the views because <sys/stat.h> and
 * the statistics of the session can't be included together.) */
#ifndef TUI_FILES_H
#define TUI_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILES_MAX = 64, FILE_PATH_MAX = 512 };

struct found_file {
    char path[FILE_PATH_MAX];
    uint64_t bytes;
    bool bundled;
};

/* Files of a folder whose names end in `tail`, in name order; returns how many, at most max. */
int files_list(const char *folder, const char *tail, struct found_file *out, int max);
uint64_t file_size(const char *path); /* 0 when there is none */
/* The recorded H200 sessions in tests/fixtures of the checkout that this program was built in, in
 * name order; returns how many. */
int files_bundled(struct found_file *out, int max);

#endif
