/* See auto_file.h. A row that can't be understood damages the file: all of it is measured anew. */
#include "engine/auto_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the place ---- */

static bool cache_folder(char *out, size_t size)
{
    const char *own = getenv("SASSTOP_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int n = own && *own     ? snprintf(out, size, "%s", own)
            : xdg && *xdg   ? snprintf(out, size, "%s/sasstop", xdg)
            : home && *home ? snprintf(out, size, "%s/.cache/sasstop", home)
                            : -1;
    return n > 0 && (size_t)n < size;
}

static void file_word(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++) {
        bool plain = (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
                     (*text >= 'A' && *text <= 'Z') || *text == '.';
        out[n++] = plain ? *text : '_';
    }
    out[n] = '\0';
}

static void place(struct auto_file *f)
{
    char folder[3800], device[64], driver[32];
    file_word(f->device, device, sizeof device);
    file_word(f->driver, driver, sizeof driver);
    if (cache_folder(folder, sizeof folder))
        snprintf(f->path, sizeof f->path, "%s/bench-%s-%s.json", folder, device, driver);
    else
        snprintf(f->note, sizeof f->note, "no folder to keep the bench file in: set SASSTOP_CACHE");
}

/* ---- reading ---- */

static bool take_text(const cJSON *o, const char *key, char *out, size_t size)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!cJSON_IsString(v) || strlen(v->valuestring) >= size) return false;
    memcpy(out, v->valuestring, strlen(v->valuestring) + 1);
    return true;
}

static bool take_count(const cJSON *o, const char *key, uint32_t *out)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 1 && v->valuedouble <= 1 << 30)) return false;
    *out = (uint32_t)v->valuedouble;
    return true;
}

static bool take_row(const cJSON *o, struct auto_row *r)
{
    char hash[24], *end;
    const cJSON *us = cJSON_GetObjectItemCaseSensitive(o, "us");
    *r = (struct auto_row){.us = (double)NAN};
    if (!take_text(o, "family", r->family, sizeof r->family) ||
        !take_text(o, "kernel", r->kernel, sizeof r->kernel) ||
        !take_text(o, "state", r->state, sizeof r->state) ||
        !take_text(o, "code_hash", hash, sizeof hash) || !take_count(o, "m", &r->mnk[0]) ||
        !take_count(o, "n", &r->mnk[1]) || !take_count(o, "k", &r->mnk[2]))
        return false;
    r->code_hash = strtoull(hash, &end, 16);
    if (end == hash || *end) return false;
    if (strcmp(r->state, "ok")) return true;
    if (!cJSON_IsNumber(us) || !(us->valuedouble > 0 && us->valuedouble < AUTO_US_MAX)) return false;
    r->us = us->valuedouble;
    return true;
}

/* "" when all of it is taken, else what is wrong with it. */
static const char *take_all(struct auto_file *f, const cJSON *root)
{
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(root, "rows"), *o;
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(root, "format");
    char device[64], driver[32];
    struct auto_row r;
    if (!root) return "it is no JSON";
    if (!cJSON_IsNumber(format) || format->valuedouble != AUTO_FILE_FORMAT)
        return "it has another format";
    if (!take_text(root, "device", device, sizeof device) ||
        !take_text(root, "driver", driver, sizeof driver) || !cJSON_IsArray(rows))
        return "a part is missing";
    if (strcmp(device, f->device) || strcmp(driver, f->driver))
        return "it was made on another device or driver";
    cJSON_ArrayForEach(o, rows)
    {
        if (!take_row(o, &r)) return "a row of it is damaged";
        if (f->n == AUTO_ROWS_MAX) return "it has too many rows";
        if (auto_file_put(f, &r) != OK) return "memory ran out";
    }
    return "";
}

static void read_file(struct auto_file *f)
{
    const char *why = "";
    FILE *in = fopen(f->path, "rb");
    if (!in) {
        if (errno != ENOENT)
            snprintf(f->note, sizeof f->note, "%.300s can't be read (%s)", f->path,
                     strerror(errno));
        return;
    }
    char *text = malloc(AUTO_FILE_BYTES + 1);
    size_t n = text ? fread(text, 1, AUTO_FILE_BYTES + 1, in) : 0;
    fclose(in);
    if (n > AUTO_FILE_BYTES || !text) {
        why = text ? "it is too large" : "memory ran out";
    } else {
        cJSON *root = cJSON_ParseWithLength(text, n);
        why = take_all(f, root);
        cJSON_Delete(root);
    }
    free(text);
    if (!*why) return;
    f->n = 0;
    snprintf(f->note, sizeof f->note, "%.300s is made anew: %s", f->path, why);
}

enum status auto_file_open(struct auto_file *f, const char *device, const char *driver)
{
    *f = (struct auto_file){0};
    snprintf(f->device, sizeof f->device, "%s", device);
    snprintf(f->driver, sizeof f->driver, "%s", driver);
    place(f);
    if (*f->path) read_file(f);
    return OK;
}

/* ---- rows ---- */

static struct auto_row *same_place(const struct auto_file *f, const char *family,
                                   const char *kernel, const uint32_t mnk[3])
{
    for (uint32_t i = 0; i < f->n; i++)
        if (!memcmp(f->rows[i].mnk, mnk, sizeof f->rows[i].mnk) &&
            !strcmp(f->rows[i].kernel, kernel) && !strcmp(f->rows[i].family, family))
            return &f->rows[i];
    return NULL;
}

const struct auto_row *auto_file_find(const struct auto_file *f, const char *family,
                                      const char *kernel, uint64_t code_hash, const uint32_t mnk[3])
{
    const struct auto_row *r = same_place(f, family, kernel, mnk);
    return r && r->code_hash == code_hash ? r : NULL;
}

enum status auto_file_put(struct auto_file *f, const struct auto_row *row)
{
    struct auto_row *r = same_place(f, row->family, row->kernel, row->mnk);
    if (r) {
        *r = *row;
        return OK;
    }
    if (f->n == AUTO_ROWS_MAX) f->n = 0; /* years of prompts of other lengths: start over */
    if (f->n == f->cap) {
        uint32_t cap = f->cap ? 2 * f->cap : 64;
        struct auto_row *more = realloc(f->rows, cap * sizeof *more);
        if (!more) return err_set(ERR_NOMEM, "out of memory for times of kernels");
        f->rows = more;
        f->cap = cap;
    }
    f->rows[f->n++] = *row;
    return OK;
}

void auto_file_free(struct auto_file *f)
{
    free(f->rows);
    *f = (struct auto_file){0};
}

/* ---- writing ---- */

static cJSON *row_json(const struct auto_row *r)
{
    char hash[20];
    cJSON *o = cJSON_CreateObject();
    snprintf(hash, sizeof hash, "%016" PRIx64, r->code_hash);
    cJSON_AddStringToObject(o, "family", r->family);
    cJSON_AddStringToObject(o, "kernel", r->kernel);
    cJSON_AddStringToObject(o, "code_hash", hash);
    cJSON_AddNumberToObject(o, "m", r->mnk[0]);
    cJSON_AddNumberToObject(o, "n", r->mnk[1]);
    cJSON_AddNumberToObject(o, "k", r->mnk[2]);
    cJSON_AddStringToObject(o, "state", r->state);
    if (!strcmp(r->state, "ok")) cJSON_AddNumberToObject(o, "us", r->us);
    return o;
}

static char *file_text(const struct auto_file *f)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "format", AUTO_FILE_FORMAT);
    cJSON_AddStringToObject(root, "device", f->device);
    cJSON_AddStringToObject(root, "driver", f->driver);
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (uint32_t i = 0; i < f->n; i++) cJSON_AddItemToArray(rows, row_json(&f->rows[i]));
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return text;
}

/* The folders above the file. */
static void make_folders(const char *path)
{
    char part[4096];
    snprintf(part, sizeof part, "%s", path);
    for (char *p = part + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        (void)mkdir(part, 0777); /* what it can't make, the open below tells */
        *p = '/';
    }
}

enum status auto_file_save(const struct auto_file *f)
{
    char own[4096 + 32];
    if (!*f->path) return err_set(ERR_IO, "%s", f->note);
    char *text = file_text(f);
    if (!text) return err_set(ERR_NOMEM, "out of memory for the bench file");
    make_folders(f->path);
    snprintf(own, sizeof own, "%s.%ld", f->path, (long)getpid());
    FILE *out = fopen(own, "wb");
    bool good = out && fputs(text, out) >= 0 && fflush(out) == 0 && fsync(fileno(out)) == 0;
    if (out && fclose(out) != 0) good = false;
    free(text);
    if (good && rename(own, f->path) == 0) return OK;
    int code = errno;
    if (out) unlink(own);
    return err_set(ERR_IO, "%s can't be written: %s; it is measured again at the next start",
                   f->path, strerror(code));
}
