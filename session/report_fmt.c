/* See report_fmt.h. Nothing here may depend on the locale or on the time zone. */
#include "session/report_fmt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void fmt_number(double v, bool whole, char *buf, size_t size)
{
    if (whole && v == floor(v) && fabs(v) < 9007199254740992.0)
        snprintf(buf, size, "%.0f", v);
    else
        snprintf(buf, size, "%.6g", v);
    for (char *p = buf; *p; p++)
        if (*p == ',') *p = '.';
}

void fmt_time(uint64_t wall_ns, char *buf, size_t size)
{
    time_t t = (time_t)(wall_ns / 1000000000);
    struct tm tm;

    if (size) buf[0] = '\0';
    if (wall_ns && gmtime_r(&t, &tm)) strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Length of the UTF-8 sequence that begins at p; 0 when none does. */
static int utf8_length(const unsigned char *p)
{
    int n = *p < 0x80                 ? 1
            : *p >= 0xc2 && *p < 0xe0 ? 2
            : *p >= 0xe0 && *p < 0xf0 ? 3
            : *p >= 0xf0 && *p < 0xf5 ? 4
                                      : 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0; /* also at the end of the text */
    return n;
}

void fmt_utf8(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p;) {
        int n = utf8_length(p);
        if (n == 0) *p = '?';
        p += n ? n : 1;
    }
}

void fmt_cell(const struct table *t, uint32_t row, uint32_t column, char *buf, size_t size)
{
    struct cell c;
    table_cell(t, row, column, &c);
    if (c.is_text || value_known(&c.value)) {
        cell_format(&t->def->columns[column], &c, CELL_TEXT_MAX, buf, size);
        if (!c.is_text)
            for (char *p = buf; *p; p++)
                if (*p == ',') *p = '.';
    } else {
        snprintf(buf, size, "%s",
                 c.value.state == VALUE_UNAVAILABLE ? "-" : value_state_name(c.value.state));
    }
}

int fmt_width(const struct table *t, uint32_t column, int max)
{
    char text[CELL_TEXT_MAX];
    int width = (int)strlen(t->def->columns[column].title);

    for (uint32_t i = 0; i < t->nrows; i++) {
        fmt_cell(t, i, column, text, sizeof text);
        int n = (int)strlen(text);
        if (n > width) width = n;
    }
    return width < max ? width : max;
}

bool fmt_column_used(const struct table *t, uint32_t column)
{
    struct cell c;
    for (uint32_t i = 0; i < t->nrows; i++) {
        table_cell(t, i, column, &c);
        if (c.is_text ? c.text[0] != '\0' : c.value.state != VALUE_UNAVAILABLE) return true;
    }
    return false;
}
