/* One message per thread; see status.h. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { ERR_MSG_MAX = 1024 };

static __thread char message[ERR_MSG_MAX];

enum status err_set(enum status st, const char *fmt, ...)
{
    /* Formatted aside first: an argument may be err_msg() itself. */
    char text[ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    memcpy(message, text, sizeof text);
    return st;
}

enum status err_prefix(enum status st, const char *fmt, ...)
{
    char head[ERR_MSG_MAX], text[2 * ERR_MSG_MAX + 4];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    snprintf(text, sizeof text, "%s: %s", head, message);
    text[ERR_MSG_MAX - 1] = '\0';
    memcpy(message, text, ERR_MSG_MAX);
    return st;
}

const char *err_msg(void)
{
    return message;
}

int err_exit_code(enum status st)
{
    switch (st) {
    case OK:
        return EXIT_OK;
    case ERR_USAGE:
        return EXIT_USAGE;
    case ERR_UNAVAILABLE:
        return EXIT_UNAVAILABLE;
    default:
        return EXIT_FAILED;
    }
}
