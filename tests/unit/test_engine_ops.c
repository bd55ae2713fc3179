/* CPU operators against plain double arithmetic; schedules against each other, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/cpu/cpu_check.h"
#include "engine/cpu/cpu_ops.h"
#include "engine/cpu/matmul.h"
#include "engine/synth.h"
#include "kernels/q4k_gemm/ref.h"

#include <math.h>
#include <stdlib.h>

static struct pool *one, *three;

static int open_pools(void **state)
{
    (void)state;
    return pool_open(1, &one) != OK || pool_open(3, &three) != OK;
}

static int close_pools(void **state)
{
    (void)state;
    pool_close(one);
    pool_close(three);
    return 0;
}

static float *gauss(uint64_t stream, size_t n, float sd)
{
    float *v = malloc(n * sizeof *v);
    assert_non_null(v);
    synth_gauss(stream, 0, v, n);
    for (size_t i = 0; i < n; i++) v[i] *= sd;
    return v;
}

/* A quantised product of random values and what it is made of. */
struct product {
    uint32_t m, n, k;
    enum quant_type type;
    uint8_t *w, *chunks;
    float *x, *y;
    struct cpu_acts acts;
};

static void product_make(struct product *p, enum quant_type type, uint32_t m, uint32_t n,
                         uint32_t k)
{
    size_t row = quant_row_bytes(type, k);
    *p = (struct product){.m = m, .n = n, .k = k, .type = type};
    p->w = malloc(m * row);
    p->chunks = malloc(n * q8_row_bytes((int)k));
    p->x = gauss(1, (size_t)n * k, 1);
    p->y = malloc((size_t)m * n * sizeof *p->y);
    assert_true(p->w && p->chunks && p->y);
    float *v = gauss(2, (size_t)m * k, 0.05f);
    for (uint32_t r = 0; r < m; r++) quant_quantize_row(type, v + (size_t)r * k, p->w + r * row, k);
    free(v);
    for (uint32_t t = 0; t < n; t++)
        q8_quantize_row(p->x + (size_t)t * k, (int)k, p->chunks + t * q8_row_bytes((int)k));
    assert_int_equal(cpu_acts_reserve(&p->acts, n, k), OK);
    cpu_quantize(one, &p->acts, p->x, n, k);
}

static void product_run(struct product *p, struct pool *pool, enum cpu_schedule s, uint32_t kd)
{
    struct cpu_product job = {p->type, p->w, p->m, &p->acts, p->y, kd};
    for (size_t i = 0; i < (size_t)p->m * p->n; i++) p->y[i] = NAN;
    cpu_matmul_q(pool, s, &job);
}

static void product_free(struct product *p)
{
    free(p->w);
    free(p->chunks);
    free(p->x);
    free(p->y);
    cpu_acts_free(&p->acts);
}

/* The product of dequantised weights and dequantised chunks in double. f32 sums of t terms err by
 * at most about t * 2^-24 of the sum of their absolute values. */
static void hold_against_double(const struct product *p)
{
    size_t row = quant_row_bytes(p->type, p->k), arow = q8_row_bytes((int)p->k);
    float *w = malloc(p->k * sizeof *w), *x = malloc(p->k * sizeof *x);
    for (uint32_t t = 0; t < p->n; t++)
        for (uint32_t r = 0; r < p->m; r++) {
            double sum = 0, mag = 0;
            quant_dequant_row(p->type, p->w + r * row, w, p->k);
            q8_dequantize_row(p->chunks + t * arow, (int)p->k, x);
            for (uint32_t i = 0; i < p->k; i++) {
                sum += (double)w[i] * x[i];
                mag += fabs((double)w[i] * x[i]);
            }
            /* The dequantised values are rounded to f32 themselves: + 2 for each factor. */
            double limit = (p->k / 16 + 8) * 0x1p-24 * mag + 1e-12;
            double y = (double)p->y[(size_t)t * p->m + r];
            assert_true(fabs(y - sum) <= limit);
        }
    free(w);
    free(x);
}

static void every_quantised_type_is_its_integer_dots(void **state)
{
    static const enum quant_type types[] = {QUANT_Q4_K, QUANT_Q6_K, QUANT_Q8_0, QUANT_Q5_0,
                                            QUANT_Q4_1};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct product p;
        product_make(&p, types[i], 21, 5, 512);
        product_run(&p, one, CPU_ROWS, 8);
        hold_against_double(&p);
        product_free(&p);
    }
}

static void lengths_that_no_stage_divides(void **state)
{
    (void)state;
    struct product p;
    product_make(&p, QUANT_Q8_0, 9, 3, 32 * 13);
    product_run(&p, three, CPU_TILES, 8);
    hold_against_double(&p);
    product_free(&p);
}

static void rows_and_tiles_give_the_same_bits(void **state)
{
    static const uint32_t shapes[][3] = {{1, 1, 256},  {7, 2, 256},   {8, 32, 512},
                                         {9, 33, 768}, {65, 70, 256}, {128, 1, 1024}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct product p;
        product_make(&p, QUANT_Q4_K, shapes[i][0], shapes[i][1], shapes[i][2]);
        size_t bytes = (size_t)p.m * p.n * sizeof *p.y;
        float *first = malloc(bytes);
        product_run(&p, one, CPU_ROWS, 4);
        memcpy(first, p.y, bytes);
        for (uint32_t kd = 4; kd <= 8; kd += 4)
            for (int s = CPU_ROWS; s <= CPU_TILES; s++) {
                product_run(&p, three, (enum cpu_schedule)s, kd);
                assert_memory_equal(first, p.y, bytes);
            }
        free(first);
        product_free(&p);
    }
}

static void q4_k_sums_in_the_kernels_order(void **state)
{
    (void)state;
    struct product p;
    product_make(&p, QUANT_Q4_K, 16, 4, 1024);
    product_run(&p, one, CPU_TILES, 4);
    for (uint32_t t = 0; t < p.n; t++)
        for (uint32_t r = 0; r < p.m; r++) {
            float ref = q4k_dot_chunked(p.w + r * q4k_row_bytes(1024),
                                        p.chunks + t * q8_row_bytes(1024), 1024);
            assert_memory_equal(&ref, &p.y[t * p.m + r], sizeof ref);
        }
    product_free(&p);
}

static void float_weights(void **state)
{
    static const enum quant_type types[] = {QUANT_F32, QUANT_F16};
    (void)state;
    for (int i = 0; i < 2; i++) {
        uint32_t m = 11, n = 3, k = 100;
        float *v = gauss(3, (size_t)m * k, 1), *x = gauss(4, (size_t)n * k, 1), y[33], row[100];
        float *rows = malloc(3 * k * sizeof *rows);
        uint8_t *w = malloc(m * quant_row_bytes(types[i], k));
        for (uint32_t r = 0; r < m; r++)
            quant_quantize_row(types[i], v + r * k, w + r * quant_row_bytes(types[i], k), k);
        cpu_matmul_f(three, types[i], w, m, x, n, k, y, rows);
        for (uint32_t t = 0; t < n; t++)
            for (uint32_t r = 0; r < m; r++) {
                double sum = 0;
                quant_dequant_row(types[i], w + r * quant_row_bytes(types[i], k), row, k);
                for (uint32_t j = 0; j < k; j++) sum += (double)row[j] * x[t * k + j];
                assert_true(fabs(sum - (double)y[t * m + r]) < 1e-4);
            }
        free(v);
        free(x);
        free(rows);
        free(w);
    }
}

static struct buffer buffer_of(float *p)
{
    return (struct buffer){(uint64_t)(uintptr_t)p, 0};
}

static void norms_of_tokens_and_of_heads(void **state)
{
    (void)state;
    enum { N = 3, HEADS = 4, DIM = 24 };
    float *x = gauss(5, N * HEADS * DIM, 2), *wv = gauss(6, DIM, 1), y[N * HEADS * DIM];
    struct weight w = {.data = buffer_of(wv), .m = 1, .k = DIM};
    struct op op = {.kind = OP_NORM, .n = N, .w = &w, .dim = DIM, .heads = HEADS, .eps = 1e-5f};
    cpu_norm(three, &op, x, y);
    for (int g = 0; g < N * HEADS; g++) {
        double sum = 0;
        for (int i = 0; i < DIM; i++) sum += (double)x[g * DIM + i] * x[g * DIM + i];
        for (int i = 0; i < DIM; i++) {
            double ref = x[g * DIM + i] / sqrt(sum / DIM + 1e-5) * (double)wv[i];
            assert_true(fabs(ref - (double)y[g * DIM + i]) < 1e-5);
        }
    }
    op.heads = 0; /* whole tokens: one group each */
    op.dim = DIM;
    op.n = 1;
    y[DIM] = 7;
    cpu_norm(one, &op, x, y);
    assert_true(y[DIM] == 7);
    free(x);
    free(wv);
}

/* Rotating by position p is a rotation: lengths stay, and pair i turns by p * base^(-2i/d). */
static void rope_turns_the_right_pairs(void **state)
{
    (void)state;
    enum { D = 8, HEADS = 2 };
    for (int neox = 0; neox < 2; neox++) {
        float x[2 * HEADS * D], factors[D / 2] = {1, 2, 4, 8};
        struct weight fw = {.data = buffer_of(factors)};
        struct op op = {.kind = OP_ROPE,
                        .n = 2,
                        .heads = HEADS,
                        .head_dim = D,
                        .rope_base = 100,
                        .rope_scale = 0.5f,
                        .rope_factors = &fw,
                        .rope_neox = neox};
        for (int i = 0; i < 2 * HEADS * D; i++) x[i] = 0;
        for (int i = 0; i < D / 2; i++) x[(HEADS + 1) * D + (neox ? i : 2 * i)] = 1; /* token 1 */
        cpu_rope(&op, 4, x);
        for (int i = 0; i < D / 2; i++) {
            double a = 5 * 0.5 * pow(100, -2.0 * i / D) / (double)factors[i];
            const float *h = x + (HEADS + 1) * D;
            assert_true(fabs(cos(a) - (double)h[neox ? i : 2 * i]) < 1e-6);
            assert_true(fabs(sin(a) - (double)h[neox ? i + D / 2 : 2 * i + 1]) < 1e-6);
        }
        assert_true(x[0] == 0);
    }
}

static double attention_ref(const float *q, const struct cpu_kv *kv, const struct op *op,
                            uint32_t pos, uint32_t head, uint32_t c)
{
    uint32_t d = op->head_dim, kvh = head / (op->heads / op->kv_heads);
    double sum = 0, y = 0;
    for (uint32_t p = 0; p <= pos; p++) {
        double s = 0;
        if (op->window && p + op->window <= pos) continue;
        for (uint32_t i = 0; i < d; i++)
            s += (double)q[head * d + i] * (double)kv->k[p * kv->dim + kvh * d + i];
        double e = exp(s * (double)op->scale);
        sum += e;
        y += e * (double)kv->v[p * kv->dim + kvh * d + c];
    }
    return y / sum;
}

static void attention_sees_the_past_and_its_window(void **state)
{
    (void)state;
    enum { D = 16, HEADS = 4, KVH = 2, CONTEXT = 12, N = 5, POS0 = 6 };
    for (uint32_t window = 0; window <= 4; window += 4) {
        struct cpu_kv kv = {gauss(7, CONTEXT * KVH * D, 1), gauss(8, CONTEXT * KVH * D, 1),
                            KVH * D};
        float *q = gauss(9, N * HEADS * D, 1), y[N * HEADS * D], scores[3 * CONTEXT];
        struct op op = {.kind = OP_ATTENTION,
                        .n = N,
                        .x = buffer_of(q),
                        .y = buffer_of(y),
                        .heads = HEADS,
                        .kv_heads = KVH,
                        .head_dim = D,
                        .window = window,
                        .scale = 0.25f};
        cpu_attention(three, &op, &kv, POS0, CONTEXT, scores);
        for (uint32_t t = 0; t < N; t++)
            for (uint32_t h = 0; h < HEADS; h++)
                for (uint32_t c = 0; c < D; c++) {
                    double ref = attention_ref(q + t * HEADS * D, &kv, &op, POS0 + t, h, c);
                    assert_true(fabs(ref - (double)y[(t * HEADS + h) * D + c]) < 1e-5);
                }
        free(kv.k);
        free(kv.v);
        free(q);
    }
}

static void gates_and_sums(void **state)
{
    (void)state;
    enum { N = 64 };
    float *a = gauss(10, N, 2), *b = gauss(11, N, 2), y[N];
    struct op op = {.kind = OP_GLU, .n = 2, .dim = N / 2};
    cpu_glu(&op, a, b, y);
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)a[i] / (1 + exp(-(double)a[i])) * b[i] - (double)y[i]) < 1e-5);
    op.gelu = true;
    cpu_glu(&op, a, b, y);
    for (int i = 0; i < N; i++) {
        double g = a[i], u = sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);
        assert_true(fabs(0.5 * g * (1 + tanh(u)) * b[i] - (double)y[i]) < 1e-5);
    }
    cpu_add(&op, a, b, y);
    for (int i = 0; i < N; i++) assert_true(y[i] == a[i] + b[i]);
    free(a);
    free(b);
}

static void argmax_keeps_the_two_best(void **state)
{
    (void)state;
    const float up[] = {-3, 1, 5, 4.5f, 5, 2};
    const float one_only[] = {-2};
    struct step_result r;
    cpu_argmax(up, 6, &r);
    assert_int_equal(r.token, 2); /* the first of equals */
    assert_true(r.top1 == 5 && r.top2 == 5);
    cpu_argmax(one_only, 1, &r);
    assert_int_equal(r.token, 0);
    assert_true(r.top1 == -2 && isinf(r.top2));
}

static void the_parity_check_passes_and_refuses(void **state)
{
    (void)state;
    struct parity_result r;
    const uint32_t good[3] = {40, 33, 512}, odd[3] = {4, 4, 100}, none[3] = {0, 4, 256};
    assert_int_equal(cpu_check_q4k(three, CPU_TILES, 8, good, &r), OK);
    assert_true(r.passed);
    assert_true(r.nmse >= 0 && r.nmse < 1e-10);
    assert_int_equal(cpu_check_q4k(three, CPU_ROWS, 8, odd, &r), ERR_USAGE);
    assert_int_equal(cpu_check_q4k(three, CPU_ROWS, 8, none, &r), ERR_USAGE);
    assert_int_equal(cpu_check_q4k(three, CPU_ROWS, 5, good, &r), ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_quantised_type_is_its_integer_dots),
        cmocka_unit_test(lengths_that_no_stage_divides),
        cmocka_unit_test(rows_and_tiles_give_the_same_bits),
        cmocka_unit_test(q4_k_sums_in_the_kernels_order),
        cmocka_unit_test(float_weights),
        cmocka_unit_test(norms_of_tokens_and_of_heads),
        cmocka_unit_test(rope_turns_the_right_pairs),
        cmocka_unit_test(attention_sees_the_past_and_its_window),
        cmocka_unit_test(gates_and_sums),
        cmocka_unit_test(argmax_keeps_the_two_best),
        cmocka_unit_test(the_parity_check_passes_and_refuses),
    };
    return cmocka_run_group_tests(tests, open_pools, close_pools);
}
