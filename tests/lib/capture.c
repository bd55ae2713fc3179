/* See capture.h. */
#include "tests/lib/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void slurp(FILE *f, char *out, size_t size)
{
    rewind(f);
    out[fread(out, 1, size - 1, f)] = 0;
    fclose(f);
}

int capture_streams(int (*cmd)(int, char **), int argc, char **argv, char *out, size_t size,
                    char *err, size_t err_size)
{
    FILE *f = tmpfile(), *g = err ? tmpfile() : f;
    assert_non_null(f);
    assert_non_null(g);
    fflush(NULL);
    int old_out = dup(1), old_err = dup(2);
    dup2(fileno(f), 1);
    dup2(fileno(g), 2);
    int status = cmd(argc, argv);
    fflush(NULL);
    dup2(old_out, 1);
    dup2(old_err, 2);
    close(old_out);
    close(old_err);
    slurp(f, out, size);
    if (err) slurp(g, err, err_size);
    return status;
}

int capture_command(int (*cmd)(int, char **), int argc, char **argv, char *out, size_t size)
{
    return capture_streams(cmd, argc, argv, out, size, NULL, 0);
}
