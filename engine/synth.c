/*
 * Synthetic models: the metadata, the tensor table and the weights; the vocabulary is in
 * synth_vocab.c.
 *
 * Job: lay out a GGUF image for a shape of the table, fill it on several threads, hand it to the
 * reader. Invariants: the image's bytes depend on the shape alone, never on the number of threads;
 * each stream of random numbers belongs to one tensor. To add a model, add a row to `shapes`.
 */
#include "engine/synth.h"

#include "base/buf.h"
#include "engine/synth_priv.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALIGN = 32,
    MAX_THREADS = 64,
    DIRECT_MAX = 16 << 20, /* models up to this many values are quantised value by value */
    CHUNK = 1 << 20,       /* values a work item fills */
    FILE_TYPE_Q4_K_M = 15,
};

static const float WEIGHT_SD = 0.02f, NORM_SD = 0.002f;

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

/* A tensor being laid out. */
struct item {
    char name[48];
    enum quant_type type;
    uint64_t row, rows, offset;
    size_t row_bytes;
    bool norm;
};

struct plan {
    const struct synth_shape *shape;
    struct item *items;
    size_t n_items, data_bytes, data_start;
    uint64_t values;
    uint8_t *image;
    uint8_t *pool[2]; /* Q4_K, Q6_K blocks; NULL: quantise value by value */
};

bool synth_more_bits(uint32_t i, uint32_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static void add_item(struct plan *p, enum quant_type type, uint64_t row, uint64_t rows,
                     const char *name)
{
    struct item *it = &p->items[p->n_items++];
    *it = (struct item){.type = type, .row = row, .rows = rows, .offset = p->data_bytes};
    snprintf(it->name, sizeof it->name, "%s.weight", name);
    it->norm = type == QUANT_F32;
    it->row_bytes = quant_row_bytes(type, row);
    p->data_bytes += (it->row_bytes * rows + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    p->values += row * rows;
}

static void add_layer(struct plan *p, uint32_t l)
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

static void lay_out(struct plan *p)
{
    const struct synth_shape *s = p->shape;
    add_item(p, QUANT_Q4_K, s->d_model, s->vocab, "token_embd");
    for (uint32_t l = 0; l < s->layers; l++) add_layer(p, l);
    add_item(p, QUANT_F32, s->d_model, 1, "output_norm");
    add_item(p, QUANT_Q6_K, s->d_model, s->vocab, "output");
}

static void put_tensor_table(const struct plan *p, struct buf *b)
{
    for (size_t i = 0; i < p->n_items; i++) {
        const struct item *it = &p->items[i];
        synth_put_str(b, it->name, strlen(it->name));
        buf_u32(b, it->norm ? 1 : 2);
        buf_u64(b, it->row);
        if (!it->norm) buf_u64(b, it->rows);
        buf_u32(b, it->type);
        buf_u64(b, it->offset);
    }
}

static void put_header(const struct plan *p, struct buf *b)
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
    n += synth_put_kv_u32(b, "general.alignment", ALIGN);
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

/* Streams: 0 and 1 the pools, 2 + i the values (or the draws) of tensor i. */
static uint64_t stream_of(size_t i)
{
    return 2 + i;
}

static void scale_values(float *v, size_t n, float sd, float mean)
{
    for (size_t i = 0; i < n; i++) v[i] = mean + sd * v[i];
}

static enum status make_pools(struct plan *p)
{
    static const enum quant_type types[2] = {QUANT_Q4_K, QUANT_Q6_K};
    float v[QK_K];
    for (int t = 0; t < 2; t++) {
        size_t bytes = quant_block_bytes(types[t]);
        p->pool[t] = malloc(SYNTH_POOL * bytes);
        if (!p->pool[t]) return err_set(ERR_NOMEM, "synth:%s: no memory", p->shape->name);
        for (size_t i = 0; i < SYNTH_POOL; i++) {
            synth_gauss((uint64_t)t, i * QK_K, v, QK_K);
            scale_values(v, QK_K, WEIGHT_SD, 0);
            quant_quantize_row(types[t], v, p->pool[t] + i * bytes, QK_K);
        }
    }
    return OK;
}

/* Blocks first .. first + n - 1 of a tensor as copies from the pool; both multiples of 4. */
static void fill_from_pool(const struct plan *p, size_t i, uint64_t first, uint64_t n)
{
    const struct item *it = &p->items[i];
    const uint8_t *pool = p->pool[it->type == QUANT_Q6_K];
    size_t bytes = quant_block_bytes(it->type);
    uint8_t *out = p->image + p->data_start + it->offset + first * bytes;
    uint64_t stream = stream_of(i);
    const uint32_t key[2] = {(uint32_t)stream, SYNTH_KEY_DRAW};

    for (uint64_t b = 0; b < n; b += 4) {
        uint64_t group = (first + b) / 4;
        const uint32_t ctr[4] = {(uint32_t)group, (uint32_t)(group >> 32), 0, 0};
        uint32_t w[4];
        synth_philox(ctr, key, w);
        for (uint64_t k = 0; k < 4 && b + k < n; k++, out += bytes)
            memcpy(out, pool + (w[k] % SYNTH_POOL) * bytes, bytes);
    }
}

static void fill_direct(const struct plan *p, size_t i, uint64_t first, uint64_t n)
{
    const struct item *it = &p->items[i];
    uint8_t *out = p->image + p->data_start + it->offset;
    float v[QK_K];
    for (uint64_t at = first; at < first + n; at += QK_K) {
        synth_gauss(stream_of(i), at, v, QK_K);
        scale_values(v, QK_K, it->norm ? NORM_SD : WEIGHT_SD, it->norm ? 1 : 0);
        quant_quantize_row(it->type, v, out + quant_row_bytes(it->type, at), QK_K);
    }
}

struct worker {
    const struct plan *plan;
    unsigned id, count;
};

/* Work items are dealt round-robin over the whole model, so threads end together. */
static void *run_worker(void *arg)
{
    const struct worker *w = arg;
    const struct plan *p = w->plan;
    size_t turn = 0;
    for (size_t i = 0; i < p->n_items; i++) {
        uint64_t values = p->items[i].row * p->items[i].rows;
        for (uint64_t at = 0; at < values; at += CHUNK, turn++) {
            if (turn % w->count != w->id) continue;
            uint64_t n = values - at < CHUNK ? values - at : CHUNK;
            if (p->pool[0] && !p->items[i].norm)
                fill_from_pool(p, i, at / QK_K, n / QK_K);
            else
                fill_direct(p, i, at, n);
        }
    }
    return NULL;
}

static void fill(const struct plan *p, unsigned threads)
{
    pthread_t tid[MAX_THREADS];
    struct worker w[MAX_THREADS];
    bool started[MAX_THREADS] = {false};

    for (unsigned i = 0; i < threads; i++) {
        w[i] = (struct worker){p, i, threads};
        started[i] = i && pthread_create(&tid[i], NULL, run_worker, &w[i]) == 0;
    }
    /* A share whose thread couldn't be started is done here. */
    for (unsigned i = 0; i < threads; i++)
        if (!started[i]) run_worker(&w[i]);
    for (unsigned i = 0; i < threads; i++)
        if (started[i]) pthread_join(tid[i], NULL);
}

static void release_image(void *data, size_t len)
{
    munmap(data, len);
}

static enum status build(struct plan *p, const struct buf *head, unsigned threads,
                         struct gguf **out)
{
    char name[64];
    p->data_start = (head->len + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    size_t total = p->data_start + p->data_bytes;
    void *image = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image == MAP_FAILED)
        return err_set(
            ERR_NOMEM,
            "synth:%s: %.1f GB of memory can't be had; synth:tiny needs 2 MB, and a GGUF file "
            "is mapped",
            p->shape->name, (double)total / 1e9);
    madvise(image, total, MADV_HUGEPAGE);
    memcpy(image, head->data, head->len);
    p->image = image;
    fill(p, threads);
    mprotect(image, total, PROT_READ);
    snprintf(name, sizeof name, "synth:%s", p->shape->name);
    return gguf_open_memory(image, total, name, release_image, out);
}

static unsigned thread_count(unsigned asked)
{
    long cpus = asked ? (long)asked : sysconf(_SC_NPROCESSORS_ONLN);
    return cpus < 1 ? 1 : cpus > MAX_THREADS ? MAX_THREADS : (unsigned)cpus;
}

static const struct synth_shape *find_shape(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}

enum status synth_open(const char *name, unsigned threads, struct gguf **out)
{
    struct plan p = {.shape = find_shape(name)};
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
    lay_out(&p);
    put_header(&p, &head);
    if (head.failed) {
        st = err_set(ERR_NOMEM, "synth:%s: no memory", name);
        goto out;
    }
    if (p.values > DIRECT_MAX && (st = make_pools(&p))) goto out;
    st = build(&p, &head, thread_count(threads), out);
out:
    buf_free(&head);
    free(p.pool[0]);
    free(p.pool[1]);
    free(p.items);
    return st;
}
