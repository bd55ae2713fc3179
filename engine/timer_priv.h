/* What timer.c and timer_sync.c share. */
#ifndef ENGINE_TIMER_PRIV_H
#define ENGINE_TIMER_PRIV_H

#include "engine/engine.h"
#include "engine/timer.h"
#include "engine/timer_wire.h"

enum { TIMER_FAMILIES = 16 };

enum timer_state {
    TIMER_OPENING, /* it has not said that all is loaded */
    TIMER_READY,
    TIMER_GONE, /* given up */
};

/* What it runs of a family; variant "": not told yet. */
struct timer_family {
    char family[32], variant[48];
    uint32_t kd, choices; /* choices: number of the list that it has */
};

struct timer {
    struct timer_wire wire;
    enum timer_state state;
    unsigned deaths;
    uint32_t generation; /* that had a round there */
    size_t free_before;  /* GPU memory before this engine loaded; 0 = not known */
    size_t need;         /* what it then took */
    uint64_t wait_ns; /* when waiting for it began, or it last went on loading; 0 = nobody waits */
    uint32_t done;    /* of its last PROGRESS */
    /* What came since the last question. */
    struct msg_round round;
    struct msg_reply reply;
    struct msg_fault fault;
    struct msg_bye bye;
    bool replied, has_round, has_fault, has_bye;
    /* What it was told. */
    struct timer_family families[TIMER_FAMILIES];
    uint32_t nfamilies, blocks, prompt;
};

/* Waits until it has answered `verb`; ERR_AGAIN: this engine leaves, or, when `gives_way`, a
 * command waits here and the round there was ended for it. ERR_END: it is gone. ERR_FAILED: it
 * refused, or its fault. */
enum status timer_until(struct engine *e, const char *verb, bool gives_way);

/* Sends a command and waits for its answer. */
enum status timer_ask(struct engine *e, const struct msg_command *c);

/* Tells it what was selected here since it was asked last: prompt, auto's choices, variants,
 * blocks.
 */
enum status timer_sync(struct engine *e);

#endif
