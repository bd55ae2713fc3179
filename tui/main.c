/* sasstop: finds the command of the first word and runs it. No word, or an option: a live session.
 */
#include "tui/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return 1;
    return 0;
}

/* A file opened later must not become a standard stream that was closed when we were started: what
 * is printed would land in it. Writing to these fails. */
static void fill_standard_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) _exit(1);
}

static int dispatch(int argc, char **argv)
{
    char run[] = "run";
    char *word = argc > 1 ? argv[1] : run;

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

/* Output that got lost is a failure, also when it was lost at the very end. A reader that left
 * (head) has what it wanted. */
static int flush_output(int code)
{
    bool lost = ferror(stdout);
    errno = 0;
    if (fflush(stdout)) lost = true;
    if (!lost || errno == EPIPE || code != EXIT_OK) return code;
    fprintf(stderr, "sasstop: stdout is closed or full: what it should say is not whole\n");
    return EXIT_FAILED;
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file as long as is allowed is told as an error of its write */
    opterr = 0;
    return flush_output(dispatch(argc, argv));
}
