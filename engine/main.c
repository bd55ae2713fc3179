/* The engine's program: options in, exit status out. */
#include "engine/engine.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    struct options opt;
    commands_block_signals(); /* before any thread is made */
    enum status st = options_parse(argc, argv, &opt);
    if (st != OK) {
        fprintf(stderr, "sasstop-engine: %s\n", err_msg());
        return err_exit_code(st);
    }
    if (opt.help) {
        fputs(options_usage(), stdout);
        return EXIT_OK;
    }
    return engine_run(&opt);
}
