/* Texts as CSV wants them (RFC 4180): in quotes, those in the text doubled. Nothing is owned. */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stdio.h>

#include "base/buf.h"

void quote_csv(struct buf *out, const char *text);
void quote_csv_print(FILE *out, const char *text);

#endif
