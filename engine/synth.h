/*
 * Synthetic models: real shapes and real block formats around random weights, so that speed can be
 * measured and tests run with nothing downloaded.
 *
 * A synthetic model is built as a whole GGUF image in memory, then opened like any file. Weights
 * are Gaussian (sd 0.02) from Philox4x32-10 (Salmon et al., SC'11), a counter-based generator: the
 * value at (tensor, index) depends on nothing else, so any number of threads gives the same bytes.
 * Norm weights are 1 plus a tenth of such noise. Types follow llama.cpp's Q4_K_M: attn_v and
 * ffn_down are Q6_K in the layers that synth_more_bits() names, output is Q6_K, other matrices
 * Q4_K, norms F32.
 *
 * synth:tiny: 2 layers, d_model 256, d_ff 512, 4 heads of 64, vocabulary 512; every block is
 * quantised from values of its own.
 *
 * synth:llama3-8b: 32 layers, 4096/14336, 32 heads of 128, 8 kv heads, vocabulary 128256, 4.9 GB. A
 * pool of SYNTH_POOL blocks of each K type is quantised from Gaussian values; 62 MB of blocks drawn
 * from it by Philox are the window that every matrix of that type is mapped to, over and over, from
 * a start of its own. Scales, mins and nibbles are those of real blocks, and loading takes a second
 * and 0.13 GB of memory. A copy on a GPU is 4.9 GB like any model's. On a CPU the weights are the
 * same 0.13 GB again and again, which a very large cache would hold: CPU speeds of this model say
 * nothing of its memory.
 *
 * The vocabulary is SentencePiece-like: 256 byte tokens, single characters, and made-up words of
 * syllables, so that any text can be encoded and generated tokens print as words.
 */
#ifndef ENGINE_SYNTH_H
#define ENGINE_SYNTH_H

#include "engine/gguf.h"

enum { SYNTH_POOL = 4096 };

/* `name` is what follows "synth:". ERR_USAGE: unknown, the known ones are listed; ERR_NOMEM.
 * `threads` 0 = one a CPU, at most 64. */
enum status synth_open(const char *name, unsigned threads, struct gguf **out);

/* Whether llama.cpp's Q4_K_M gives layer i of n more bits: the first and the last eighth, and every
 * third between. */
bool synth_more_bits(uint32_t i, uint32_t n);

/* Four 32-bit words of Philox4x32-10 for counter {c0, c1, c2, c3} and key {k0, k1}. */
void synth_philox(const uint32_t ctr[4], const uint32_t key[2], uint32_t out[4]);

/* n Gaussian values (mean 0, sd 1) of stream `stream` from `index` on: Box-Muller on Philox words.
 */
void synth_gauss(uint64_t stream, uint64_t index, float *out, size_t n);

#endif
