/* Options of `sasstop run` and `sasstop replay`: plain data, pointers into argv. */
#ifndef TUI_OPTIONS_H
#define TUI_OPTIONS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct run_options {
    /* passed to the engine; NULL or 0 = its own default */
    const char *model, *prompt, *bench, *backend, *sources, *exact, *variant, *kd, *schedule, *rest,
        *threads;
    const char *blocks, *variants, *executed, *timer;
    const char *seed, *context, *tokens;
    bool no_graphs, no_parity;
    const char *script_fault; /* tests only: see the engine */
    /* the screen's own */
    const char *record; /* record into this file from the start */
    const char *report; /* save a report there at the end; its extension names the format */
    const char *script; /* a script of keys and dumps instead of a terminal */
    const char *replay; /* recording to show instead of an engine */
    bool headless, dump;
    double seconds;    /* headless: how long; 0 = default */
    int width, height; /* of a scripted screen; 0 = default */
    double speed;      /* replay: 1 = as it was */
    double at;         /* replay: start here, seconds; < 0 = first generation */
    char command[400]; /* the command line, for the recording */
};

#endif
