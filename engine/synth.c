/*
 * Synthetic models: shapes, metadata and tensor table; the vocabulary is in synth_vocab.c, the
 * weights in synth_fill.c.
 *
 * Job: lay out a GGUF image for a shape of the table, have it filled, hand it to the reader.
 * Invariant: the image's bytes depend on the shape alone. To add a model, add a row to `shapes`.
 */
#include "engine/synth.h"

#include "base/buf.h"
#include "engine/synth_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    DIRECT_ALIGN = 32,
    DIRECT_MAX = 16 << 20, /* models up to this many values are quantised value by value */
    FILE_TYPE_Q4_K_M = 15,
};

/* d_model and d_ff are multiples of 256, the K types' block. */
static const struct synth_shape shapes[] = {
    {.name = "tiny",
     .title = "synthetic tiny",
     .layers = 2,
     .d_model = 256,
     .d_ff = 512,
     .heads = 4,
     .kv_heads = 4,
     .head_dim = 64,
     .vocab = 512,
     .context = 4096,
     .rope_base = 10000},
    {.name = "llama3-8b",
     .title = "synthetic llama3-8b",
     .layers = 32,
     .d_model = 4096,
     .d_ff = 14336,
     .heads = 32,
     .kv_heads = 8,
     .head_dim = 128,
     .vocab = 128256,
     .context = 8192,
     .rope_base = 500000},
};

bool synth_more_bits(uint32_t i, uint32_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static void add_item(struct synth_plan *p, enum quant_type type, uint64_t row, uint64_t rows,
                     const char *name)
{
    struct synth_item *it = &p->items[p->n_items++];
    *it = (struct synth_item){.type = type, .row = row, .rows = rows, .offset = p->data_bytes};
    snprintf(it->name, sizeof it->name, "%s.weight", name);
    it->norm = type == QUANT_F32;
    it->bytes = quant_row_bytes(type, row) * rows;
    p->data_bytes += (it->bytes + p->align - 1) & ~(p->align - 1);
}

static void add_layer(struct synth_plan *p, uint32_t l)
{
    const struct synth_shape *s = p->shape;
    uint64_t d = s->d_model, q = (uint64_t)s->heads * s->head_dim,
             kv = (uint64_t)s->kv_heads * s->head_dim;
    enum quant_type more = synth_more_bits(l, s->layers) ? QUANT_Q6_K : QUANT_Q4_K;
    const struct {
        const char *part;
        enum quant_type type;
        uint64_t row, rows;
    } parts[] = {
        {"attn_norm", QUANT_F32, d, 1},       {"attn_q", QUANT_Q4_K, d, q},
        {"attn_k", QUANT_Q4_K, d, kv},        {"attn_v", more, d, kv},
        {"attn_output", QUANT_Q4_K, q, d},    {"ffn_norm", QUANT_F32, d, 1},
        {"ffn_gate", QUANT_Q4_K, d, s->d_ff}, {"ffn_up", QUANT_Q4_K, d, s->d_ff},
        {"ffn_down", more, s->d_ff, d},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[32];
        snprintf(name, sizeof name, "blk.%u.%s", l, parts[i].part);
        add_item(p, parts[i].type, parts[i].row, parts[i].rows, name);
    }
}

static void lay_out(struct synth_plan *p)
{
    const struct synth_shape *s = p->shape;
    add_item(p, QUANT_Q4_K, s->d_model, s->vocab, "token_embd");
    for (uint32_t l = 0; l < s->layers; l++) add_layer(p, l);
    add_item(p, QUANT_F32, s->d_model, 1, "output_norm");
    add_item(p, QUANT_Q6_K, s->d_model, s->vocab, "output");
}

static void put_tensor_table(const struct synth_plan *p, struct buf *b)
{
    for (size_t i = 0; i < p->n_items; i++) {
        const struct synth_item *it = &p->items[i];
        synth_put_str(b, it->name, strlen(it->name));
        buf_u32(b, it->norm ? 1 : 2);
        buf_u64(b, it->row);
        if (!it->norm) buf_u64(b, it->rows);
        buf_u32(b, it->type);
        buf_u64(b, it->offset);
    }
}

static void put_header(const struct synth_plan *p, struct buf *b)
{
    const struct synth_shape *s = p->shape;
    buf_put(b, "GGUF", 4);
    buf_u32(b, 3);
    buf_u64(b, p->n_items);
    size_t count_at = b->len;
    buf_u64(b, 0);
    uint64_t n = 0;
    n += synth_put_kv_str(b, "general.architecture", "llama");
    n += synth_put_kv_str(b, "general.name", s->title);
    n += synth_put_kv_u32(b, "general.file_type", FILE_TYPE_Q4_K_M);
    n += synth_put_kv_u32(b, "general.alignment", (uint32_t)p->align);
    n += synth_put_kv_u32(b, "llama.block_count", s->layers);
    n += synth_put_kv_u32(b, "llama.context_length", s->context);
    n += synth_put_kv_u32(b, "llama.embedding_length", s->d_model);
    n += synth_put_kv_u32(b, "llama.feed_forward_length", s->d_ff);
    n += synth_put_kv_u32(b, "llama.attention.head_count", s->heads);
    n += synth_put_kv_u32(b, "llama.attention.head_count_kv", s->kv_heads);
    n += synth_put_kv_u32(b, "llama.rope.dimension_count", s->head_dim);
    n += synth_put_kv_f32(b, "llama.rope.freq_base", s->rope_base);
    n += synth_put_kv_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    n += synth_put_vocab(b, s->vocab);
    if (!b->failed)
        for (int i = 0; i < 8; i++) b->data[count_at + (size_t)i] = (uint8_t)(n >> 8 * i);
    put_tensor_table(p, b);
}

static void release_image(void *data, size_t len)
{
    munmap(data, len);
}

static enum status build(struct synth_plan *p, const struct buf *head, unsigned threads,
                         struct gguf **out)
{
    char name[64];
    p->data_start = (head->len + p->align - 1) & ~(p->align - 1);
    size_t total = p->data_start + p->data_bytes;
    void *image = mmap(NULL, total, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (image == MAP_FAILED)
        return err_set(
            ERR_NOMEM,
            "synth:%s: %.1f GB of address space can't be had (ulimit -v?); synth:tiny needs "
            "2 MB",
            p->shape->name, (double)total / 1e9);
    memcpy(image, head->data, head->len);
    p->image = image;
    enum status st = synth_fill(p, threads);
    if (st) {
        munmap(image, total);
        return st;
    }
    mprotect(image, total, PROT_READ);
    snprintf(name, sizeof name, "synth:%s", p->shape->name);
    return gguf_open_memory(image, total, name, release_image, out);
}

static uint64_t count_values(const struct synth_shape *s)
{
    uint64_t attn = 2ull * s->d_model * s->head_dim * (s->heads + s->kv_heads);
    return s->layers * (attn + 3ull * s->d_model * s->d_ff) + 2ull * s->d_model * s->vocab;
}

static const struct synth_shape *find_shape(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}

enum status synth_open(const char *name, unsigned threads, struct gguf **out)
{
    struct synth_plan p = {.shape = find_shape(name)};
    struct buf head = {0};
    enum status st;

    *out = NULL;
    if (!p.shape)
        return err_set(ERR_USAGE,
                       "there is no synthetic model \"%.40s\"; known: synth:tiny, "
                       "synth:llama3-8b",
                       name);
    p.items = calloc((size_t)p.shape->layers * 9 + 3, sizeof *p.items);
    if (!p.items) return err_set(ERR_NOMEM, "synth:%s: no memory", name);
    p.windows = count_values(p.shape) > DIRECT_MAX;
    p.align = p.windows ? SYNTH_WINDOW_ALIGN : DIRECT_ALIGN;
    lay_out(&p);
    put_header(&p, &head);
    if (head.failed) {
        st = err_set(ERR_NOMEM, "synth:%s: no memory", name);
        goto out;
    }
    st = build(&p, &head, threads, out);
out:
    buf_free(&head);
    free(p.items);
    return st;
}
