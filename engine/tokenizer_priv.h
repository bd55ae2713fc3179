/*
 * What the tokenizer*.c files share; nobody else includes this.
 *
 * tokenizer.c owns the struct, the two families only read it. Spans are views of the text at hand.
 */
#ifndef ENGINE_TOKENIZER_PRIV_H
#define ENGINE_TOKENIZER_PRIV_H

#include "engine/tokenizer.h"

#define TOKEN_SPACE "\xe2\x96\x81" /* U+2581, a space inside SentencePiece tokens */

enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER, /* found in any text before it is split further */
    TOKEN_UNUSED,
    TOKEN_BYTE,
};

/* Text to a number: open addressing, at most half full. Keys are views of the GGUF. */
struct token_map {
    struct gguf_str *key;
    uint32_t *value;
    size_t mask;
};

/* Growing list of tokens. */
struct token_list {
    int32_t *id;
    size_t n, cap;
    bool failed;
};

struct pre_tokenizer; /* tokenizer_pre.c */

struct tokenizer {
    bool bpe;
    uint32_t n;
    const struct gguf_str *text; /* the GGUF's */
    const uint8_t *scores;       /* n floats, any alignment; SPM only */
    uint8_t *type;
    bool *end;
    struct token_map ids, merges; /* merges: "left right" to rank */
    int32_t *special;             /* user-defined and control tokens, longest text first */
    size_t n_special;
    int32_t byte_id[256]; /* SPM: token of a byte, or the unknown token, or -1 */
    int32_t bos, eos, unk;
    bool add_bos, add_space_prefix;
    bool whole_words; /* BPE: a word that is a token is not built by merges (ignore_merges) */
    struct pre_tokenizer *pre;
    char kind[32];
};

void token_push(struct token_list *out, int32_t id);

/* The number of a text, or -1. */
int64_t token_map_get(const struct token_map *m, struct gguf_str key);
int32_t token_find(const struct tokenizer *t, const char *p, size_t len);

/* Bytes of the UTF-8 character at p by its first byte, cut at `left`; never 0 for left > 0. */
size_t token_char_len(const char *p, size_t left);

/*
 * Merging, shared by both families: `text` is cut into characters, and the adjacent pair of the
 * greatest priority (the leftmost among equals) is joined until no pair can be. priority() says
 * whether two adjacent spans may be joined. emit() gets the spans that are left, in order.
 */
struct merge_ops {
    bool (*priority)(const struct tokenizer *t, const char *left, size_t left_len, size_t right_len,
                     double *out);
    void (*emit)(const struct tokenizer *t, const char *p, size_t len, struct token_list *out);
};
enum status token_merge(const struct tokenizer *t, const struct merge_ops *ops, const char *text,
                        size_t len, struct token_list *out);

/* Encode one stretch of plain text. */
enum status tokenizer_spm_encode(const struct tokenizer *t, const char *text, size_t len,
                                 bool first, struct token_list *out);
enum status tokenizer_bpe_encode(const struct tokenizer *t, const char *text, size_t len,
                                 struct token_list *out);

/* Byte-level BPE writes byte b as a character of at most 2 bytes; and back (-1: no such character).
 */
size_t token_byte_to_char(uint8_t b, char out[2]);
int token_char_to_byte(const char *p, size_t len);

/* The pre-tokenizer of a name; ERR_FORMAT if it isn't known here. */
enum status pre_tokenizer_open(const struct gguf *g, struct gguf_str name,
                               struct pre_tokenizer **out);
void pre_tokenizer_close(struct pre_tokenizer *p);
const char *pre_tokenizer_name(const struct pre_tokenizer *p);
bool pre_tokenizer_whole_words(const struct pre_tokenizer *p);
bool pre_tokenizer_add_bos(const struct pre_tokenizer *p); /* unless the file says otherwise */

/* Cuts valid UTF-8 into words: ends[0..n-1] are the offsets after each word, malloc'd. */
enum status pre_tokenizer_split(const struct pre_tokenizer *p, const char *text, size_t len,
                                size_t **ends, size_t *n);

#endif
