/* Printing an experiment. One thread. */
#ifndef TUI_LAB_PRINT_H
#define TUI_LAB_PRINT_H

#include "session/model.h"

void lab_print_text(const struct lab_experiment *x, const char *recording);
/* One object with every sample. ERR_NOMEM. */
enum status lab_print_json(const struct session *s, const struct lab_experiment *x,
                           const char *recording);

#endif
