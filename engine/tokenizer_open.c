/*
 * Building a tokenizer from GGUF metadata.
 *
 * Job: read the tables, check that they fit together, index them. Invariants: every id kept in the
 * struct is below n; scores, types and merges have the lengths that the encoders assume. To add a
 * family, give its "tokenizer.ggml.model" a branch in open_family() and an encoder beside
 * tokenizer_spm.c.
 */
#include "engine/tokenizer_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 1 << 20, MAX_MERGE = 512 };

static enum status no_memory(const struct gguf *g)
{
    return err_set(ERR_NOMEM, "%s: no memory for its tokenizer", gguf_name(g));
}

static enum status read_tokens(const struct gguf *g, struct tokenizer *t)
{
    struct gguf_array a;
    enum status st = gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STR, &a);
    if (st) return st;
    if (a.n < 1 || a.n > MAX_TOKENS)
        return err_set(ERR_LIMIT, "%s: a vocabulary of %zu tokens; 1 to %d are possible",
                       gguf_name(g), a.n, MAX_TOKENS);
    t->n = (uint32_t)a.n;
    t->text = a.strs;
    if (!token_map_init(&t->ids, t->n)) return no_memory(g);
    for (uint32_t i = 0; i < t->n; i++) token_map_put(&t->ids, t->text[i], i);
    return OK;
}

static enum status read_types(const struct gguf *g, struct tokenizer *t)
{
    static const char key[] = "tokenizer.ggml.token_type";
    struct gguf_array a;

    t->type = malloc(t->n);
    t->end = calloc(t->n, sizeof *t->end);
    if (!t->type || !t->end) return no_memory(g);
    memset(t->type, TOKEN_NORMAL, t->n);
    if (!gguf_has(g, key)) return OK;
    enum status st = gguf_get_array(g, key, GGUF_I32, &a);
    if (st) return st;
    if (a.n != t->n)
        return err_set(ERR_FORMAT, "%s: %zu token types for %u tokens", gguf_name(g), a.n, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        int32_t v;
        memcpy(&v, a.data + 4 * (size_t)i, sizeof v);
        if (v < TOKEN_NORMAL || v > TOKEN_BYTE)
            return err_set(ERR_FORMAT, "%s: token %u has the type %d; 1 to 6 are defined",
                           gguf_name(g), i, v);
        t->type[i] = (uint8_t)v;
    }
    return OK;
}

static enum status read_id(const struct gguf *g, const struct tokenizer *t, const char *key,
                           int32_t *out)
{
    uint32_t id;
    *out = -1;
    if (!gguf_has(g, key)) return OK;
    enum status st = gguf_get_u32(g, key, &id);
    if (st) return st;
    if (id >= t->n)
        return err_set(ERR_FORMAT, "%s: %s is %u, beyond the vocabulary of %u", gguf_name(g), key,
                       id, t->n);
    *out = (int32_t)id;
    return OK;
}

static enum status read_special_ids(const struct gguf *g, struct tokenizer *t)
{
    /* Turn ends by text, since many files name only eos; such a token is always a control token. */
    static const char *const ends[] = {"<|eot_id|>", "<|im_end|>",    "<|end|>", "<end_of_turn>",
                                       "<|eom_id|>", "<|endoftext|>", "<EOT>"};
    int32_t eot;
    enum status st;
    if ((st = read_id(g, t, "tokenizer.ggml.bos_token_id", &t->bos))) return st;
    if ((st = read_id(g, t, "tokenizer.ggml.eos_token_id", &t->eos))) return st;
    if ((st = read_id(g, t, "tokenizer.ggml.unknown_token_id", &t->unk))) return st;
    if ((st = read_id(g, t, "tokenizer.ggml.eot_token_id", &eot))) return st;
    if (t->eos >= 0) t->end[t->eos] = true;
    if (eot >= 0) t->end[eot] = true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int32_t id = token_find(t, ends[i], strlen(ends[i]));
        if (id < 0) continue;
        t->end[id] = true;
        t->type[id] = TOKEN_CONTROL;
    }
    return OK;
}

struct by_length {
    size_t len;
    int32_t id;
};

static int cmp_length(const void *a, const void *b)
{
    const struct by_length *x = a, *y = b;
    if (x->len != y->len) return x->len < y->len ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Tokens that are looked for in the text itself, the longest first. */
static enum status index_specials(const struct gguf *g, struct tokenizer *t)
{
    size_t n = 0;
    struct by_length *order = malloc(t->n * sizeof *order);
    t->special = malloc(t->n * sizeof *t->special);
    if (!order || !t->special) {
        free(order);
        return no_memory(g);
    }
    for (uint32_t i = 0; i < t->n; i++) {
        bool special =
            t->type[i] == TOKEN_CONTROL || t->type[i] == TOKEN_USER || t->type[i] == TOKEN_UNKNOWN;
        if (special && t->text[i].len) order[n++] = (struct by_length){t->text[i].len, (int32_t)i};
    }
    qsort(order, n, sizeof *order, cmp_length);
    for (size_t i = 0; i < n; i++) t->special[i] = order[i].id;
    t->n_special = n;
    free(order);
    return OK;
}

static enum status open_spm(const struct gguf *g, struct tokenizer *t)
{
    struct gguf_array a;
    enum status st = gguf_get_array(g, "tokenizer.ggml.scores", GGUF_F32, &a);
    if (st) return st;
    if (a.n != t->n)
        return err_set(ERR_FORMAT, "%s: %zu scores for %u tokens", gguf_name(g), a.n, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        float score;
        memcpy(&score, a.data + 4 * (size_t)i, sizeof score);
        if (isnan(score))
            return err_set(ERR_FORMAT, "%s: token %u has no score (NaN)", gguf_name(g), i);
    }
    t->scores = a.data;
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        t->byte_id[b] = token_find(t, name, 6);
        if (t->byte_id[b] < 0) t->byte_id[b] = t->unk;
    }
    t->add_bos = t->add_space_prefix = true;
    snprintf(t->kind, sizeof t->kind, "spm");
    return OK;
}

static enum status read_merges(const struct gguf *g, struct tokenizer *t)
{
    struct gguf_array a;
    enum status st = gguf_get_array(g, "tokenizer.ggml.merges", GGUF_STR, &a);
    if (st) return st;
    if (a.n > 4 * (size_t)MAX_TOKENS)
        return err_set(ERR_LIMIT, "%s: %zu merges; at most %d are read", gguf_name(g), a.n,
                       4 * MAX_TOKENS);
    if (!token_map_init(&t->merges, a.n)) return no_memory(g);
    for (size_t i = 0; i < a.n; i++) {
        struct gguf_str s = a.strs[i];
        const char *space = s.len > 2 ? memchr(s.p + 1, ' ', s.len - 2) : NULL;
        if (!space || s.len > MAX_MERGE)
            return err_set(ERR_FORMAT, "%s: merge %zu isn't two texts with a space between",
                           gguf_name(g), i);
        token_map_put(&t->merges, s, (uint32_t)i);
    }
    return OK;
}

static enum status open_bpe(const struct gguf *g, struct tokenizer *t)
{
    struct gguf_str pre;
    enum status st = gguf_get_str_or(g, "tokenizer.ggml.pre", "default", &pre);
    if (st) return st;
    if ((st = pre_tokenizer_open(g, pre, &t->pre))) return st;
    t->bpe = true;
    t->whole_words = pre_tokenizer_whole_words(t->pre);
    t->add_bos = pre_tokenizer_add_bos(t->pre);
    snprintf(t->kind, sizeof t->kind, "bpe %s", pre_tokenizer_name(t->pre));
    return read_merges(g, t);
}

static enum status open_family(const struct gguf *g, struct tokenizer *t)
{
    struct gguf_str model;
    char name[48];
    enum status st = gguf_get_str(g, "tokenizer.ggml.model", &model);
    if (st) return st;
    if (gguf_str_is(model, "llama")) return open_spm(g, t);
    if (gguf_str_is(model, "gpt2")) return open_bpe(g, t);
    return err_set(ERR_FORMAT,
                   "%s: the tokenizer \"%s\" isn't known here; llama (SPM) and gpt2 (BPE) are",
                   gguf_name(g), gguf_str_copy(model, name, sizeof name));
}

enum status tokenizer_open(const struct gguf *g, struct tokenizer **out)
{
    enum status st;

    *out = NULL;
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t) return no_memory(g);
    if ((st = read_tokens(g, t))) goto out;
    if ((st = read_types(g, t))) goto out;
    if ((st = read_special_ids(g, t))) goto out;
    if ((st = index_specials(g, t))) goto out;
    if ((st = open_family(g, t))) goto out;
    if ((st = gguf_get_bool_or(g, "tokenizer.ggml.add_bos_token", t->add_bos, &t->add_bos)))
        goto out;
    if ((st = gguf_get_bool_or(g, "tokenizer.ggml.add_space_prefix", t->add_space_prefix,
                               &t->add_space_prefix)))
        goto out;
    *out = t;
out:
    if (st) tokenizer_close(t);
    return st;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t) return;
    pre_tokenizer_close(t->pre);
    token_map_free(&t->ids);
    token_map_free(&t->merges);
    free(t->special);
    free(t->type);
    free(t->end);
    free(t);
}
