/* See exec_lab.h. */
#include "tests/lib/exec_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/session_lab.h"

const struct exec_key exec_keys[EXEC_KEYS] = {
    {"FFMA", "float"}, {"IMMA", "tensor"}, {"FADD", "float"}};

const struct exec_item exec_some[EXEC_SOME] = {
    {0, 0, EXEC_IN_LOOP | EXEC_IN_HOT, 40, 40 * 32, 40 * 32},
    {1, 0, EXEC_IN_LOOP, 0, 0, 0},
    {4, 1, EXEC_IN_LOOP | EXEC_GUARDED, 20, 20 * 32, 20 * 16},
    {EXEC_INSNS_MAX - 1, 2, EXEC_UNCOUNTED, 0, 0, 0},
};

void exec_kernel(struct session *s, uint32_t number, const char *name, uint64_t code_hash)
{
    struct msg_kernel_def m = {
        .kernel = number, .family = "q4k_gemm", .threads = 64, .code_hash = code_hash};
    snprintf(m.name, sizeof m.name, "%s", name);
    lab_apply(s, FRAME_KERNEL_DEF, &m);
}

/* 2 blocks of 64 threads: 4 warps. */
void exec_row(struct session *s, uint32_t number, uint32_t of_kernel, uint32_t generation,
              uint32_t m_, double macs)
{
    struct msg_row_def m = {.row = number,
                            .kernel = of_kernel,
                            .generation = generation,
                            .m = m_,
                            .n = 32,
                            .k = 256,
                            .role = "attn_q",
                            .phase = "prefill",
                            .macs = macs,
                            .grid_x = 2,
                            .grid_y = 1,
                            .grid_z = 1};
    lab_apply(s, FRAME_ROW_DEF, &m);
}

struct session *exec_start(void)
{
    struct session *s = lab_new();
    exec_kernel(s, 2, "nb_kd8", 77);
    exec_row(s, 1, 2, 1, 64, 1000);
    return s;
}

void exec_put_keys(struct buf *b)
{
    for (unsigned i = 0; i < EXEC_KEYS; i++)
        pack_exec_key(b, exec_keys[i].opcode, exec_keys[i].cls);
}

void exec_tell(struct session *s, uint32_t of_row, uint32_t of_kernel, uint8_t has,
               const struct exec_item *items, unsigned n)
{
    struct buf k = {0}, b = {0};
    struct msg_executed m = {.row = of_row,
                             .kernel = of_kernel,
                             .generation = 1,
                             .source = "sassexec",
                             .launches = 1,
                             .code_hash = 77,
                             .has = has};
    exec_put_keys(&k);
    for (unsigned i = 0; i < n; i++) pack_exec(&b, &items[i]);
    m.keys = (struct blob){k.data, (uint32_t)k.len};
    m.items = (struct blob){b.data, (uint32_t)b.len};
    lab_apply(s, FRAME_EXECUTED, &m);
    buf_free(&k);
    buf_free(&b);
}

void exec_census(struct session *s, uint32_t number, uint32_t ffma_hot, bool with_hot)
{
    struct buf b = {0}, hot = {0};
    struct msg_census m = {.kernel = number, .total = 100};
    const struct {
        const char *opcode, *cls;
        uint32_t hot;
    } rows[] = {{"FFMA", "float", ffma_hot}, {"FADD", "float", 10}, {"IMMA", "tensor", 20}};
    for (unsigned i = 0; i < 3; i++) {
        pack_census_item(&b, rows[i].opcode, rows[i].cls, 30, rows[i].hot);
        buf_u32(&hot, rows[i].hot);
    }
    m.items = (struct blob){b.data, (uint32_t)b.len};
    m.hot_macs = with_hot ? 1000 : 0;
    if (with_hot) m.hot = (struct blob){hot.data, (uint32_t)hot.len};
    lab_apply(s, FRAME_CENSUS, &m);
    buf_free(&b);
    buf_free(&hot);
}
