/*
 * `sasstop diff A[@ARCH][:KERNEL] B[@ARCH][:KERNEL]`: two kernels' machine code side by side, as
 * text or JSON. Needs no GPU and no terminal. argv[0] is "diff". Returns the exit status.
 */
#ifndef TUI_CMD_DIFF_H
#define TUI_CMD_DIFF_H

int cmd_diff(int argc, char **argv);

#endif
