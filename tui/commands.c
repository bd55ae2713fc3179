/* The list of commands, their help, and the small ones. */
#include "tui/commands.h"

#include "base/buf.h"
#include "base/version.h"
#include "tui/cmd_diff.h"
#include "tui/cmd_sass.h"
#include "tui/engine_child.h"
#include "tui/keys.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct command *command_find(const char *name)
{
    for (unsigned i = 0; i < ncommands; i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

int command_fail(enum status st)
{
    fprintf(stderr, "sasstop: %s\n", err_msg());
    return err_exit_code(st);
}

int command_usage(const char *command, char **argv)
{
    /* getopt leaves optind behind the word it stumbled over. */
    const char *word = optind > 1 && argv[optind - 1] ? argv[optind - 1] : "";
    fprintf(stderr,
            "sasstop %s: '%s' is not understood, or lacks its value; try: sasstop %s --help\n",
            command, word, command);
    return EXIT_USAGE;
}

static int print_help(const struct command *c)
{
    printf("usage: sasstop %s %s\n\n%s\n", c->name, c->arguments, c->line);
    if (c->options[0]) printf("\n%s", c->options);
    return EXIT_OK;
}

/* Columns of a command and its arguments; longer ones have a line of their own. */
enum { LIST_LEFT = 32 };

static int print_list(void)
{
    puts("sasstop: top for GPU machine code\n\nusage: sasstop [command] [options]\n");
    for (unsigned i = 0; i < ncommands; i++) {
        char left[120];
        int n = snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].arguments);
        if (n > LIST_LEFT) printf("  %s\n", left);
        printf("  %-*s %s\n", LIST_LEFT, n > LIST_LEFT ? "" : left, commands[i].line);
    }
    puts("\n`sasstop COMMAND --help` lists options. Exit status: 0 ok, 1 failed, 2 usage, 3 "
         "unavailable here.");
    return EXIT_OK;
}

static int print_keys(void)
{
    struct buf b = {0};
    keys_markdown(&b);
    fwrite(b.data, 1, b.len, stdout);
    buf_free(&b);
    return EXIT_OK;
}

int cmd_help(int argc, char **argv)
{
    if (argc < 2) return print_list();
    if (!strcmp(argv[1], "keys")) return print_keys();
    const struct command *c = command_find(argv[1]);
    if (c) return print_help(c);
    fprintf(stderr, "sasstop: no command is called '%s'; `sasstop help` lists them\n", argv[1]);
    return EXIT_USAGE;
}

int cmd_version(int argc, char **argv)
{
    if (argc > 1) {
        optind = 2;
        return command_usage("version", argv);
    }
    printf("sasstop %s (%s)\n", version_string(), version_commit());
    return EXIT_OK;
}

/* The engine knows the driver and CUPTI; this program never opens either. */
int cmd_doctor(int argc, char **argv)
{
    char program[512];
    bool json = argc == 2 && !strcmp(argv[1], "--json");

    if (argc > 1 && !json) {
        optind = 2;
        return command_usage("doctor", argv);
    }
    enum status st = engine_program(program, sizeof program);
    if (st != OK) return command_fail(st);
    execl(program, program, "--doctor", json ? "--json" : NULL, NULL);
    return command_fail(err_set(ERR_FAILED, "can't run %s: %s", program, strerror(errno)));
}

const struct command commands[] = {
#define COMMAND(name, run, arguments, line, options) {name, run, arguments, line, options},
#include "tui/commands.def"
#undef COMMAND
};
const unsigned ncommands = sizeof commands / sizeof *commands;
