/* Workloads; see workload.h. To add one: a function that fills tokens, and an option for it. */
#include "engine/workload.h"

#include "engine/synth.h"
#include "engine/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status workload_bench(const struct model *m, uint32_t prefill, uint32_t decode, uint64_t seed,
                           struct workload *out)
{
    uint32_t vocab = model_hparams(m)->vocab;
    *out = (struct workload){.n = prefill, .decode = decode};
    out->tokens = calloc(prefill, sizeof *out->tokens);
    if (!out->tokens) return err_set(ERR_NOMEM, "out of memory for %u tokens", prefill);
    for (uint32_t i = 0; i < prefill; i++) {
        uint32_t ctr[4] = {i, 0, 0, 0x70726f6d}, key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
        uint32_t rnd[4];
        synth_philox(ctr, key, rnd);
        out->tokens[i] = rnd[0] % vocab;
    }
    snprintf(out->label, sizeof out->label, "pp%u,tg%u", prefill, decode);
    return OK;
}

enum status workload_prompt(const struct model *m, const char *text, uint32_t decode,
                            struct workload *out)
{
    int32_t *ids = NULL;
    size_t n = 0;
    *out = (struct workload){.decode = decode, .prompt = true};
    enum status st = tokenizer_encode(model_tokenizer(m), text, strlen(text),
                                      TOKENIZER_BOS | TOKENIZER_SPECIAL, &ids, &n);
    if (st != OK) return st;
    if (n == 0 || n > 1u << 20) {
        free(ids);
        return err_set(ERR_USAGE, "the prompt has %zu tokens; it takes 1 to %u", n, 1u << 20);
    }
    out->tokens = calloc(n, sizeof *out->tokens);
    for (size_t i = 0; i < n && out->tokens; i++)
        if (ids[i] >= 0 && (uint32_t)ids[i] < model_hparams(m)->vocab)
            out->tokens[out->n++] = (uint32_t)ids[i];
    free(ids);
    if (!out->tokens) return err_set(ERR_NOMEM, "out of memory for %zu tokens", n);
    snprintf(out->label, sizeof out->label, "prompt");
    return OK;
}

void workload_free(struct workload *w)
{
    free(w->tokens);
    *w = (struct workload){0};
}
