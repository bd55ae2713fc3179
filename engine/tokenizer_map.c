/*
 * Small containers of the tokenizers: the map from text to number and the list of tokens.
 *
 * Job: building and asking a hash table whose keys are views of the GGUF. Invariant: at most half
 * full, so that a probe always meets an empty slot. When two entries have one text the later one
 * counts.
 */
#include "engine/tokenizer_map.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static size_t find_slot(const struct token_map *m, struct gguf_str key)
{
    size_t i = (size_t)XXH3_64bits(key.p, key.len) & m->mask;
    while (m->key[i].p && (m->key[i].len != key.len || memcmp(m->key[i].p, key.p, key.len) != 0))
        i = (i + 1) & m->mask;
    return i;
}

bool token_map_init(struct token_map *m, size_t entries)
{
    size_t slots = 16;
    while (slots < 2 * entries) slots *= 2;
    m->mask = slots - 1;
    m->key = calloc(slots, sizeof *m->key);
    m->value = calloc(slots, sizeof *m->value);
    return m->key && m->value;
}

void token_map_free(struct token_map *m)
{
    free(m->key);
    free(m->value);
    *m = (struct token_map){0};
}

void token_map_put(struct token_map *m, struct gguf_str key, uint32_t value)
{
    if (key.len == 0) return;
    size_t i = find_slot(m, key);
    m->key[i] = key;
    m->value[i] = value;
}

int64_t token_map_get(const struct token_map *m, struct gguf_str key)
{
    if (key.len == 0) return -1;
    size_t i = find_slot(m, key);
    return m->key[i].p ? (int64_t)m->value[i] : -1;
}

int32_t token_find(const struct tokenizer *t, const char *p, size_t len)
{
    return (int32_t)token_map_get(&t->ids, (struct gguf_str){p, len});
}

void token_push(struct token_list *out, int32_t id)
{
    if (out->n == out->cap && !out->failed) {
        size_t cap = out->cap ? 2 * out->cap : 64;
        int32_t *p = realloc(out->id, cap * sizeof *p);
        if (!p) {
            out->failed = true;
            return;
        }
        out->id = p;
        out->cap = cap;
    }
    if (!out->failed) out->id[out->n++] = id;
}

size_t token_char_len(const char *p, size_t left)
{
    static const uint8_t by_nibble[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    size_t n = by_nibble[(uint8_t)*p >> 4];
    return n < left ? n : left;
}
