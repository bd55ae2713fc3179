/* Building a token map; asking one is in tokenizer_priv.h. */
#ifndef ENGINE_TOKENIZER_MAP_H
#define ENGINE_TOKENIZER_MAP_H

#include "engine/tokenizer_priv.h"

bool token_map_init(struct token_map *m,
                    size_t entries); /* false: no memory; token_map_free() either way */
void token_map_free(struct token_map *m);
void token_map_put(struct token_map *m, struct gguf_str key, uint32_t value);

#endif
