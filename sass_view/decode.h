/*
 * Decoder of SASS, the 128-bit instructions of sm_75 to sm_121.
 *
 * The table is data: opcodes.def, one row an opcode, with the archs and the evidence.
 * decoder_init() selects the rows of one arch; insn_decode() then reads one instruction. Nothing is
 * allocated; a struct decoder is read-only after init and may be shared by threads. Any 16 bytes
 * decode: what the table doesn't hold is named by its number, `?0xNNNN` (13 bits: bit 91, then bits
 * 11-0), and marked INSN_UNKNOWN. Nothing is guessed from another arch's row.
 *
 * Names. `mnemonic` is the vendor disassembler's first word (LDS, IMMA, IMAD). `key` is what a
 * census counts: the mnemonic plus what changes the instruction's cost or meaning to a tuner, in
 * the vendor's spelling and order, with these differences, all on purpose:
 *   - loads and stores always say their width: LDS.32, LDG.128, STG.U16 (the vendor leaves .32
 * out); address-size and cache modifiers (.E, .EF, .CONSTANT, .STRONG.GPU) are left out;
 *   - matrix loads are LDSM.x1 .x2 .x4, with .T when transposing (vendor: LDSM.16.M88.4, .MT88);
 *   - asynchronous copies are LDGSTS.32 .64 .128, with .BYPASS as the vendor says it;
 *   - comparison, rounding, carry, cache and saturation modifiers are left out (ISETP, FADD, LOP3);
 *   - HFMA2.MOV is `HFMA2 R, -RZ, RZ, imm`, the compiler's way to load a constant: it is a move.
 * IMAD's vendor pseudo-names stay: IMAD.MOV, IMAD.SHL, IMAD.IADD, IMAD.WIDE, IMAD.HI. Tensor keys
 * carry shape and types: IMMA.16832.S8.S8, HMMA.16816.F32.BF16, HGMMA.64x128x16.F32.
 * Each key has one class.
 */
#ifndef SASS_VIEW_DECODE_H
#define SASS_VIEW_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INSN_BYTES = 16, INSN_KEY_MAX = 40, INSN_NO_TARGET = -1, INSN_PT = 7, INSN_NO_BAR = 7 };

/* What an instruction is for, as a tuner groups them. X-macro: enum suffix, report name, help. */
#define INSN_CLASS_LIST(X)                                                                         \
    X(TENSOR, "tensor", "matrix multiply: IMMA, HMMA, QMMA, HGMMA, UTC*MMA")                       \
    X(INT, "int", "integer ALU, shifts, logic, predicates, address arithmetic")                    \
    X(FLOAT, "float", "32-bit float ALU")                                                          \
    X(HALF, "half", "packed 16-bit float ALU")                                                     \
    X(DOUBLE, "double", "64-bit float ALU")                                                        \
    X(CONVERT, "convert", "conversions between types")                                             \
    X(MUFU, "mufu", "special functions")                                                           \
    X(MOVE, "move", "register moves, constants, reads of special registers")                       \
    X(SHARED, "shared", "shared memory: LDS, STS, LDSM, STSM, ATOMS")                              \
    X(GLOBAL, "global", "global and generic memory, with its atomics")                             \
    X(ASYNC, "async", "asynchronous copies into shared memory, TMA")                               \
    X(LOCAL, "local", "local memory: spills, stack, indexed arrays")                               \
    X(CONSTANT, "constant", "constant bank loads")                                                 \
    X(TEXTURE, "texture", "textures and surfaces")                                                 \
    X(WARP, "warp", "exchange between lanes: SHFL, VOTE, REDUX, MATCH")                            \
    X(UNIFORM, "uniform", "uniform datapath ALU")                                                  \
    X(CONTROL, "control", "branches, calls, exit, convergence")                                    \
    X(SYNC, "sync", "barriers, fences, dependency waits")                                          \
    X(OTHER, "other", "NOP and what fits nowhere else")                                            \
    X(UNKNOWN, "unknown", "opcodes that the table doesn't hold")

enum insn_class {
#define X(id, name, help) INSN_CLASS_##id,
    INSN_CLASS_LIST(X)
#undef X
        INSN_CLASSES
};

enum insn_flags {
    INSN_UNKNOWN = 1 << 0,
    INSN_BRANCH = 1 << 1,     /* jumps to `target`, or to an unknown place when it has none */
    INSN_CALL = 1 << 2,       /* comes back to the next instruction */
    INSN_EXIT = 1 << 3,       /* EXIT, KILL: the thread ends here (when its guard holds) */
    INSN_RETURN = 1 << 4,     /* RET */
    INSN_RECONVERGE = 1 << 5, /* BSYNC: goes on at the target of the BSSY on the same barrier */
    INSN_PUSH = 1 << 6,       /* BSSY: `target` is where BSYNC goes on */
    INSN_NOP = 1 << 7,
    INSN_LOAD = 1 << 8,
    INSN_STORE = 1 << 9,
    INSN_DUMMY = 1 << 10,       /* compiler-made, does no work: an HGMMA with no destination */
    INSN_CONDITIONAL = 1 << 11, /* a branch that may fall through for a reason beside the guard */
};

/* Scheduling control, bits 105-125. */
struct insn_ctl {
    uint8_t stall;     /* cycles before the next issue, 0-15 */
    bool yield;        /* bit 109 clear */
    uint8_t write_bar; /* scoreboard set until the result is written; INSN_NO_BAR: none */
    uint8_t read_bar;  /* scoreboard set until operands are read; INSN_NO_BAR: none */
    uint8_t wait_mask; /* scoreboards 0-5 waited for */
    uint8_t reuse;     /* operand cache: bit 0 A, 1 B, 2 C */
};

struct opcode; /* a row of opcodes.def */

struct insn {
    uint32_t offset; /* bytes from the start of .text.K */
    uint16_t code;   /* 13 bits: bit 91, then bits 11-0 */
    uint16_t flags;  /* enum insn_flags */
    uint8_t sm;      /* of the decoder */
    uint8_t cls;     /* enum insn_class */
    uint8_t guard;   /* predicate 0-6, INSN_PT when always */
    bool guard_not, guard_uniform;
    uint16_t width;       /* bits a thread moves in a memory instruction; 0 when not stated */
    uint8_t dst, a, b, c; /* raw register fields: 16-23, 24-31, 32-39, 64-71 (255 = RZ) */
    int64_t target;       /* byte offset within .text.K (may lie outside in hostile code), or -1 */
    struct insn_ctl ctl;
    const struct opcode *op; /* row of the table; NULL for an unknown one */
    const char *mnemonic;    /* static; "?" for an unknown one */
    const char *key; /* shorter than INSN_KEY_MAX; lives as long as the program. Equal pointers
                      * are equal keys, but equal keys may have several pointers */
    uint64_t lo, hi; /* the instruction word */
};

struct decoder {
    int sm;
    uint16_t row[8192]; /* 1 + index of the row for each 13-bit opcode; 0 = unknown */
};

/* Selects the rows of one arch (80, 86, 90, 121...). False when no row of the table is for it:
 * every instruction then decodes as unknown. */
bool decoder_init(struct decoder *d, int sm);

/* The decoder of an arch, made once and kept for the life of the program. Never NULL; any thread.
 */
const struct decoder *decoder_get(int sm);

/* Reads the 16 bytes at `code`, which lie `offset` bytes into .text.K. Never fails. */
void insn_decode(const struct decoder *d, const uint8_t *code, uint32_t offset, struct insn *out);

/* "@!P0 ", "@UP1 " or "" for an unguarded one. Returns buf. */
char *insn_guard_text(const struct insn *in, char *buf, size_t size);

const char *insn_class_name(enum insn_class c); /* "tensor" */
const char *insn_class_help(enum insn_class c);

/* Row i of the table, for documentation and tests; false past the end. */
struct opcode_info {
    const char *mnemonic, *evidence;
    uint16_t base; /* bits 0-8 */
    uint8_t forms; /* bit n set: bits 9-11 may be n */
    int sm_min, sm_max;
    enum insn_class cls;
};
bool opcode_info(size_t i, struct opcode_info *out);

#endif
