/*
 * What the synth*.c files share: shapes, random streams and GGUF writing. Nobody else includes
 * this.
 *
 * The synth_put_kv_*() functions append one metadata entry to a buffer and return 1, the number of
 * entries, so that a header can count what it wrote.
 */
#ifndef ENGINE_SYNTH_PRIV_H
#define ENGINE_SYNTH_PRIV_H

#include "base/buf.h"
#include "engine/gguf.h"

/* Second key word of Philox: what the numbers are for. */
enum { SYNTH_KEY_GAUSS = 0x5a55, SYNTH_KEY_DRAW = 0xd2a3 };

struct synth_shape {
    const char *name, *title;
    uint32_t layers, d_model, d_ff, heads, kv_heads, head_dim, vocab, context;
    float rope_base;
};

void synth_put_str(struct buf *b, const char *s, size_t len);
uint64_t synth_put_kv_str(struct buf *b, const char *key, const char *value);
uint64_t synth_put_kv_u32(struct buf *b, const char *key, uint32_t value);
uint64_t synth_put_kv_f32(struct buf *b, const char *key, float value);
uint64_t synth_put_kv_bool(struct buf *b, const char *key, bool value);

/* Key, array type and count; the caller appends the n elements. */
uint64_t synth_put_kv_array(struct buf *b, const char *key, enum gguf_type elem, uint64_t n);

/* Every tokenizer.ggml.* entry of a made-up vocabulary of n tokens (n >= 354). Returns their
 * number. */
uint64_t synth_put_vocab(struct buf *b, uint32_t n);

/* A tensor being laid out. */
struct synth_item {
    char name[48];
    enum quant_type type;
    uint64_t row, rows, offset;
    size_t bytes;
    bool norm;
};

struct synth_plan {
    const struct synth_shape *shape;
    struct synth_item *items;
    size_t n_items, data_bytes, data_start, align;
    bool windows; /* matrices are windows of shared memory, see synth.h */
    uint8_t *image;
};

/* A window's bytes: a multiple of both K types' blocks and of any page up to 64 KiB, which is also
 * how far apart tensors must begin for it. */
enum { SYNTH_WINDOW_ALIGN = 65536, SYNTH_WINDOW = 3 * 315 * SYNTH_WINDOW_ALIGN };
_Static_assert(SYNTH_WINDOW % sizeof(struct q4_k_block) == 0, "whole Q4_K blocks");
_Static_assert(SYNTH_WINDOW % sizeof(struct q6_k_block) == 0, "whole Q6_K blocks");

/* Fills the tensors of a laid-out image (zeroed, page-aligned, writable). `threads` 0 = one a CPU.
 */
enum status synth_fill(const struct synth_plan *p, unsigned threads);

#endif
