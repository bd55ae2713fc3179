/* Job: the fuzz targets of GGUF and session files. */
#include "engine/model.h"
#include "engine/tokenizer.h"
#include "session/model.h"
#include "session/record.h"
#include "session/report.h"
#include "tests/lib/fuzz_targets.h"

#include <stdlib.h>
#include <string.h>

static void release(void *data, size_t len)
{
    (void)len;
    free(data);
}

/* Every key through a getter, every tensor's bytes, a text through the tokenizer. */
static void use_model(const struct model *m)
{
    const struct gguf *g = model_gguf(m);
    volatile uint64_t sum = 0;
    int32_t *ids;
    size_t n;
    for (size_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        for (size_t k = 0; k < t->bytes; k += 64) sum += ((const uint8_t *)t->data)[k];
    }
    if (tokenizer_encode(model_tokenizer(m), "Hello \xff 12", 10, 3, &ids, &n) == OK) {
        char out[64];
        for (size_t i = 0; i < n; i++)
            sum += tokenizer_decode(model_tokenizer(m), ids[i], out, sizeof out);
        free(ids);
    }
}

void fuzz_gguf(const uint8_t *data, size_t size)
{
    struct gguf *g;
    struct model *m;
    uint8_t *own = malloc(size ? size : 1);
    if (!own) abort();
    if (size) memcpy(own, data, size);
    if (gguf_open_memory(own, size, "fuzz", release, &g)) return;
    if (model_open_gguf(g, false, &m)) return;
    use_model(m);
    model_close(m);
}

static void print_all(const struct session *s)
{
    struct buf b = {0};
    report_summary(s, &b);
    for (const char *const *ext = (const char *const[]){"md", "json", NULL}; *ext; ext++) {
        const struct report_ops *ops = report_find(*ext);
        if (ops) ops->write(s, &b);
    }
    buf_free(&b);
}

static void apply_frames(struct session *s, const uint8_t *p, size_t size)
{
    struct rd r = rd_make(p, size);
    uint64_t t = 0;
    while (rd_left(&r) >= 4) {
        struct frame f = {.type = rd_u8(&r), .version = (uint16_t)(rd_u8(&r) & 3)};
        size_t n = rd_u16(&r);
        if (n > rd_left(&r)) n = rd_left(&r);
        f.len = (uint32_t)n;
        f.t_ns = t += 1000 * n;
        f.payload = rd_bytes(&r, n);
        session_apply(s, &f);
    }
}

static void apply_file(struct session *s, const uint8_t *p, size_t size)
{
    struct reader *r;
    struct frame f;
    if (reader_open_memory(p, size, &r)) return;
    while (reader_next(r, &f) == OK) session_apply(s, &f);
    reader_close(r);
}

void fuzz_session(const uint8_t *data, size_t size)
{
    struct session s;
    if (session_init(&s)) return;
    if (size >= 8 && !memcmp(data, "SASSTOP\n", 8))
        apply_file(&s, data, size);
    else
        apply_frames(&s, data, size);
    print_all(&s);
    session_free(&s);
}
