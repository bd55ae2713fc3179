/*
 * The made-up vocabulary of synthetic models, and writing GGUF metadata.
 *
 * Job: n tokens that a SentencePiece-like tokenizer can use on any text. Order: <unk> <s> </s>, 256
 * byte tokens, the word mark and 94 printable characters, then words of syllables, the shorter
 * first. Invariant: a word's every prefix is a token and no other part of it is, so that merging
 * from the left reaches the longest word. Scores fall with a token's position, as in trained
 * vocabularies; nothing else here is trained.
 */
#include "engine/synth_priv.h"

#include <stdio.h>
#include <string.h>

#define WORD_MARK "\xe2\x96\x81" /* U+2581 stands for a space */

static const char consonants[] = "tnsrldmkpbgfvhwjzcxq", vowels[] = "aeiou";

enum { SPECIALS = 3, BYTES = 256, CHARS = 95, C = 20, V = 5, SYLLABLES = C * V };
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_BYTE = 6 };

void synth_put_str(struct buf *b, const char *s, size_t len)
{
    buf_u64(b, len);
    buf_put(b, s, len);
}

static void put_key(struct buf *b, const char *key, enum gguf_type type)
{
    synth_put_str(b, key, strlen(key));
    buf_u32(b, type);
}

uint64_t synth_put_kv_str(struct buf *b, const char *key, const char *value)
{
    put_key(b, key, GGUF_STR);
    synth_put_str(b, value, strlen(value));
    return 1;
}

uint64_t synth_put_kv_u32(struct buf *b, const char *key, uint32_t value)
{
    put_key(b, key, GGUF_U32);
    buf_u32(b, value);
    return 1;
}

static void put_f32(struct buf *b, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    buf_u32(b, bits);
}

uint64_t synth_put_kv_f32(struct buf *b, const char *key, float value)
{
    put_key(b, key, GGUF_F32);
    put_f32(b, value);
    return 1;
}

uint64_t synth_put_kv_bool(struct buf *b, const char *key, bool value)
{
    put_key(b, key, GGUF_BOOL);
    buf_u8(b, value);
    return 1;
}

uint64_t synth_put_kv_array(struct buf *b, const char *key, enum gguf_type elem, uint64_t n)
{
    put_key(b, key, GGUF_ARRAY);
    buf_u32(b, elem);
    buf_u64(b, n);
    return 1;
}

/* Word number w: all of one consonant, then of one syllable, of a syllable and a consonant, and so
 * on; within a length the last letter runs fastest. */
static size_t make_word(uint32_t w, char out[16])
{
    char letters[12];
    size_t n = 1, count = C;
    while (w >= count) {
        w -= (uint32_t)count;
        n++;
        count *= n % 2 ? C : V;
    }
    for (size_t i = n; i-- > 0;) {
        uint32_t radix = i % 2 ? V : C;
        letters[i] = (i % 2 ? vowels : consonants)[w % radix];
        w /= radix;
    }
    memcpy(out, WORD_MARK, 3);
    memcpy(out + 3, letters, n);
    return n + 3;
}

static size_t make_token(uint32_t id, char out[16])
{
    static const char *const specials[SPECIALS] = {"<unk>", "<s>", "</s>"};
    if (id < SPECIALS) return (size_t)snprintf(out, 16, "%s", specials[id]);
    id -= SPECIALS;
    if (id < BYTES) return (size_t)snprintf(out, 16, "<0x%02X>", id);
    id -= BYTES;
    if (id == 0) return (size_t)snprintf(out, 16, "%s", WORD_MARK);
    if (id < CHARS) {
        out[0] = (char)(' ' + id);
        return 1;
    }
    return make_word(id - CHARS, out);
}

static uint32_t token_type(uint32_t id)
{
    if (id == 0) return TYPE_UNKNOWN;
    if (id < SPECIALS) return TYPE_CONTROL;
    return id < SPECIALS + BYTES ? TYPE_BYTE : TYPE_NORMAL;
}

uint64_t synth_put_vocab(struct buf *b, uint32_t n)
{
    uint64_t keys = 0;
    keys += synth_put_kv_str(b, "tokenizer.ggml.model", "llama");
    keys += synth_put_kv_str(b, "tokenizer.ggml.pre", "default");
    keys += synth_put_kv_array(b, "tokenizer.ggml.tokens", GGUF_STR, n);
    for (uint32_t id = 0; id < n; id++) {
        char text[16];
        size_t len = make_token(id, text);
        synth_put_str(b, text, len);
    }
    keys += synth_put_kv_array(b, "tokenizer.ggml.scores", GGUF_F32, n);
    for (uint32_t id = 0; id < n; id++) put_f32(b, id < SPECIALS + BYTES ? 0 : -(float)id);
    keys += synth_put_kv_array(b, "tokenizer.ggml.token_type", GGUF_I32, n);
    for (uint32_t id = 0; id < n; id++) buf_u32(b, token_type(id));
    keys += synth_put_kv_u32(b, "tokenizer.ggml.bos_token_id", 1);
    keys += synth_put_kv_u32(b, "tokenizer.ggml.eos_token_id", 2);
    keys += synth_put_kv_u32(b, "tokenizer.ggml.unknown_token_id", 0);
    keys += synth_put_kv_bool(b, "tokenizer.ggml.add_bos_token", true);
    keys += synth_put_kv_bool(b, "tokenizer.ggml.add_eos_token", false);
    keys += synth_put_kv_bool(b, "tokenizer.ggml.add_space_prefix", true);
    return keys;
}
