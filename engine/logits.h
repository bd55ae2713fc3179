/* --logits: one prefill of the prompt, its logits at every position as raw f32 [n][vocab]. */
#ifndef ENGINE_LOGITS_H
#define ENGINE_LOGITS_H

#include "engine/engine.h"

/* Writes opt->logits, which must not exist. ERR_IO; ERR_LIMIT when the prompt takes several steps.
 */
enum status logits_write(struct engine *e);

#endif
