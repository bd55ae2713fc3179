/*
 * Reading and writing the packed blobs of proto.def. Writers append to a buf; readers walk a blob
 * with a struct rd and return false at its end or at a garbled item. Pure functions.
 */
#ifndef SESSION_PACK_H
#define SESSION_PACK_H

#include "session/proto.h"

struct census_item {
    char opcode[48];
    char cls[16];
    uint32_t count, in_loop;
    uint32_t hot; /* not packed: from the census' own list, when it has one */
};
void pack_census_item(struct buf *b, const char *opcode, const char *cls, uint32_t count,
                      uint32_t in_loop);
bool unpack_census_item(struct rd *r, struct census_item *it);

/* Bin of a duration: floor(4 * log2(ns)), clamped to 0..255. pack_hist takes 256 counts. */
unsigned hist_bin(uint64_t ns);
void pack_hist(struct buf *b, const uint32_t counts[256]);
bool unpack_hist(struct rd *r, uint8_t *bin, uint32_t *count);

void pack_metric(struct buf *b, uint16_t metric);
bool unpack_metric(struct rd *r, uint16_t *metric);

/* Spans and samples are delta coded: `prev` starts at 0 and is kept by the caller. Times are
 * ns after the window's base_ns. */
struct span_item {
    uint32_t row;
    uint64_t start, dur;
};
void pack_span(struct buf *b, uint64_t *prev, const struct span_item *s);
bool unpack_span(struct rd *r, uint64_t *prev, struct span_item *s);

enum { PM_METRICS_MAX = 16 };
struct pm_item {
    uint64_t start, dur;
    double v[PM_METRICS_MAX]; /* NAN = missing */
};
void pack_pm(struct buf *b, uint64_t *prev, const struct pm_item *s, unsigned metrics);
bool unpack_pm(struct rd *r, uint64_t *prev, struct pm_item *s, unsigned metrics);

struct stall_item {
    char reason[40];
    uint64_t samples, not_issued;
};
void pack_stall(struct buf *b, const char *reason, uint64_t samples, uint64_t not_issued);
bool unpack_stall(struct rd *r, struct stall_item *s);

/* Instruction `index` of a kernel's code (its offset / 16). The reason is the one with the most
 * samples apart from `selected`, which is no stall; "" when there is none. */
enum { HEAT_INSNS_MAX = 8192 };
struct heat_item {
    uint32_t index; /* below HEAT_INSNS_MAX: anything else is garbled */
    uint64_t samples, not_issued, top;
    char reason[40];
};
void pack_heat(struct buf *b, const struct heat_item *h);
bool unpack_heat(struct rd *r, struct heat_item *h);

/* How often instruction `index` was executed: by warps, by active threads, by those of them whose
 * guard held. What `has` of the frame leaves out is 0 here. */
enum { EXEC_INSNS_MAX = 16384 };
enum exec_flags { EXEC_IN_LOOP = 1, EXEC_IN_HOT = 2, EXEC_GUARDED = 4, EXEC_UNCOUNTED = 8 };
enum exec_has { EXEC_HAS_THREADS = 1, EXEC_HAS_PRED = 2 };
struct exec_item {
    uint32_t index, key; /* index below EXEC_INSNS_MAX, else garbled */
    uint32_t flags;
    uint64_t inst, threads, pred_on;
};
void pack_exec(struct buf *b, const struct exec_item *x);
bool unpack_exec(struct rd *r, struct exec_item *x);

struct exec_key {
    char opcode[48], cls[16];
};
void pack_exec_key(struct buf *b, const char *opcode, const char *cls);
bool unpack_exec_key(struct rd *r, struct exec_key *k);

#endif
