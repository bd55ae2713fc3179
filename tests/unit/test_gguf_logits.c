/*
 * The committed files through the whole forward pass on the CPU, against logits that llama.cpp gave
 * for them: every tensor type, both architectures (gemma3 with its window, norms and two rope
 * bases), both tokenizers. In one step and token by token.
 *
 * The recorded logits come from the dequantised weights stored as F32, so only this side rounds:
 * activations to 8 bits in chunks of 32 before a product. A chunk's largest Gaussian value is
 * about 2.4 sd, so a step is 2.4/127 sd and its error (2.4/127)^2/12 = 3e-5 of the input's mean
 * square. A layer has four such products in series (q k v, output, gate up, down), and q and k act
 * through an exponential; 1e-3 a layer leaves a factor of eight for that. F32 and F16 products
 * aren't rounded so. A wrong layout, rope or norm gives about 1.
 */
#include "engine/backend.h"
#include "engine/forward.h"
#include "engine/model.h"
#include "tests/lib/token_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_TOKENS = 64, FILES = 8 };
static const double LIMIT_A_LAYER = 1e-3, LIMIT_EXACT = 1e-5; /* of the logits' mean square */

/* Everything that a forward pass needs, opened for one file. */
struct run {
    struct model *m;
    struct backend *b;
    struct forward_buffers bufs;
    uint32_t vocab;
};

static void open_run(struct run *r, const char *file)
{
    char path[128];
    const struct backend_options o = {
        .threads = 1, .max_tokens = MAX_TOKENS, .context = MAX_TOKENS};
    snprintf(path, sizeof path, "tests/fixtures/gguf/%s", file);
    if (model_open(path, &r->m)) fail_msg("%s", err_msg());
    if (cpu_backend.open(&o, &r->b)) fail_msg("%s", err_msg());
    if (cpu_backend.load(r->b, r->m, NULL, NULL)) fail_msg("%s", err_msg());
    if (forward_kv_init(&cpu_backend, r->b, r->m)) fail_msg("%s", err_msg());
    if (forward_buffers_alloc(&cpu_backend, r->b, r->m, MAX_TOKENS, true, &r->bufs))
        fail_msg("%s", err_msg());
    r->vocab = model_hparams(r->m)->vocab;
}

static void close_run(struct run *r)
{
    forward_buffers_free(&cpu_backend, r->b, &r->bufs);
    cpu_backend.close(r->b);
    model_close(r->m);
}

/* Runs n tokens from position `pos` and gives the last one's logits. */
static void step(struct run *r, const uint32_t *tokens, uint32_t n, uint32_t pos, float *logits)
{
    struct forward f;
    size_t row = r->vocab * sizeof *logits;
    if (forward_build(&cpu_backend, r->b, r->m, &r->bufs, n, &f)) fail_msg("%s", err_msg());
    if (cpu_backend.run(r->b, f.ops, f.nops, tokens, n, pos, n == 1, TIMING_NONE, NULL))
        fail_msg("%s", err_msg());
    assert_int_equal(cpu_backend.sync(r->b), OK);
    assert_int_equal(cpu_backend.download(r->b, &r->bufs.logits, (n - 1) * row, logits, row), OK);
    forward_free(&f);
}

/* 1 and a message when the logits are off, else 0. */
static int check_logits(const char *file, const char *how, const cJSON *want, const float *logits,
                        const struct run *r)
{
    const cJSON *v;
    double err = 0, ref = 0;
    uint32_t n = 0;
    cJSON_ArrayForEach(v, cJSON_GetObjectItem(want, "logits"))
    {
        assert_true(n < r->vocab);
        double d = (double)logits[n++] - v->valuedouble;
        err += d * d;
        ref += v->valuedouble * v->valuedouble;
    }
    assert_int_equal(n, r->vocab);
    int type = (int)model_tensor(r->m, 0, ROLE_ATTN_Q)->type;
    bool exact = type == QUANT_F32 || type == QUANT_F16;
    double limit = exact ? LIMIT_EXACT : LIMIT_A_LAYER * model_hparams(r->m)->layers;
    print_message("%s, %s: error %.3g of the mean square, limit %.3g\n", file, how, err / ref,
                  limit);
    return !(err / ref <= limit);
}

static void test_logits(void **state)
{
    (void)state;
    cJSON *json = token_rows_load("tests/fixtures/gguf/llama_cpp_logits.json");
    const cJSON *want;
    int files = 0, wrong = 0;
    cJSON_ArrayForEach(want, cJSON_GetObjectItem(json, "files"))
    {
        struct run r;
        uint32_t tokens[MAX_TOKENS], n = 0;
        const cJSON *v;
        cJSON_ArrayForEach(v, cJSON_GetObjectItem(want, "tokens"))
        {
            assert_true(n < MAX_TOKENS);
            tokens[n++] = (uint32_t)v->valueint;
        }
        open_run(&r, want->string);
        float *logits = malloc(r.vocab * sizeof *logits);
        assert_non_null(logits);
        step(&r, tokens, n, 0, logits);
        wrong += check_logits(want->string, "in one step", want, logits, &r);
        for (uint32_t i = 0; i < n; i++) step(&r, tokens + i, 1, i, logits);
        wrong += check_logits(want->string, "token by token", want, logits, &r);
        free(logits);
        close_run(&r);
        files++;
    }
    cJSON_Delete(json);
    assert_int_equal(files, FILES);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logits)};
    return cmocka_run_group_tests_name("gguf_logits", tests, NULL, NULL);
}
