/*
 * Censuses and cubins as frames. A file is read anew for each of its kernels: there are few, once a
 * start, and nothing is kept.
 */
#include "engine/describe_cubin.h"

#include "sass_view/census.h"
#include "session/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 256 << 10 };

static void send_census(struct engine *e, uint32_t kernel, const struct census *s)
{
    struct buf items = {0}, hot = {0};
    struct msg_census m = {.kernel = kernel,
                           .arch = (uint32_t)s->sm,
                           .code_hash = s->code_hash,
                           .total = s->total,
                           .padding = s->padding,
                           .unknown = s->unknown,
                           .hot_macs = census_macs(s, CENSUS_HOT)};
    for (size_t i = 0; i < s->nrows; i++) {
        buf_u32(&hot, s->rows[i].n[CENSUS_HOT]);
        pack_census_item(&items, s->rows[i].key, insn_class_name((enum insn_class)s->rows[i].cls),
                         s->rows[i].n[CENSUS_ALL], s->rows[i].n[CENSUS_LOOP]);
    }
    m.items = (struct blob){items.data, (uint32_t)items.len};
    if (s->loops_known) m.hot = (struct blob){hot.data, (uint32_t)hot.len};
    if (!items.failed && !hot.failed) emit_send(e->emit, FRAME_CENSUS, &m);
    buf_free(&items);
    buf_free(&hot);
}

static void send_module(struct engine *e, uint64_t hash, const uint8_t *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += PIECE) {
        struct msg_module m = {.cubin_hash = hash, .total = (uint32_t)n, .offset = (uint32_t)at};
        m.bytes = (struct blob){bytes + at, (uint32_t)(n - at < PIECE ? n - at : PIECE)};
        emit_send(e->emit, FRAME_MODULE, &m);
    }
}

/* The whole file; NULL when it can't be read. The caller frees it. */
static uint8_t *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = NULL;
    long size = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) size = ftell(f);
    if (size > 0 && size <= CUBIN_SIZE_MAX && fseek(f, 0, SEEK_SET) == 0)
        bytes = malloc((size_t)size);
    if (bytes && fread(bytes, 1, (size_t)size, f) != (size_t)size) {
        free(bytes);
        bytes = NULL;
    }
    if (f) fclose(f);
    *n = bytes ? (size_t)size : 0;
    return bytes;
}

enum status describe_open(const struct kernel_info *k, struct cubin *c, uint8_t **bytes, size_t *n)
{
    *n = 0;
    *bytes = k->cubin_path ? read_file(k->cubin_path, n) : NULL;
    if (!*bytes)
        return err_set(ERR_UNAVAILABLE, "%s",
                       k->cubin_path ? "its cubin can't be read any more" : "it has no cubin");
    enum status st = cubin_open_memory(c, *bytes, *n, k->cubin_path);
    if (st != OK) free(*bytes);
    return st;
}

static bool first_of_file(const struct kernel_info *list, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (list[j].cubin_path && list[j].cubin_hash == list[i].cubin_hash) return false;
    return true;
}

void describe_cubin(struct engine *e, const struct kernel_info *list, uint32_t i)
{
    struct cubin c;
    struct census s;
    size_t n;
    uint8_t *bytes;
    if (!list[i].cubin_path) return;
    if (describe_open(&list[i], &c, &bytes, &n) != OK) {
        emit_log(e->emit, 1, "no census of %s: %s", list[i].name, err_msg());
        return;
    }
    const struct cubin_kernel *k = cubin_find_kernel(&c, list[i].name);
    if (k && census_make(&s, &c, k) == OK) {
        send_census(e, i, &s);
        census_free(&s);
    }
    if (first_of_file(list, i)) send_module(e, list[i].cubin_hash, bytes, n);
    cubin_close(&c);
    free(bytes);
}
