/*
 * Encoding and decoding; the tables are built in tokenizer_open.c.
 *
 * Job: find special tokens in the text, give the stretches between them to the family's encoder,
 * and turn tokens back into bytes. Invariant: the longest special token is looked for first, over
 * the whole text, so that a shorter one never breaks it up.
 */
#include "engine/tokenizer_priv.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

uint32_t tokenizer_vocab(const struct tokenizer *t)
{
    return t->n;
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

int32_t tokenizer_eos(const struct tokenizer *t)
{
    return t->eos;
}

bool tokenizer_is_end(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->n && t->end[id];
}

const char *tokenizer_kind(const struct tokenizer *t)
{
    return t->kind;
}

/* A stretch of the text (id < 0) or a special token found in it. */
struct piece {
    size_t at, len;
    int32_t id;
};

struct pieces {
    struct buf b; /* of struct piece */
};

static size_t piece_count(const struct pieces *p)
{
    return p->b.len / sizeof(struct piece);
}

static void put_piece(struct pieces *p, size_t at, size_t len, int32_t id)
{
    struct piece piece = {at, len, id};
    if (len) buf_put(&p->b, &piece, sizeof piece);
}

/* Cuts every plain piece of `in` at each occurrence of token id's text. */
static void cut_at(const struct tokenizer *t, int32_t id, const char *text, const struct pieces *in,
                   struct pieces *out)
{
    struct gguf_str s = t->text[id];
    const struct piece *pieces = (const struct piece *)(const void *)in->b.data;
    for (size_t i = 0; i < piece_count(in); i++) {
        struct piece p = pieces[i];
        const char *hit;
        while (p.id < 0 && p.len && (hit = memmem(text + p.at, p.len, s.p, s.len))) {
            size_t before = (size_t)(hit - text) - p.at;
            put_piece(out, p.at, before, -1);
            put_piece(out, p.at + before, s.len, id);
            p.at += before + s.len;
            p.len -= before + s.len;
        }
        put_piece(out, p.at, p.len, p.id);
    }
}

static void find_specials(const struct tokenizer *t, const char *text, size_t len, unsigned flags,
                          struct pieces *pieces)
{
    struct pieces other = {{0}};
    put_piece(pieces, 0, len, -1);
    for (size_t i = 0; i < t->n_special; i++) {
        int32_t id = t->special[i];
        struct gguf_str s = t->text[id];
        if (t->type[id] != TOKEN_USER && !(flags & TOKENIZER_SPECIAL)) continue;
        if (s.len > len || !memmem(text, len, s.p, s.len)) continue;
        buf_reset(&other.b);
        cut_at(t, id, text, pieces, &other);
        other.b.failed |= pieces->b.failed;
        struct pieces swap = *pieces;
        *pieces = other;
        other = swap;
    }
    buf_free(&other.b);
}

static enum status encode_pieces(const struct tokenizer *t, const char *text,
                                 const struct pieces *pieces, struct token_list *out)
{
    const struct piece *p = (const struct piece *)(const void *)pieces->b.data;
    bool first = true; /* at the start, or after a special token */
    enum status st = OK;
    for (size_t i = 0; i < piece_count(pieces) && !st; i++) {
        if (p[i].id >= 0)
            token_push(out, p[i].id);
        else if (t->bpe)
            st = tokenizer_bpe_encode(t, text + p[i].at, p[i].len, out);
        else
            st = tokenizer_spm_encode(t, text + p[i].at, p[i].len, first, out);
        first = p[i].id >= 0;
    }
    return st;
}

enum status tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                             unsigned flags, int32_t **ids, size_t *n)
{
    struct token_list out = {0};
    struct pieces pieces = {{0}};
    enum status st;

    *ids = NULL;
    *n = 0;
    if (len > TOKENIZER_MAX_TEXT)
        return err_set(ERR_LIMIT, "a text of %zu bytes; at most %d are encoded at once", len,
                       TOKENIZER_MAX_TEXT);
    if ((flags & TOKENIZER_BOS) && t->add_bos && t->bos >= 0) token_push(&out, t->bos);
    find_specials(t, text, len, flags, &pieces);
    st = pieces.b.failed ? ERR_NOMEM : encode_pieces(t, text, &pieces, &out);
    if (pieces.b.failed || out.failed)
        st = err_set(ERR_NOMEM, "no memory to encode a text of %zu bytes", len);
    buf_free(&pieces.b);
    if (st) {
        free(out.id);
        return st;
    }
    *ids = out.id;
    *n = out.n;
    return OK;
}

/* Writes what fits and counts all. */
struct writer {
    char *out;
    size_t size, n;
};

static void write_bytes(struct writer *w, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++, w->n++)
        if (w->n < w->size) w->out[w->n] = p[i];
}

static void decode_spm(struct gguf_str s, struct writer *w)
{
    for (size_t i = 0; i < s.len;) {
        bool space = s.len - i >= 3 && memcmp(s.p + i, TOKEN_SPACE, 3) == 0;
        write_bytes(w, space ? " " : s.p + i, 1);
        i += space ? 3 : 1;
    }
}

static void decode_bpe(struct gguf_str s, struct writer *w)
{
    for (size_t i = 0, n; i < s.len; i += n) {
        n = token_char_len(s.p + i, s.len - i);
        int byte = token_char_to_byte(s.p + i, n);
        char c = (char)byte;
        if (byte >= 0)
            write_bytes(w, &c, 1);
        else
            write_bytes(w, s.p + i, n);
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "<0x41>" to its byte. */
static void decode_byte(struct gguf_str s, struct writer *w)
{
    int hi = s.len == 6 ? hex_digit(s.p[3]) : -1, lo = s.len == 6 ? hex_digit(s.p[4]) : -1;
    if (hi < 0 || lo < 0) return;
    char c = (char)(hi * 16 + lo);
    write_bytes(w, &c, 1);
}

size_t tokenizer_decode(const struct tokenizer *t, int32_t id, char *out, size_t size)
{
    struct writer w = {out, size, 0};
    if (id < 0 || (uint32_t)id >= t->n) return 0;
    struct gguf_str s = t->text[id];
    switch (t->type[id]) {
    case TOKEN_NORMAL:
        if (t->bpe)
            decode_bpe(s, &w);
        else
            decode_spm(s, &w);
        break;
    case TOKEN_USER:
        write_bytes(&w, s.p, s.len);
        break;
    case TOKEN_BYTE:
        decode_byte(s, &w);
        break;
    default: /* control, unknown, unused */
        break;
    }
    return w.n;
}
