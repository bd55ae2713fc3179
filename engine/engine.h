/*
 * The engine's state, shared by loop, rounds, generations and collect: all of it belongs to the
 * launching thread. engine_run() (loop.c) makes it, goes through the start order of the stream,
 * runs rounds until told to stop, and takes it apart.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/commands.h"
#include "engine/forward.h"
#include "engine/options.h"
#include "engine/rows.h"
#include "engine/workload.h"

enum {
    ENGINE_CONTEXT = 2048,        /* default KV length, more when the workload needs it */
    ENGINE_MAX_STEP = 2048,       /* tokens of one prefill step; longer prompts take several */
    ENGINE_CPU_STEP = 128,        /* the same on a CPU */
    ENGINE_MIN_STEP = 64,         /* room for prompts that come later */
    ENGINE_CHOICES = 128,         /* of auto, over all families */
    ENGINE_TEXT_TIME = 200000000, /* ns between PROGRESS frames of a decode */
};

struct collect;
struct cupti_lib;
struct timer;

/* What auto chose for a shape. */
struct choice {
    char family[32], variant[48];
    uint32_t mnk[3], kd;
};

struct choices {
    struct choice of[ENGINE_CHOICES];
    uint32_t n, version; /* version counts changes */
};

struct engine {
    const struct options *opt;
    struct emit *emit;
    struct commands *cmds;
    const struct backend_ops *bo;
    struct backend *b;
    struct backend_limits limits;
    struct cupti_lib *cupti; /* collect's, opened before HELLO, which names it; NULL: none */
    char cupti_why[300];     /* why there is none; "": not asked for */
    char fallback[400]; /* why a better backend isn't used; "" */
    struct model *model;
    struct workload work;
    uint32_t context, max_step;
    struct forward_buffers bufs;
    struct forward chunk, rest, decode; /* prefill: whole steps, and what is left; one token */
    struct rows *rows;
    struct collect *collect;
    struct timer *timer; /* where timed rounds run when not here (timer.h) */
    struct choices choices;
    char prompt[256];         /* the last one that a command gave */
    uint32_t prompts, blocks; /* how many did; blocks forced on an SM */
    uint32_t round, generation;
    char family[32]; /* whose variant was selected last: what a fault is blamed on */
    uint64_t last_hash;       /* of the last whole round's tokens */
    uint32_t hash_generation; /* its generation; 0: there is none to compare with */
    uint64_t progress_ns;     /* when PROGRESS was sent last */
    bool paused, quit;
    bool show_prompt; /* the next round sends the prompt's tokens as text */
};

/* The whole life of the engine; the exit status. */
int engine_run(const struct options *opt);

/* describe.c: the frames that introduce the stream. */
void describe_hello(struct engine *e);
void describe_model(struct engine *e);
void describe_kernels(struct engine *e); /* KERNEL_DEF, CENSUS, MODULE */
void describe_variants(struct engine *e);

/* loop.c. Tells a step's failure as a FAULT frame. */
void engine_tell_fault(struct engine *e, enum status st);
/* Other work from the next round on; what ran before stays on an error. */
enum status engine_prompt(struct engine *e, const char *text);

/* rounds.c. ERR_AGAIN: given up at a token boundary, since a command waits. */
enum status rounds_run(struct engine *e);
/* Whether the launching thread should come back to the loop. */
bool rounds_interrupted(struct engine *e);
void engine_progress(struct engine *e, const char *phase, uint32_t done, uint32_t total);

/* generations.c */
/* `family`: the one whose variant the generation is about. */
void generation_begin(struct engine *e, const char *family, const char *reason, const char *parity,
                      const char *text);
void generation_flip(struct engine *e, const struct msg_command *cmd);

/* backends.c: the backend of --backend; auto: the first that opens, with the reason of the
 * one before it in e->fallback. */
enum status backends_open(struct engine *e, const struct backend_options *o);

#endif
