/*
 * `sasstop sass FILE [KERNEL-REGEX]`: kernels, censuses and listings of a cubin, as text or JSON.
 * Needs no GPU and no terminal. argv[0] is "sass". Returns the exit status.
 */
#ifndef TUI_CMD_SASS_H
#define TUI_CMD_SASS_H

int cmd_sass(int argc, char **argv);

#endif
