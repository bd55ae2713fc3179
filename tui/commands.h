/* The commands of the program; see commands.def. Each returns an exit status (base/status.h). */
#ifndef TUI_COMMANDS_H
#define TUI_COMMANDS_H

#include "base/status.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *arguments, *line, *options;
};

extern const struct command commands[];
extern const unsigned ncommands;
const struct command *command_find(const char *name); /* NULL when unknown */

int cmd_run(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_cut(int argc, char **argv);
int cmd_ab(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_ledger(int argc, char **argv);
int cmd_ladder(int argc, char **argv);
int cmd_variants(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_help(int argc, char **argv);

/* One line on stderr, and the exit status that fits. */
int command_fail(enum status st);
/* After getopt met something unknown (it printed nothing: opterr is 0). */
int command_usage(const char *command, char **argv);

#endif
