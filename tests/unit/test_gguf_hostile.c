/*
 * Hostile GGUF files: each named damage is refused with words that name it; 200 truncations and 200
 * byte flips of every kind of file are refused or opened, and what opens can be used to its last
 * byte.
 *
 * Run it under AddressSanitizer (make test-asan): every image lies in a buffer of exactly its size.
 */
#include "engine/gguf.h"
#include "engine/model.h"
#include "engine/synth.h"
#include "engine/synth_priv.h"
#include "engine/tokenizer.h"
#include "tests/lib/gguf_make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TRIALS = 200 };

/* A copy in a malloc'd block of exactly its size, so that a sanitizer sees a step outside. */
static uint8_t *exact_copy(const void *p, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    if (len) memcpy(copy, p, len);
    return copy;
}

static void release_copy(void *data, size_t len)
{
    (void)len;
    free(data);
}

/* Touches everything a user of the model would: all rows of all tensors, some text through the
 * tokenizer. */
static uint64_t use_model(const struct model *m)
{
    uint64_t sum = 0;
    const struct gguf *g = model_gguf(m);
    for (size_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const uint8_t *p = t->data;
        for (size_t k = 0; k < t->bytes; k++) sum += p[k];
        float *row = malloc(t->ne[0] * sizeof *row);
        assert_non_null(row);
        quant_dequant_row(t->type, t->data, row, t->ne[0]);
        free(row);
    }
    int32_t *ids;
    size_t n;
    char out[64];
    assert_int_equal(
        tokenizer_encode(model_tokenizer(m), "Hello the world\xff 12", 19, 3, &ids, &n), OK);
    for (size_t i = 0; i < n; i++) {
        assert_in_range(ids[i], 0, tokenizer_vocab(model_tokenizer(m)) - 1);
        sum += tokenizer_decode(model_tokenizer(m), ids[i], out, sizeof out);
    }
    free(ids);
    return sum;
}

/* Opens an image as a model; true when it was refused, in words. */
static bool refused(const void *data, size_t len)
{
    struct gguf *g;
    struct model *m;
    err_set(OK, "nothing said");
    enum status st = gguf_open_memory(exact_copy(data, len), len, "hostile", release_copy, &g);
    if (st == OK) st = model_open_gguf(g, false, &m);
    if (st == OK) {
        assert_true(use_model(m) > 0);
        model_close(m);
        return false;
    }
    assert_true(st == ERR_FORMAT || st == ERR_LIMIT);
    assert_string_not_equal(err_msg(), "nothing said");
    assert_non_null(strstr(err_msg(), "hostile"));
    return true;
}

static void test_truncations(void **state)
{
    (void)state;
    for (size_t f = 0; f < gguf_fixture_count(); f++) {
        struct buf b = {0};
        gguf_make_fixture(f, &b);
        for (size_t i = 0; i < TRIALS; i++) {
            /* Half of them in the first 4 KiB, where the tables are. */
            size_t span = i % 2 ? b.len : 4096;
            assert_true(refused(b.data, i * span / TRIALS));
        }
        assert_true(refused(b.data, b.len - 1));
        assert_false(refused(b.data, b.len));
        buf_free(&b);
    }
}

static void test_byte_flips(void **state)
{
    (void)state;
    size_t opened = 0, not_opened = 0;
    for (size_t f = 0; f < gguf_fixture_count(); f++) {
        struct buf b = {0};
        gguf_make_fixture(f, &b);
        for (uint32_t i = 0; i < TRIALS; i++) {
            const uint32_t ctr[4] = {i, (uint32_t)f, 0, 0}, key[2] = {1, 2};
            uint32_t r[4];
            synth_philox(ctr, key, r);
            /* Three in four in the metadata and tables. */
            size_t span = i % 4 ? 12000 : b.len, at = r[0] % span;
            uint8_t flip = (uint8_t)(1u << r[1] % 8);
            b.data[at] ^= flip;
            if (refused(b.data, b.len))
                not_opened++;
            else
                opened++;
            b.data[at] ^= flip;
        }
        assert_false(refused(b.data, b.len));
        buf_free(&b);
    }
    print_message("%zu opened, %zu refused\n", opened, not_opened);
    assert_true(opened > 0 && not_opened > 0);
}

static void store(struct buf *b, size_t at, uint64_t v, int bytes)
{
    assert_true(at + (size_t)bytes <= b->len);
    for (int i = 0; i < bytes; i++) b->data[at + (size_t)i] = (uint8_t)(v >> 8 * i);
}

static void assert_refused(const struct buf *b, const char *words)
{
    if (!refused(b->data, b->len)) fail_msg("opened; it should say \"%s\"", words);
    if (!strstr(err_msg(), words)) fail_msg("said \"%s\" without \"%s\"", err_msg(), words);
}

/* Where a text is in the image. */
static size_t find(const struct buf *b, const char *text)
{
    const uint8_t *p = memmem(b->data, b->len, text, strlen(text));
    assert_non_null(p);
    return (size_t)(p - b->data);
}

static void test_header(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint64_t v;
        int bytes;
        const char *words;
    } rows[] = {
        {0, 0x46554746, 4, "not a GGUF"},
        {4, 2, 4, "version 2"},
        {4, 0x03000000, 4, "big-endian"},
        {8, UINT64_MAX, 8, "tensors"},
        {8, 65536, 8, "ends inside its tables"},
        {16, UINT64_MAX, 8, "metadata keys"},
        {16, 65536, 8, "ends inside its tables"},
        {16, 0, 8, ""},
        {24, UINT64_MAX, 8, "metadata key has a length"},
        {24, 0, 8, "metadata key is empty"},
        {24, 65535, 8, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf b = {0};
        gguf_make_fixture(3, &b);
        store(&b, rows[i].at, rows[i].v, rows[i].bytes);
        assert_refused(&b, rows[i].words);
        buf_free(&b);
    }
}

static void test_metadata(void **state)
{
    (void)state;
    static const struct {
        const char *after; /* the bytes after this text are overwritten at `skip` */
        size_t skip;
        uint64_t v;
        int bytes;
        const char *words;
    } rows[] = {
        {"llama.block_count", 0, 13, 4, "unknown type (13)"},
        {"llama.block_count", 0, UINT32_MAX, 4, "unknown type"},
        {"llama.block_count", 0, GGUF_F32, 4, "isn't an integer"},
        {"general.architecture", 4, UINT64_MAX, 8, "length of"},
        {"general.architecture", 4, 1u << 31, 8, "ends inside general.architecture"},
        {"tokenizer.ggml.tokens", 4, 99, 4, "array of an unknown type (99)"},
        {"tokenizer.ggml.tokens", 8, UINT64_MAX, 8, "ends inside tokenizer.ggml.tokens"},
        {"tokenizer.ggml.tokens", 8, 1ull << 61, 8, "ends inside tokenizer.ggml.tokens"},
        {"tokenizer.ggml.tokens", 4, GGUF_ARRAY, 4, ""},
        {"tokenizer.ggml.scores", 8, 1ull << 62, 8, "ends inside tokenizer.ggml.scores"},
        {"tokenizer.ggml.add_bos_token", 4, 2, 1, "boolean"},
        {"tokenizer.ggml.bos_token_id", 4, 100000, 4, "beyond the vocabulary"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf b = {0};
        gguf_make_fixture(3, &b);
        store(&b, find(&b, rows[i].after) + strlen(rows[i].after) + rows[i].skip, rows[i].v,
              rows[i].bytes);
        assert_refused(&b, rows[i].words);
        buf_free(&b);
    }
}

static void put_deep_array(struct gguf_maker *m, int depth)
{
    m->n_kv += synth_put_kv_array(&m->kv, "deep", GGUF_ARRAY, 1);
    for (int i = 1; i < depth; i++) {
        buf_u32(&m->kv, GGUF_ARRAY);
        buf_u64(&m->kv, 1);
    }
    buf_u32(&m->kv, GGUF_U8);
    buf_u64(&m->kv, 0);
}

static void put_twice(struct gguf_maker *m)
{
    m->n_kv += synth_put_kv_u32(&m->kv, "llama.block_count", 1);
}

static void put_alignment(struct gguf_maker *m, uint32_t a)
{
    m->n_kv += synth_put_kv_u32(&m->kv, "general.alignment", a);
}

static void put_nul_key(struct gguf_maker *m)
{
    synth_put_str(&m->kv, "a\0b", 3);
    buf_u32(&m->kv, GGUF_U8);
    buf_u8(&m->kv, 0);
    m->n_kv++;
}

/* Makes fixture 3 again with a change, and holds what is said. */
static void refuse_changed(const struct gguf_maker *m, const char *words)
{
    struct buf b = {0};
    gguf_maker_finish(m, &b);
    assert_refused(&b, words);
    buf_free(&b);
}

static void test_added_metadata(void **state)
{
    (void)state;
    static const struct {
        int what;
        uint32_t arg;
        const char *words;
    } rows[] = {
        {0, 5, "nests arrays deeper"},      {0, 200, "nests arrays deeper"},
        {1, 0, "is there twice"},           {2, 0, "general.alignment"},
        {2, 4, "general.alignment"},        {2, 48, "general.alignment"},
        {2, 1u << 31, "general.alignment"}, {3, 0, "zero byte"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_maker m;
        gguf_fixture_maker(3, &m);
        if (rows[i].what == 0) put_deep_array(&m, (int)rows[i].arg);
        if (rows[i].what == 1) put_twice(&m);
        if (rows[i].what == 2) put_alignment(&m, rows[i].arg);
        if (rows[i].what == 3) put_nul_key(&m);
        refuse_changed(&m, rows[i].words);
        gguf_maker_free(&m);
    }
}

/* Changes to the tensor table of fixture 3; tensor 1 is blk.0.attn_norm, 2 attn_q (64 x 64, Q5_0).
 */
static void test_tensor_table(void **state)
{
    (void)state;
    enum what { DIMS, NE0, NE1, TYPE, OFFSET, RENAME };
    static const struct {
        enum what what;
        uint64_t v;
        const char *text, *words;
    } rows[] = {
        {DIMS, 0, NULL, "0 dimensions"},
        {DIMS, 5, NULL, "5 dimensions"},
        {DIMS, UINT32_MAX, NULL, "dimensions"},
        {NE0, 0, NULL, "dimension of zero"},
        {NE0, 33, NULL, "no multiple of Q5_0's 32"},
        {NE0, 1ull << 40, NULL, "beyond the end"},
        {NE1, 1ull << 62, NULL, "too many values"},
        {NE1, UINT64_MAX, NULL, "too many values"},
        {NE1, 1ull << 56, NULL, "beyond the end"},
        {NE1, 65, NULL, "overlap"},
        {TYPE, 2, NULL, "Q4_0"},
        {TYPE, 23, NULL, "IQ4_XS"},
        {TYPE, 4, NULL, "type 4 (unknown)"},
        {TYPE, UINT32_MAX, NULL, "(unknown)"},
        {TYPE, QUANT_Q4_K, NULL, "no multiple of Q4_K's 256"},
        {TYPE, QUANT_F32, NULL, "overlap"},
        {OFFSET, 16, NULL, "no multiple of 32"},
        {OFFSET, 0, NULL, "overlap"},
        {OFFSET, UINT64_MAX - 31, NULL, "beyond the end"},
        {OFFSET, 1ull << 63, NULL, "beyond the end"},
        {RENAME, 0, "blk.0.attn_norm.weight", "is there twice"},
        {RENAME, 0, "", "tensor name is empty"},
        {RENAME, 0, "blk.0.attn_q.bias", "attn_q.weight is missing"},
        {RENAME, 0, "blk.1.attn_q.weight", "attn_q.weight is missing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_maker m;
        gguf_fixture_maker(3, &m);
        assert_string_equal(m.tensors[2].name, "blk.0.attn_q.weight");
        if (rows[i].what == DIMS) m.tensors[2].n_dims = (uint32_t)rows[i].v;
        if (rows[i].what == NE0) m.tensors[2].ne[0] = rows[i].v;
        if (rows[i].what == NE1) m.tensors[2].ne[1] = rows[i].v;
        if (rows[i].what == TYPE) m.tensors[2].type = (uint32_t)rows[i].v;
        if (rows[i].what == OFFSET) m.tensors[2].offset = rows[i].v;
        if (rows[i].what == RENAME) strcpy(m.tensors[2].name, rows[i].text);
        refuse_changed(&m, rows[i].words);
        gguf_maker_free(&m);
    }
}

static void test_long_tensor_name(void **state)
{
    (void)state;
    struct buf b = {0};
    gguf_make_fixture(3, &b);
    store(&b, find(&b, "token_embd.weight") - 8, 128, 8);
    assert_refused(&b, "tensor name has a length of 128");
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncations),      cmocka_unit_test(test_byte_flips),
        cmocka_unit_test(test_header),           cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_added_metadata),   cmocka_unit_test(test_tensor_table),
        cmocka_unit_test(test_long_tensor_name),
    };
    return cmocka_run_group_tests_name("gguf_hostile", tests, NULL, NULL);
}
