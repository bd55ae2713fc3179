/*
 * Byte-level BPE: words by the pre-tokenizer, their bytes as visible characters, joined in the
 * order of the merge list.
 *
 * The byte alphabet is GPT-2's: printable Latin-1 bytes stand for themselves, the others are U+0100
 * on, in order. Invariant: words are cut from well-formed UTF-8, in which each malformed byte
 * became U+FFFD.
 */
#include "engine/tokenizer_priv.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static bool stands_for_itself(unsigned b)
{
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
}

/* How many bytes below b don't stand for themselves: 0..0x20, 0x7f..0xa0, 0xad. */
static unsigned hidden_rank(unsigned b)
{
    return b <= 0x20 ? b : b <= 0xa0 ? 0x21 + b - 0x7f : 0x21 + 0x22;
}

size_t token_byte_to_char(uint8_t b, char out[2])
{
    unsigned cp = stands_for_itself(b) ? b : 0x100 + hidden_rank(b);
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    out[0] = (char)(0xc0 | cp >> 6);
    out[1] = (char)(0x80 | (cp & 0x3f));
    return 2;
}

int token_char_to_byte(const char *p, size_t len)
{
    const uint8_t *u = (const uint8_t *)p;
    unsigned cp = len == 1 ? u[0] : len == 2 ? (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu) : 0;
    if (cp < 0x100) return stands_for_itself(cp) ? (int)cp : -1;
    unsigned rank = cp - 0x100;
    if (rank <= 0x20) return (int)rank;
    if (rank <= 0x42) return (int)(rank - 0x21 + 0x7f);
    return rank == 0x43 ? 0xad : -1;
}

static bool bpe_priority(const struct tokenizer *t, const char *left, size_t left_len,
                         size_t right_len, double *out)
{
    /* Longer merges than this are in no list: its entries were checked when it was opened. */
    char key[512];
    size_t len = left_len + 1 + right_len;
    if (len > sizeof key) return false;
    memcpy(key, left, left_len);
    key[left_len] = ' ';
    memcpy(key + left_len + 1, left + left_len, right_len);
    int64_t rank = token_map_get(&t->merges, (struct gguf_str){key, len});
    *out = -(double)rank;
    return rank >= 0;
}

static void bpe_emit(const struct tokenizer *t, const char *p, size_t len, struct token_list *out)
{
    int32_t id = token_find(t, p, len);
    if (id >= 0) {
        token_push(out, id);
        return;
    }
    /* A merge whose result is no token: fall back to its characters. */
    for (size_t at = 0, n; at < len; at += n) {
        n = token_char_len(p + at, len - at);
        id = token_find(t, p + at, n);
        if (id < 0) id = t->unk;
        if (id >= 0) token_push(out, id);
    }
}

static const struct merge_ops bpe_ops = {.priority = bpe_priority, .emit = bpe_emit};

static enum status encode_word(const struct tokenizer *t, const char *word, size_t len,
                               struct buf *scratch, struct token_list *out)
{
    buf_reset(scratch);
    for (size_t i = 0; i < len; i++) {
        char c[2];
        size_t n = token_byte_to_char((uint8_t)word[i], c);
        buf_put(scratch, c, n);
    }
    if (scratch->failed) return err_set(ERR_NOMEM, "no memory to encode a word of %zu bytes", len);
    const char *p = (const char *)scratch->data;
    int32_t id = t->whole_words ? token_find(t, p, scratch->len) : -1;
    if (id < 0) return token_merge(t, &bpe_ops, p, scratch->len, out);
    token_push(out, id);
    return OK;
}

/* Bytes of the well-formed character at p, 0 if there is none (overlong forms and surrogates
 * excluded). */
static size_t strict_char(const uint8_t *p, size_t left)
{
    if (p[0] < 0x80) return 1;
    size_t n = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
               : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
               : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                             : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)) return 0;
    if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return 0;
    return n;
}

static void put_well_formed(struct buf *b, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = strict_char((const uint8_t *)text + i, len - i);
        buf_put(b, n ? text + i : "\xef\xbf\xbd", n ? n : 3);
        i += n ? n : 1;
    }
}

enum status tokenizer_bpe_encode(const struct tokenizer *t, const char *text, size_t len,
                                 struct token_list *out)
{
    struct buf clean = {0}, scratch = {0};
    size_t *ends = NULL, n = 0, from = 0;
    enum status st;

    put_well_formed(&clean, text, len);
    if (clean.failed) {
        st = err_set(ERR_NOMEM, "no memory to encode a text of %zu bytes", len);
        goto out;
    }
    st = pre_tokenizer_split(t->pre, (const char *)clean.data, clean.len, &ends, &n);
    for (size_t i = 0; i < n && !st; from = ends[i++])
        st = encode_word(t, (const char *)clean.data + from, ends[i] - from, &scratch, out);
out:
    free(ends);
    buf_free(&clean);
    buf_free(&scratch);
    return st;
}
