/*
 * Operands as text, where they are known: destination, sources, addresses, immediates, targets.
 *
 * This is an aid for reading, not an assembler's syntax: negations, absolute values, reuse flags,
 * descriptors and the lengths of register groups are left out, and an instruction whose operands
 * the table doesn't hold gets "". Pure, any thread.
 */
#ifndef SASS_VIEW_OPERANDS_H
#define SASS_VIEW_OPERANDS_H

#include "sass_view/decode.h"

/* "R4, [R2+0x10]", "" when not known. Returns out. */
char *insn_operand_text(const struct insn *in, char *out, size_t size);

#endif
