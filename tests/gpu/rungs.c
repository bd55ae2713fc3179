/*
 * Launches every variant of the GEMM families once on one shape, for what looks on from outside
 * (ncu, compute-sanitizer), and says how each was launched:
 *   rungs M,N,K [CLASS]     of one numeric class: q8, bf16
 * One CSV row a kernel under a heading: what it is by its descriptor (rung, kd, class, step,
 * parent, verdict), how it was launched (blocks of the grid, threads, shared memory with the static
 * part, registers, blocks/SM by the driver's word), or why it was refused. With no arguments there
 * is nothing to do, said in a closing line, so that the runner of all tests may call it. One launch
 * each: a profiler that wants a warm one repeats it.
 */
#include "base/quote.h"
#include "kernels/kcheck/gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void text(const char *s)
{
    putchar(',');
    quote_csv_print(stdout, s);
}

static void head(void)
{
    puts("kernel,family,rung,kd,code_hash,class,step,parent,verdict,m,n,k,blocks,threads,smem,regs,"
         "blocks_per_sm,refused");
}

static void tell(struct gpu *g, const struct variant *v, const struct shape *s,
                 const struct launch_plan *p, const char *refused)
{
    int fixed = v->static_smem > 0 ? v->static_smem : 0, blocks = 0;
    printf("%s,%s,%s,%d,%016" PRIx64 ",%s,%s,%s", v->kernel, v->family, v->name, v->kd,
           v->code_hash, v->desc.numeric, v->desc.step, v->desc.parent);
    text(v->desc.verdict);
    printf(",%d,%d,%d", s->m, s->n, s->k);
    if (p)
        printf(",%u", p->grid[0] * p->grid[1] * p->grid[2]);
    else
        putchar(',');
    printf(",%u,%u,%d", v->desc.threads, v->dyn_smem + (uint32_t)fixed, v->regs);
    if (p && launcher_occupancy(g->launcher, p, &blocks) == OK)
        printf(",%d", blocks);
    else
        putchar(',');
    text(refused);
    putchar('\n');
    fflush(stdout);
}

static enum status launch_one(struct gpu *g, const struct variant *v, const struct shape *s,
                              const struct family_inputs *in)
{
    struct gpu_case c;
    enum status st = gpu_case_open(g, &c, v, s);
    if (st == ERR_LIMIT) {
        tell(g, v, s, NULL, err_msg());
        return OK;
    }
    if (st == OK) st = gpu_case_upload(g, &c, in);
    if (st == OK) st = driver_check(g->drv, g->drv->CtxSynchronize(), "upload");
    if (st == OK) st = gpu_case_launch(g, &c, c.b);
    if (st == OK)
        st = driver_check(g->drv, g->drv->StreamSynchronize(g->stream), c.variant->kernel);
    if (st == OK) tell(g, v, s, &c.plan, "");
    gpu_case_close(g, &c);
    return st;
}

static enum status launch_family(struct gpu *g, const struct registry *reg,
                                 const struct kernel_family *fam, const struct shape *s,
                                 const char *class)
{
    struct family_inputs in = {0};
    enum status st = fam->check_shape(s);
    if (st == OK) st = fam->make_inputs(s, INPUT_RANDOM, 1, &in);
    for (int i = 0; st == OK && i < registry_count(reg); i++) {
        const struct variant *v = registry_get(reg, i);
        if (class && strcmp(v->desc.numeric, class)) continue;
        if (!v->broken && !strcmp(v->family, fam->name)) st = launch_one(g, v, s, &in);
    }
    family_inputs_free(&in);
    return st;
}

static enum status run(struct gpu *g, struct registry **reg, const struct shape *s,
                       const char *class)
{
    enum status st = gpu_open(g);
    struct registry_options o = {.sm = g->sm};
    if (st == OK) st = registry_open(&o, reg);
    if (st == OK) st = launcher_open(&g->launcher, g->drv, g->dev, *reg);
    if (st == OK) head();
    for (int i = 0; st == OK && i < family_count(); i++)
        st = launch_family(g, *reg, family_get(i), s, class);
    return st;
}

int main(int argc, char **argv)
{
    struct gpu g = {0};
    struct registry *reg = NULL;
    struct shape s;
    if (argc == 1) {
        printf("nothing to launch: ladder.sh calls this\n0 passed, 0 failed, 0 skipped\n");
        return 0;
    }
    if (argc > 3 || sscanf(argv[1], "%d,%d,%d", &s.m, &s.n, &s.k) != 3) {
        fprintf(stderr, "usage: rungs M,N,K [CLASS]\n");
        return EXIT_USAGE;
    }
    enum status st = run(&g, &reg, &s, argc == 3 ? argv[2] : NULL);
    if (st != OK) fprintf(stderr, "rungs: %s\n", err_msg());
    gpu_close(&g);
    registry_close(reg);
    return st == OK ? EXIT_OK : err_exit_code(st);
}
