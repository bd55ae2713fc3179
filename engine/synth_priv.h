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

#endif
