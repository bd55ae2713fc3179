/*
 * `sasstop sass FILE...`: kernels, censuses and listings of machine code, as text, JSON or CSV.
 * Needs no GPU and no terminal. argv[0] is "sass". Returns the exit status.
 */
#ifndef TUI_CMD_SASS_H
#define TUI_CMD_SASS_H

int cmd_sass(int argc, char **argv);

#endif
