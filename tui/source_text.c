/* Job: source files by line; see source_text.h. A path out of a cubin is opened for reading only
 * when it is a regular file, so that no device or pipe is ever touched. */
#include "tui/source_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void drop(struct source_file *f)
{
    free(f->path);
    free(f->text);
    free(f->lines);
    *f = (struct source_file){0};
}

static char *read_text(const char *path, size_t *size)
{
    struct stat sb;
    if (stat(path, &sb) || !S_ISREG(sb.st_mode) || sb.st_size > SOURCE_FILE_MAX) return NULL;
    FILE *f = fopen(path, "rb");
    char *text = f ? malloc((size_t)sb.st_size + 1) : NULL;
    if (text) {
        *size = fread(text, 1, (size_t)sb.st_size, f);
        text[*size] = 0;
    }
    if (f) fclose(f);
    return text;
}

static void split(struct source_file *f, size_t size)
{
    uint32_t n = 1;
    for (size_t i = 0; i < size; i++) n += f->text[i] == '\n';
    f->lines = malloc(n * sizeof *f->lines);
    if (!f->lines) return;
    char *at = f->text;
    for (; f->nlines < n; f->nlines++) {
        char *end = strchr(at, '\n');
        f->lines[f->nlines] = at;
        if (!end) {
            f->nlines++;
            break;
        }
        *end = 0;
        at = end + 1;
    }
}

static struct source_file *find(struct source_text *s, const char *path)
{
    size_t size = 0;
    for (unsigned i = 0; i < s->n; i++)
        if (!strcmp(s->files[i].path, path)) return &s->files[i];
    if (s->n == SOURCE_FILES_KEPT) {
        drop(&s->files[0]);
        memmove(s->files, s->files + 1, sizeof s->files - sizeof s->files[0]);
        s->n--;
    }
    struct source_file *f = &s->files[s->n];
    *f = (struct source_file){.path = strdup(path), .text = read_text(path, &size)};
    if (!f->path) {
        drop(f);
        return NULL;
    }
    s->n++;
    if (f->text) split(f, size);
    return f;
}

const char *source_text_line(struct source_text *s, const char *path, uint32_t line)
{
    const struct source_file *f = find(s, path);
    return f && f->lines && line >= 1 && line <= f->nlines ? f->lines[line - 1] : NULL;
}

void source_text_free(struct source_text *s)
{
    for (unsigned i = 0; i < s->n; i++) drop(&s->files[i]);
    s->n = 0;
}
