/* Where tools/model.sh keeps real models, and opening one there or skipping the test. */
#ifndef TESTS_LIB_MODEL_CACHE_H
#define TESTS_LIB_MODEL_CACHE_H

struct model;

#define CACHED_GEMMA   "gemma-3-270m-q4_k_m.gguf"
#define CACHED_SMOLLM2 "SmolLM2-135M-Instruct.Q4_1.gguf"

/* The caller closes it. Doesn't return (the test is skipped, with the reason) when it isn't there.
 */
struct model *model_cache_open(const char *file);

#endif
