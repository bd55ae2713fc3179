/* sasstop: finds the command of the first word and runs it. No word, or an option: a live session.
 */
#include "tui/commands.h"

#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return 1;
    return 0;
}

int main(int argc, char **argv)
{
    char run[] = "run";
    char *word = argc > 1 ? argv[1] : run;

    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN);
    opterr = 0;
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) return cmd_help(1, argv);
    if (!strcmp(word, "--version")) return cmd_version(1, argv);
    if (word[0] == '-' || argc == 1) {
        argv[0] = run;
        return cmd_run(argc, argv);
    }
    const struct command *c = command_find(word);
    if (!c) {
        fprintf(stderr, "sasstop: no command is called '%s'; `sasstop help` lists them\n", word);
        return EXIT_USAGE;
    }
    if (c->run != cmd_help && asks_help(argc - 1, argv + 1)) {
        char help[] = "help";
        char *words[] = {help, word, NULL};
        return cmd_help(2, words);
    }
    return c->run(argc - 1, argv + 1);
}
