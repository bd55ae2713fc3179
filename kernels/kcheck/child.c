/*
 * kcheck's child: runs one variant on every shape and reports through a pipe; see kcheck.h.
 *
 * Each shape is tried with every input kind and with `repeat` fresh seeds, each output compared
 * after guards and outputs were filled anew; the random inputs are run twice and must give the same
 * bytes. A fault ends the child, since the context is lost. After a failure the cause is narrowed
 * down on one rich shape, see symptom().
 */
#include "kernels/kcheck/bench.h"
#include "kernels/kcheck/gpu.h"
#include "kernels/kcheck/kcheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct child {
    const struct check_job *job;
    int fd;
    struct gpu gpu;
};

static void send_record(const struct child *ch, const struct check_record *r)
{
    /* A record is smaller than PIPE_BUF: written whole or not at all. A reader that is gone ends
     * this process by SIGPIPE, as it should. */
    if (write(ch->fd, r, sizeof *r) != (ssize_t)sizeof *r) _exit(EXIT_FAILED);
}

static void send_text(const struct child *ch, enum record_type type, int a, int b, const char *text)
{
    struct check_record r = {.type = type, .a = a, .b = b};
    snprintf(r.text, sizeof r.text, "%s", text);
    send_record(ch, &r);
}

static uint64_t seed_of(const struct check_job *job, int shape, int kind, int rep)
{
    return job->seed + (uint64_t)shape * 1000003u + (uint64_t)kind * 10007u + (uint64_t)rep * 101u;
}

/* Runs one set of inputs; *same is false when a second run gave other bytes. */
static enum status run_kind(struct child *ch, struct gpu_case *c, enum input_kind kind,
                            uint64_t seed, int runs, struct comparison *cmp, bool *same)
{
    struct family_inputs in;
    uint8_t *first = NULL;
    *same = true;
    enum status st = c->fam->make_inputs(&c->shape, kind, seed, &in);
    if (st != OK) return st;
    st = gpu_case_upload(&ch->gpu, c, &in);
    if (st == OK && runs > 1 && !(first = malloc(c->y_bytes)))
        st = err_set(ERR_NOMEM, "no memory for the outputs");
    for (int i = 0; st == OK && i < runs; i++) {
        if ((st = gpu_case_run(&ch->gpu, c)) != OK) break;
        if (i == 0 && first) memcpy(first, c->host, c->y_bytes);
        if (i > 0 && memcmp(first, c->host, c->y_bytes)) *same = false;
    }
    if (st == OK) check_compare(c->fam, &c->variant->desc, &c->shape, &in, c->host, seed, cmp);
    free(first);
    family_inputs_free(&in);
    return st;
}

static const char *kind_name(int kind)
{
    static const char *const names[] = {"random", "extreme", "all negative", "zero blocks"};
    return names[kind];
}

/* Every kind and seed of one shape; stops at the first that is off. */
static enum disposition try_shape(struct child *ch, struct gpu_case *c, int index,
                                  struct check_record *r)
{
    const struct check_job *job = ch->job;
    for (int rep = 0; rep < job->repeat; rep++) {
        for (int kind = 0; kind < (job->quick ? INPUT_RANDOM + 1 : (int)INPUT_KINDS); kind++) {
            struct comparison cmp;
            bool same;
            char why[CHECK_WHY];
            uint64_t seed = seed_of(job, index, kind, rep);
            send_text(ch, RECORD_BEGIN, index, 0, "");
            enum status st = run_kind(ch, c, (enum input_kind)kind, seed,
                                      kind == INPUT_RANDOM ? 2 : 1, &cmp, &same);
            if (st != OK) {
                snprintf(r->text, sizeof r->text, "%s", err_msg());
                return CHECK_FAULT;
            }
            if (cmp.nmse > r->nmse) r->nmse = cmp.nmse;
            if (cmp.worst > r->worst) r->worst = cmp.worst;
            bool sound = check_verdict(&cmp, why);
            if (sound && !same)
                snprintf(why, sizeof why, "two runs on the same inputs gave different outputs");
            if (!sound || !same) {
                snprintf(r->text, sizeof r->text, "%.180s (%s inputs, seed %llu)", why,
                         kind_name(kind), (unsigned long long)seed);
                return CHECK_FAILED;
            }
        }
    }
    return CHECK_OK;
}

static enum disposition check_shape(struct child *ch, int index)
{
    struct check_record r = {.type = RECORD_SHAPE, .a = index};
    struct gpu_case c;
    enum disposition d;
    send_text(ch, RECORD_BEGIN, index, 0, "");
    enum status st = gpu_case_open(&ch->gpu, &c, ch->job->variant, &ch->job->shapes[index]);
    if (st == OK)
        d = try_shape(ch, &c, index, &r);
    else {
        d = st == ERR_LIMIT ? CHECK_REFUSED : st == ERR_USAGE ? CHECK_SKIPPED : CHECK_FAULT;
        snprintf(r.text, sizeof r.text, "%s", err_msg());
    }
    r.b = (int)d;
    r.n = d == CHECK_OK || d == CHECK_FAILED;
    send_record(ch, &r);
    if (d != CHECK_FAULT) gpu_case_close(&ch->gpu, &c);
    return d;
}

static bool kind_sound(struct child *ch, struct gpu_case *c, enum input_kind kind, int runs,
                       bool *same, struct comparison *cmp)
{
    char why[CHECK_WHY];
    return run_kind(ch, c, kind, ch->job->seed + 77, runs, cmp, same) == OK &&
           check_verdict(cmp, why);
}

/* What kind of wrong: told apart by inputs that make one suspect harmless at a time.
 *   race     two of eight runs on the same inputs differ
 *   guard    bytes outside the output change
 *   unwritten, outputs stay NaN
 *   min-row  right without mins, right when all tokens are alike: the min term of another token
 *   min-sum  right without mins, wrong when all tokens are alike: the min term itself
 *   mixed    wrong without mins, right when all tokens are alike: the product mixes tokens
 *   product  wrong in both */
static const char *symptom(struct child *ch)
{
    static const struct shape rich = {257, 129, 1024};
    struct gpu_case c;
    struct comparison cmp = {0}, other = {0};
    bool same = true, unused;
    const char *found = "";
    if (gpu_case_open(&ch->gpu, &c, ch->job->variant, &rich) == OK) {
        bool sound = kind_sound(ch, &c, INPUT_RANDOM, 8, &same, &cmp);
        bool no_min = kind_sound(ch, &c, INPUT_NO_MIN, 1, &unused, &other);
        bool alike = kind_sound(ch, &c, INPUT_ALIKE, 1, &unused, &other);
        if (cmp.guard_bytes)
            found = "guard";
        else if (!same)
            found = "race";
        else if (cmp.unwritten)
            found = "unwritten";
        else if (!sound)
            found = no_min ? (alike ? "min-row" : "min-sum") : (alike ? "mixed" : "product");
    }
    gpu_case_close(&ch->gpu, &c);
    return found;
}

static void bench(struct child *ch, int index)
{
    struct check_record r = {.type = RECORD_BENCH, .a = index};
    const struct check_job *job = ch->job;
    send_text(ch, RECORD_BEGIN, index, 0, "");
    if (bench_shape(&ch->gpu, job, &job->shapes[index], &r.bench) != OK)
        snprintf(r.text, sizeof r.text, "not timed: %.200s", err_msg());
    send_record(ch, &r);
}

static void run_job(struct child *ch)
{
    const struct check_job *job = ch->job;
    bool failed = false, faulted = false;
    for (int i = 0; i < job->n_shapes && !faulted; i++) {
        enum disposition d = check_shape(ch, i);
        failed |= d == CHECK_FAILED;
        faulted = d == CHECK_FAULT;
        if (d == CHECK_OK && job->bench) bench(ch, i);
    }
    if (failed && !faulted) {
        send_text(ch, RECORD_BEGIN, job->n_shapes - 1, 0, "");
        send_text(ch, RECORD_SYMPTOM, 0, 0, symptom(ch));
    }
}

int check_child(const struct check_job *job, int fd)
{
    struct child ch = {.job = job, .fd = fd};
    enum status st = gpu_open(&ch.gpu);
    if (st == OK) {
        send_text(&ch, RECORD_DEVICE, ch.gpu.sm, 0, ch.gpu.name);
        if (job->reg) st = launcher_open(&ch.gpu.launcher, ch.gpu.drv, ch.gpu.dev, job->reg);
    }
    if (st != OK) {
        send_text(&ch, RECORD_ERROR, 0, err_exit_code(st), err_msg());
        return err_exit_code(st);
    }
    if (job->reg) run_job(&ch);
    send_text(&ch, RECORD_END, 0, 0, "");
    return EXIT_OK; /* the process ends here: its context goes with it */
}
