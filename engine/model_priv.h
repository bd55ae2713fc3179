/* What model.c and model_hparams.c share; nobody else includes this. */
#ifndef ENGINE_MODEL_PRIV_H
#define ENGINE_MODEL_PRIV_H

#include "engine/model.h"

/* Reads and checks everything but `vocab`, `tied_output` and `rope_factors`, which the tensors
 * tell. */
enum status model_read_hparams(const struct gguf *g, struct model_hparams *h);

/* "llama" or "gemma3": the prefix of the metadata keys. */
const char *model_arch_name(enum model_arch arch);

#endif
