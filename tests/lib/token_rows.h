/*
 * Recorded token ids and how a tokenizer is held against them. Test-only; cmocka's asserts are used
 * inside.
 */
#ifndef TESTS_LIB_TOKEN_ROWS_H
#define TESTS_LIB_TOKEN_ROWS_H

#include "engine/tokenizer.h"

#include <cjson/cJSON.h>

cJSON *token_rows_load(const char *path); /* the caller frees it with cJSON_Delete() */

/* 1 and a message when the ids differ from the JSON array, else 0. */
int token_rows_compare(const char *text, const cJSON *want, const int32_t *ids, size_t n);

/* Encodes every text of tests/fixtures/tokens/texts.json and compares with rows[i].plain (no flags)
 * and rows[i].special (start token and special tokens). Returns the number of differences. */
int token_rows_check(const struct tokenizer *t, const cJSON *rows);

#endif
