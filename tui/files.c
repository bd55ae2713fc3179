/* Files to choose from; see files.h. */
#include "tui/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static int by_path(const void *x, const void *y)
{
    return strcmp(((const struct found_file *)x)->path, ((const struct found_file *)y)->path);
}

int files_list(const char *folder, const char *tail, struct found_file *out, int max)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;

    if (!d) return 0;
    while (n < max && (e = readdir(d))) {
        size_t len = strlen(e->d_name), t = strlen(tail);
        if (len < t || strcmp(e->d_name + len - t, tail)) continue;
        out[n] = (struct found_file){.bundled = false};
        int used = snprintf(out[n].path, sizeof out[n].path, "%s/%s", folder, e->d_name);
        if (used < 0 || used >= FILE_PATH_MAX) continue;
        out[n].bytes = file_size(out[n].path);
        if (out[n].bytes) n++;
    }
    closedir(d);
    qsort(out, (size_t)n, sizeof *out, by_path);
    return n;
}

int files_bundled(struct found_file *out, int max)
{
    char self[400];

    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 40);
    if (len < 0) return 0;
    self[len] = 0;
    char *slash = strrchr(self, '/');
    if (!slash) return 0;
    snprintf(slash, sizeof self - (size_t)(slash - self), "/../tests/fixtures");
    int all = files_list(self, ".sasstop", out, max), n = 0;
    for (int i = 0; i < all; i++) {
        const char *name = strrchr(out[i].path, '/') + 1;
        if (strncmp(name, "h200", 4)) continue;
        out[n] = out[i];
        out[n++].bundled = true;
    }
    return n;
}
