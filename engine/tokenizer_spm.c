/*
 * SentencePiece-like encoding: spaces become U+2581, characters are joined to the token of the best
 * score.
 *
 * Invariant: only texts of tokens are ever joined, so what is left is a token or a single
 * character, and a character without a token is spelled in byte tokens.
 */
#include "engine/tokenizer_priv.h"

#include "base/buf.h"

#include <string.h>

static bool spm_priority(const struct tokenizer *t, const char *left, size_t left_len,
                         size_t right_len, double *out)
{
    float score;
    int32_t id = token_find(t, left, left_len + right_len);
    if (id < 0) return false;
    memcpy(&score, t->scores + (size_t)id * sizeof score, sizeof score);
    *out = (double)score;
    return true;
}

static void spm_emit(const struct tokenizer *t, const char *p, size_t len, struct token_list *out)
{
    int32_t id = token_find(t, p, len);
    if (id >= 0) {
        token_push(out, id);
        return;
    }
    for (size_t i = 0; i < len; i++)
        if (t->byte_id[(uint8_t)p[i]] >= 0) token_push(out, t->byte_id[(uint8_t)p[i]]);
}

static const struct merge_ops spm_ops = {.priority = spm_priority, .emit = spm_emit};

enum status tokenizer_spm_encode(const struct tokenizer *t, const char *text, size_t len,
                                 bool first, struct token_list *out)
{
    struct buf b = {0};
    enum status st;

    if (first && t->add_space_prefix) buf_put(&b, TOKEN_SPACE, 3);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ' ')
            buf_put(&b, TOKEN_SPACE, 3);
        else
            buf_u8(&b, (uint8_t)text[i]);
    }
    if (b.failed)
        st = err_set(ERR_NOMEM, "no memory to encode a text of %zu bytes", len);
    else
        st = token_merge(t, &spm_ops, (const char *)b.data, b.len, out);
    buf_free(&b);
    return st;
}
