/*
 * Where the values of mma.m16n8k32's operands lie: which lane holds which rows and columns in which
 * register. A = 16 tokens x 32 values of k, B = 16 output rows (two n8 halves, nh = register / 2) x
 * 32 values of k, C = 16 tokens x 8 output rows. By the PTX manual's fragment layouts of
 * m16n8k32 with 8-bit operands. Pure.
 */
#ifndef KERNELS_FRAGMENT_H
#define KERNELS_FRAGMENT_H

enum { FRAGMENT_LANES = 32, FRAGMENT_REGS = 4, FRAGMENT_ROWS = 16, FRAGMENT_SUBS = 8 };

enum fragment_operand { FRAGMENT_A, FRAGMENT_B, FRAGMENT_C };

/* The first value in a register: of A and B four values of k from `col` on, of C one. */
struct fragment_place {
    int row, col;
};

struct fragment_place fragment_place_of(enum fragment_operand op, int lane, int reg);

/* The sweep of B fragments that unpack raw nibbles in registers, against ldmatrix's places over an
 * expanded tile: 8 sub-blocks x 32 lanes x 4 registers. Returns how many registers differ. */
int fragment_sweep(void);

#endif
