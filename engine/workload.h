/*
 * What a round does: the prompt's tokens and how many to make after them. Owned by the caller,
 * freed with workload_free(). Pure but for memory.
 */
#ifndef ENGINE_WORKLOAD_H
#define ENGINE_WORKLOAD_H

#include "engine/model.h"

struct workload {
    uint32_t *tokens; /* of the prompt */
    uint32_t n;
    uint32_t decode; /* steps after the prefill */
    bool prompt;     /* real text: stops at an end token */
    char label[64];  /* "pp512,tg64", or "prompt" */
};

/* Deterministic token ids: the same for the same seed on every backend. */
enum status workload_bench(const struct model *m, uint32_t prefill, uint32_t decode, uint64_t seed,
                           struct workload *out);
enum status workload_prompt(const struct model *m, const char *text, uint32_t decode,
                            struct workload *out);
void workload_free(struct workload *w);

#endif
