/*
 * One side of an experiment as it is written: VARIANT:KD[,blocks=N][,cubins=DIR][,NAME=VALUE]...
 * NAME=VALUE (an upper-case name) goes into the environment of the side's processes. Plain data;
 * the registry that a side was found in is owned by it and closed by lab_side_close(). One thread.
 */
#ifndef TUI_LAB_SIDE_H
#define TUI_LAB_SIDE_H

#include "kernels/registry.h"
#include "tui/options.h"
#include "tui/pick_kernel.h"

enum { LAB_ENV_MAX = 4 };

struct lab_side {
    char text[128], variant[48], cubins[256];
    uint32_t kd;
    int blocks; /* a SM; 0 = as it is */
    struct {
        char name[64], value[128];
    } env[LAB_ENV_MAX];
    unsigned nenv;

    struct registry *reg;
    const struct variant *v; /* NULL: no cubin is known by that name */
    bool has_code;
    struct picked code; /* when has_code: decoded, counted */
};

/* ERR_USAGE with what is understood. */
enum status lab_side_parse(const char *text, struct lab_side *out);
/* Finds the kernel for a device of `sm` (0: the highest there is) and decodes it. Not found is no
 * error: `v` stays NULL, and err_msg() says why. */
void lab_side_resolve(struct lab_side *s, int sm);
void lab_side_close(struct lab_side *s);
/* "nb_kd8" */
void lab_side_kernel(const struct lab_side *s, char *out, size_t size);
/* Everything but the variant's name and KD is equal. */
bool lab_side_same_place(const struct lab_side *a, const struct lab_side *b);

/* Makes the engine's options those of this side; `text` holds their strings, for as long as `ro` is
 * used. */
struct lab_side_text {
    char kd[12], blocks[12];
};
void lab_side_options(const struct lab_side *s, struct lab_side_text *text, struct run_options *ro);

/* Puts the side's environment into this process's, for the next child; and takes it out again. */
void lab_side_enter(const struct lab_side *s);
void lab_side_leave(const struct lab_side *s);

#endif
