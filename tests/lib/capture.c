/* See capture.h. */
#include "tests/lib/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

int capture_command(int (*cmd)(int, char **), int argc, char **argv, char *out, size_t size)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    fflush(NULL);
    int old_out = dup(1), old_err = dup(2);
    dup2(fileno(f), 1);
    dup2(fileno(f), 2);
    int status = cmd(argc, argv);
    fflush(NULL);
    dup2(old_out, 1);
    dup2(old_err, 2);
    close(old_out);
    close(old_err);
    rewind(f);
    out[fread(out, 1, size - 1, f)] = 0;
    fclose(f);
    return status;
}
