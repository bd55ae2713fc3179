/*
 * Tokenizers from GGUF metadata: SentencePiece-like ("llama": scores, byte tokens; gemma's too) and
 * byte-level BPE ("gpt2", merges, with the pre-tokenizer named by tokenizer.ggml.pre).
 *
 * A tokenizer borrows strings of the GGUF it was opened from and must be closed before it. After
 * tokenizer_open() it is only read: any thread may use it. Results equal llama.cpp's for the files
 * tried.
 */
#ifndef ENGINE_TOKENIZER_H
#define ENGINE_TOKENIZER_H

#include "engine/gguf.h"

enum {
    TOKENIZER_MAX_TEXT = 1 << 20
}; /* bytes of one encode; it takes up to 300 times that memory */

/* Flags of tokenizer_encode(). */
enum {
    TOKENIZER_BOS = 1,     /* put the start token first, if the model wants one (add_bos) */
    TOKENIZER_SPECIAL = 2, /* control tokens' own text ("<start_of_turn>") becomes that token */
};

struct tokenizer;

/* ERR_FORMAT: a missing or malformed table, or a model or pre-tokenizer not known here (named). */
enum status tokenizer_open(const struct gguf *g, struct tokenizer **out);
void tokenizer_close(struct tokenizer *t); /* NULL is fine */

uint32_t tokenizer_vocab(const struct tokenizer *t);
int32_t tokenizer_bos(const struct tokenizer *t); /* -1: none */
int32_t tokenizer_eos(const struct tokenizer *t); /* -1: none */
bool tokenizer_is_end(const struct tokenizer *t,
                      int32_t id);                     /* eos, eot, <end_of_turn>...: stop here */
const char *tokenizer_kind(const struct tokenizer *t); /* "spm", "bpe llama-bpe"... */

/* Text (any bytes) to tokens. *ids is malloc'd, the caller frees it; *n may be 0. ERR_LIMIT: too
 * long; ERR_NOMEM. Deterministic. */
enum status tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                             unsigned flags, int32_t **ids, size_t *n);

/* Appends nothing past out[size - 1] and no terminator: writes the bytes of token `id` and returns
 * how many there are (which may exceed `size`: call again with more). Control and unknown ids give
 * 0. A character may be spread over several tokens: print when the bytes are whole UTF-8. */
size_t tokenizer_decode(const struct tokenizer *t, int32_t id, char *out, size_t size);

#endif
