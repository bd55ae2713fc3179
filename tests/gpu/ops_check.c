/*
 * Every operator of the CUDA backend against the CPU backend, on random data and ragged shapes:
 * both run the same list, the outputs are compared. Outputs start as NaN on the GPU, so that what
 * wasn't written shows. Ends with "N passed, N failed, N skipped"; without a GPU all are skipped.
 *
 * Tolerances: op_pair.h.
 */
#include "engine/cuda/cuda_priv.h"
#include "engine/model.h"
#include "kernels/q8.h"
#include "tests/gpu/op_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 1024, MAX_TOKENS = 512 };

static int launches, times;

static const enum quant_type TYPES[] = {QUANT_F32,  QUANT_F16,  QUANT_Q4_1, QUANT_Q5_0,
                                        QUANT_Q8_0, QUANT_Q4_K, QUANT_Q6_K};
enum { NTYPES = sizeof TYPES / sizeof TYPES[0] };
static const uint32_t TOKENS[] = {1, 2, 3, 5, 7, 8, 9, 33, 64, 129, 512};
enum { NTOKENS = sizeof TOKENS / sizeof TOKENS[0] };

/* The chunks that the last product on the GPU was given, byte for byte; x: the values on the CPU.
 */
static void check_quantise(const char *what, const float *x, uint32_t n, uint32_t k)
{
    size_t bytes = n * q8_row_bytes((int)k), at = 0;
    uint8_t *ref = need(bytes), *got = need(bytes);
    struct buffer q8 = {gpu->q8.p, gpu->q8.bytes};
    char text[80];
    for (uint32_t t = 0; t < n; t++)
        q8_quantize_row(x + (size_t)t * k, (int)k, ref + t * q8_row_bytes((int)k));
    must(cuda_backend.download(gpu, &q8, 0, got, bytes));
    while (at < bytes && ref[at] == got[at]) at++;
    snprintf(text, sizeof text, "chunks differ at byte %zu of %zu", at, bytes);
    result(at == bytes, what, text);
    free(ref);
    free(got);
}

static void check_product(enum quant_type type, uint32_t m, uint32_t n, uint32_t k, bool bias)
{
    char what[96];
    snprintf(what, sizeof what, "matmul %s m=%u n=%u k=%u%s", quant_name(type), m, n, k,
             bias ? " +bias" : "");
    struct weights w = weights_of(type, m, k, 0.02), b = weights_of(QUANT_F32, 1, m, 1);
    struct pair x = pair_random((size_t)n * k, 1), y = pair_out((size_t)n * m);
    struct io io = {.x = &x, .y = &y, .w = &w, .bias = bias ? &b : NULL};
    if (run_op(what, (struct op){.kind = OP_MATMUL, .layer = -1, .n = n}, &io)) {
        compare(what, &y, (size_t)n * m);
        snprintf(what, sizeof what, "quantise n=%u k=%u", n, k);
        if (type == QUANT_Q8_0) check_quantise(what, (const float *)(uintptr_t)x.c.addr, n, k);
    }
    pair_free(&x);
    pair_free(&y);
    pair_free(&w.p);
    pair_free(&b.p);
}

static void check_products(void)
{
    static const uint32_t MK[][2] = {{7, 256}, {64, 512}, {130, 768}, {256, 2304}};
    for (int t = 0; t < NTYPES; t++) {
        bool block256 = TYPES[t] == QUANT_Q4_K || TYPES[t] == QUANT_Q6_K;
        bool plain = TYPES[t] == QUANT_F32 || TYPES[t] == QUANT_F16;
        for (int n = 0; n < NTOKENS; n++) {
            /* The CPU's float path has room for the loaded model's longest row, 512. */
            for (int i = 0; i < (plain ? 2 : 4); i++)
                check_product(TYPES[t], MK[i][0], TOKENS[n], MK[i][1], n == 3);
            if (!block256) check_product(TYPES[t], 65, TOKENS[n], plain ? 72 : 96, false);
        }
    }
    /* Of one token: more pairs of rows than a block has warps, and rows of many stages. */
    static const uint32_t ONE[][2] = {{4300, 512}, {40, 14336}};
    for (int i = 0; i < 2; i++) {
        check_product(QUANT_Q4_K, ONE[i][0], 1, ONE[i][1], false);
        check_product(QUANT_Q6_K, ONE[i][0], 1, ONE[i][1], false);
    }
    check_product(QUANT_Q4_K, 24, 1, 17408, false); /* more than one staged tile of the GEMV */
    check_product(QUANT_Q6_K, 24, 5, 17408, false);
}

static void check_gemm_variants(void)
{
    const struct kernel_info *list;
    uint32_t count = cuda_backend.kernels(gpu, &list), kd = 0;
    const char *first = NULL;
    if (!cuda_backend.selected(gpu, "q4k_gemm", &first, &kd)) return;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].family, "q4k_gemm")) continue;
        if (list[i].copies) {
            printf("SKIP %s: it copies weights of the loaded model alone\n", list[i].name);
            continue;
        }
        if (cuda_backend.select(gpu, "q4k_gemm", list[i].variant, list[i].kd) != OK) {
            printf("SKIP %s: %s\n", list[i].name, err_msg());
            continue;
        }
        printf("q4k_gemm %s\n", list[i].name);
        bool bf16 = !strcmp(list[i].cls, "bf16");
        nmse_max = bf16 ? BF16_NMSE_MAX : NMSE_MAX;
        worst_max = bf16 ? BF16_WORST_MAX : WORST_MAX;
        check_product(QUANT_Q4_K, 130, 33, 768, false);
        check_product(QUANT_Q4_K, 256, 129, 2304, false);
    }
    nmse_max = NMSE_MAX;
    worst_max = WORST_MAX;
    must(cuda_backend.select(gpu, "q4k_gemm", first, kd));
}

static void check_embed(void)
{
    static const uint32_t TOK[] = {0, 36, 1, 5, 5, 17, 30};
    for (int t = 0; t < NTYPES; t++) {
        char what[64];
        snprintf(what, sizeof what, "embed %s", quant_name(TYPES[t]));
        struct weights w = weights_of(TYPES[t], 37, 768, 0.5);
        struct pair y = pair_out(7 * 768);
        struct io io = {.y = &y, .w = &w, .tokens = TOK};
        if (run_op(what, (struct op){.kind = OP_EMBED, .n = 7, .scale = 27.7f}, &io))
            compare(what, &y, 7 * 768);
        pair_free(&y);
        pair_free(&w.p);
    }
}

static void check_norms(void)
{
    static const uint32_t DIMS[] = {64, 100, 256, 640, 4096}, HEADS[] = {0, 1, 4};
    for (int d = 0; d < 5; d++) {
        for (int h = 0; h < 3; h++) {
            for (uint32_t n = 1; n <= 33; n += 16) {
                char what[64];
                uint32_t groups = n * (HEADS[h] ? HEADS[h] : 1);
                size_t all = (size_t)groups * DIMS[d];
                snprintf(what, sizeof what, "norm n=%u heads=%u dim=%u", n, HEADS[h], DIMS[d]);
                struct weights w = weights_of(QUANT_F32, 1, DIMS[d], 1);
                struct pair x = pair_random(all, 3), y = pair_out(all);
                /* Norms of heads are done in place. */
                struct io io = {.x = &x, .y = HEADS[h] ? &x : &y, .w = &w};
                struct op op = {
                    .kind = OP_NORM, .n = n, .dim = DIMS[d], .heads = HEADS[h], .eps = 1e-6f};
                if (run_op(what, op, &io)) compare(what, io.y, all);
                pair_free(&x);
                pair_free(&y);
                pair_free(&w.p);
            }
        }
    }
}

/* Frequency factors stay where they are, as a model's do: the backend keeps tables made of them. */
static void check_rope(void)
{
    static const uint32_t POS[] = {0, 5, 500};
    struct weights w = weights_of(QUANT_F32, 1, 64, 0.1);
    float *f = (float *)(uintptr_t)w.p.c.addr;
    for (uint32_t j = 0; j < 64; j++) f[j] += 4;
    must(cuda_upload(gpu, &w.p.g, 0, f, 64 * sizeof *f));
    for (int i = 0; i < 3 * 2 * 2 * 2; i++) {
        uint32_t hd = i & 1 ? 128 : 64, heads = 3, n = 7, pos = POS[i / 8];
        bool halves = i & 2, factors = i & 4;
        char what[80];
        snprintf(what, sizeof what, "rope %s head=%u pos=%u%s", halves ? "halves" : "pairs", hd,
                 pos, factors ? " factors" : "");
        struct pair x = pair_random((size_t)n * heads * hd, 1);
        struct io io = {.x = &x, .y = &x, .factors = factors ? &w : NULL, .pos0 = pos};
        struct op op = {.kind = OP_ROPE,
                        .n = n,
                        .heads = heads,
                        .head_dim = hd,
                        .rope_base = 10000,
                        .rope_scale = 0.5f,
                        .rope_neox = halves};
        if (run_op(what, op, &io)) compare(what, &x, (size_t)n * heads * hd);
        pair_free(&x);
    }
    pair_free(&w.p);
}

/* Layers of the cache: head length, key heads; query heads. */
static const uint32_t HEADS[][3] = {{64, 4, 4}, {64, 2, 8}, {96, 2, 4}, {128, 2, 10}, {256, 1, 4}};
enum { LAYERS = sizeof HEADS / sizeof HEADS[0] };

static void fill_cache(int layer, uint32_t pos0, uint32_t n)
{
    uint32_t dim = HEADS[layer][0] * HEADS[layer][1];
    for (uint32_t at = 0; at < n; at += MAX_TOKENS) {
        uint32_t some = n - at < MAX_TOKENS ? n - at : MAX_TOKENS;
        struct pair k = pair_random((size_t)some * dim, 1), v = pair_random((size_t)some * dim, 1);
        struct io io = {.x = &k, .x2 = &v, .pos0 = pos0 + at};
        run_op("kv_store", (struct op){.kind = OP_KV_STORE, .layer = layer, .n = some, .dim = dim},
               &io);
        pair_free(&k);
        pair_free(&v);
    }
}

static void check_attention_at(int layer, uint32_t pos0, uint32_t n, uint32_t window)
{
    uint32_t hd = HEADS[layer][0], kv = HEADS[layer][1], heads = HEADS[layer][2];
    size_t all = (size_t)n * heads * hd;
    char what[96];
    snprintf(what, sizeof what, "attention head=%u heads=%u/%u n=%u pos=%u window=%u", hd, heads,
             kv, n, pos0, window);
    struct pair q = pair_random(all, 1), y = pair_out(all);
    struct io io = {.x = &q, .y = &y, .pos0 = pos0};
    struct op op = {.kind = OP_ATTENTION,
                    .layer = layer,
                    .n = n,
                    .heads = heads,
                    .kv_heads = kv,
                    .head_dim = hd,
                    .window = window,
                    .scale = 0.3f};
    if (run_op(what, op, &io)) compare(what, &y, all);
    pair_free(&q);
    pair_free(&y);
}

static void check_attention(void)
{
    static const uint32_t WINDOWS[] = {0, 16, 200}, ONE[] = {0, 1, 15, 16, 300, 1023};
    for (int layer = 0; layer < LAYERS; layer++) {
        fill_cache(layer, 0, CONTEXT);
        for (int w = 0; w < 3; w++) {
            for (int i = 0; i < 6; i++) check_attention_at(layer, ONE[i], 1, WINDOWS[w]);
            check_attention_at(layer, 0, 7, WINDOWS[w]);
            check_attention_at(layer, 0, 129, WINDOWS[w]);
            check_attention_at(layer, 300, 8, WINDOWS[w]);
            check_attention_at(layer, 301, 33, WINDOWS[w]);
            if (w == 2) check_attention_at(layer, 512, 512, WINDOWS[w]);
        }
    }
}

/* What attn_one takes in one launch, on both: q and k turned, the cache, attention, its chunks; and
 * attention alone, which reads the row that was stored. */
static void check_attention_one_at(int layer, uint32_t pos, uint32_t window, bool halves)
{
    uint32_t hd = HEADS[layer][0], kv = HEADS[layer][1], heads = HEADS[layer][2];
    uint32_t dim = heads * hd;
    char what[96];
    snprintf(what, sizeof what, "one: head=%u heads=%u/%u pos=%u window=%u %s", hd, heads, kv, pos,
             window, halves ? "halves" : "pairs");
    struct pair q = pair_random(dim, 1), k = pair_random(kv * hd, 1), v = pair_random(kv * hd, 1);
    struct pair y = pair_out(dim), z = pair_out(8);
    struct weights w = weights_of(QUANT_Q4_K, 8, (dim + 255) / 256 * 256, 1);
    bool product = dim % 256 == 0;
    struct step_result r[2];
    struct op ops[2][5];
    for (int s = 0; s < 2; s++) {
        struct op rope = {.kind = OP_ROPE,
                          .role = what,
                          .n = 1,
                          .layer = layer,
                          .heads = heads,
                          .head_dim = hd,
                          .rope_base = 10000,
                          .rope_scale = 0.5f,
                          .rope_neox = halves},
                  *o = ops[s];
        for (int i = 0; i < 5; i++) o[i] = (struct op){.role = what, .n = 1, .layer = layer};
        o[0] = o[1] = rope;
        o[0].x = o[0].y = o[3].x = s ? q.g : q.c;
        o[1].x = o[1].y = o[2].x = s ? k.g : k.c;
        o[1].heads = o[3].kv_heads = kv;
        o[2].kind = OP_KV_STORE;
        o[2].x2 = s ? v.g : v.c;
        o[2].dim = kv * hd;
        o[3].kind = OP_ATTENTION;
        o[3].y = o[4].x = s ? y.g : y.c;
        o[3].heads = heads;
        o[3].head_dim = hd;
        o[3].window = window;
        o[3].scale = 0.3f;
        o[4].kind = OP_MATMUL;
        o[4].y = s ? z.g : z.c;
        o[4].w = s ? &w.g : &w.c;
    }
    launches = 0;
    must(cpu_backend.run(cpu, ops[0], 4, NULL, 1, pos, false, TIMING_NONE, &r[0]));
    must(cuda_backend.run(gpu, ops[1], product ? 5 : 4, NULL, 1, pos, false, TIMING_NONE, &r[1]));
    compare(what, &y, dim);
    if (product && gpu->fuse) {
        float *got = need(dim * sizeof *got);
        must(cuda_backend.download(gpu, &y.g, 0, got, dim * sizeof *got));
        check_quantise(what, got, 1, dim);
        free(got);
    }
    must(cuda_backend.run(gpu, ops[1], 4, NULL, 1, pos, false, TIMING_EXTERNAL, NULL));
    must(cuda_backend.sync(gpu));
    if (gpu->fuse) {
        result(launches == 1, what, "more than one launch");
        compare(what, &y, dim); /* q was left as it was */
    }
    check_attention_at(layer, pos, 1, window);
    pair_free(&q);
    pair_free(&k);
    pair_free(&v);
    pair_free(&y);
    pair_free(&z);
    pair_free(&w.p);
}

static void check_attention_one(void)
{
    static const uint32_t POS[] = {0, 1, 7, 63, 64, 300, 639, 640, 1023}, WINDOWS[] = {0, 16, 200};
    for (int i = 0; i < LAYERS * 9 * 3; i++)
        check_attention_one_at(i % LAYERS, POS[i / LAYERS % 9], WINDOWS[i / LAYERS / 9], i & 1);
}

static void check_pairwise(void)
{
    static const struct op OPS[] = {
        {.kind = OP_GLU}, {.kind = OP_GLU, .gelu = true}, {.kind = OP_ADD}, {.kind = OP_LAST}};
    static const char *const NAMES[] = {"glu silu", "glu gelu", "add", "last"};
    for (int i = 0; i < 4; i++) {
        for (uint32_t n = 1; n <= 33; n += 16) {
            struct op op = OPS[i];
            uint32_t dim = 515;
            size_t out = op.kind == OP_LAST ? dim : (size_t)n * dim;
            struct pair x = pair_random((size_t)n * dim, 4), x2 = pair_random((size_t)n * dim, 1);
            struct pair y = pair_out(out);
            struct io io = {.x = &x, .x2 = &x2, .y = &y};
            op.n = n;
            op.dim = dim;
            if (run_op(NAMES[i], op, &io)) compare(NAMES[i], &y, out);
            pair_free(&x);
            pair_free(&x2);
            pair_free(&y);
        }
    }
}

static void check_argmax(void)
{
    static const uint32_t VOCAB[] = {1, 7, 512, 32000, 262144};
    for (int i = 0; i < 15; i++) {
        uint32_t v = VOCAB[i % 5];
        float *l = randoms(v, 10);
        if (i / 5 == 1) l[v / 2] = l[v / 3] = 40; /* a tie: the lower wins */
        if (i / 5 == 2) l[v - 1] = 50;
        struct pair y = pair_of(l, v * sizeof *l);
        struct op c = {.kind = OP_ARGMAX, .role = "argmax", .n = 1, .dim = v, .y = y.c}, g = c;
        struct step_result r[2];
        char text[96];
        g.y = y.g;
        if (run_both("argmax", &c, &g, NULL, 0, r)) {
            snprintf(text, sizeof text, "of %u: %u %g %g, the CPU says %u %g %g", v, r[1].token,
                     r[1].top1, r[1].top2, r[0].token, r[0].top1, r[0].top2);
            result(r[0].token == r[1].token && r[0].top1 == r[1].top1 && r[0].top2 == r[1].top2,
                   "argmax", text);
        }
        pair_free(&y);
        free(l);
    }
}

/* A decode step as a graph: run, captured, replayed at rising positions; then timed and told. */
static void check_decode_graph(void)
{
    uint32_t dim = 256, vocab = 64;
    launches = times = 0;
    struct weights w = weights_of(QUANT_Q4_K, vocab, dim, 1);
    struct pair x = pair_out(dim), y = pair_out(dim), l = pair_out(vocab);
    struct op ops[2][6] = {{{0}}};
    for (int s = 0; s < 2; s++) {
        const struct weight *ws = s ? &w.g : &w.c;
        struct buffer bx = s ? x.g : x.c, by = s ? y.g : y.c, bl = s ? l.g : l.c;
        struct op list[6] = {
            {.kind = OP_EMBED, .role = "embed", .layer = -1, .n = 1, .w = ws, .y = bx, .scale = 1},
            {.kind = OP_ROPE,
             .role = "rope",
             .n = 1,
             .x = bx,
             .y = bx,
             .heads = 4,
             .head_dim = 64,
             .rope_base = 10000,
             .rope_scale = 1},
            {.kind = OP_KV_STORE, .role = "kv", .n = 1, .x = bx, .x2 = bx, .dim = dim},
            {.kind = OP_ATTENTION,
             .role = "attn",
             .n = 1,
             .x = bx,
             .y = by,
             .heads = 4,
             .kv_heads = 4,
             .head_dim = 64,
             .scale = 0.1f},
            {.kind = OP_MATMUL, .role = "out", .n = 1, .x = by, .y = bl, .w = ws},
            {.kind = OP_ARGMAX, .role = "argmax", .n = 1, .y = bl, .dim = vocab},
        };
        memcpy(ops[s], list, sizeof list);
    }
    for (uint32_t pos = 0; pos < 20; pos++) {
        uint32_t token = pos * 7 % vocab;
        struct step_result r[2];
        enum timing t = pos < 18 ? TIMING_NONE : pos == 18 ? TIMING_EXTERNAL : TIMING_LAUNCH;
        must(cpu_backend.run(cpu, ops[0], 6, &token, 1, pos, true, TIMING_NONE, &r[0]));
        enum status st = cuda_backend.run(gpu, ops[1], 6, &token, 1, pos, true, t, &r[1]);
        result(st == OK && r[0].token == r[1].token, "decode graph",
               st == OK ? "token" : err_msg());
        if (st == OK) compare("decode graph", &l, vocab);
    }
    char text[64];
    /* Six operators: the parts of attention, their merge with its chunks, and argmax in two. */
    snprintf(text, sizeof text, "%d launches told, %d times", launches, times);
    result(gpu->graph && launches == times && launches == 8, "decode graph", text);
    pair_free(&x);
    pair_free(&y);
    pair_free(&l);
    pair_free(&w.p);
}

static void on_launch(void *ctx, const struct launch_info *i)
{
    (void)ctx;
    launches += i->role != NULL;
}

static void on_time(void *ctx, const struct launch_info *i, uint64_t start, uint64_t dur)
{
    (void)ctx;
    (void)i;
    times += start > 0 && dur < 1000000000u;
}

int main(void)
{
    struct backend_options o = {.threads = 0,
                                .max_tokens = MAX_TOKENS,
                                .context = CONTEXT,
                                .graphs = true,
                                .hooks = {NULL, on_launch, NULL, on_time}};
    struct backend_options oc = o;
    struct model *m = NULL;
    uint32_t dims[LAYERS];
    enum status st = cuda_backend.open(&o, &gpu);
    if (st != OK) {
        printf("SKIP ops_check: %s\n0 passed, 0 failed, 1 skipped\n", err_msg());
        return st == ERR_UNAVAILABLE ? 0 : 1;
    }
    memset(&oc.hooks, 0, sizeof oc.hooks);
    must(cpu_backend.open(&oc, &cpu));
    must(model_open("synth:tiny", &m));
    must(cpu_backend.load(cpu, m, NULL, NULL));
    must(cuda_backend.load(gpu, m, NULL, NULL));
    for (int i = 0; i < LAYERS; i++) dims[i] = HEADS[i][0] * HEADS[i][1];
    must(cpu_backend.kv_init(cpu, LAYERS, dims));
    must(cuda_backend.kv_init(gpu, LAYERS, dims));
    check_products();
    check_gemm_variants();
    check_embed();
    check_norms();
    check_rope();
    check_attention();
    if (launcher_limits(gpu->launcher)->sm == 90) check_attention_one();
    check_pairwise();
    check_argmax();
    check_decode_graph();
    cuda_backend.close(gpu);
    cpu_backend.close(cpu);
    model_close(m);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
