/* See quote.h. */
#include "base/quote.h"

void quote_csv(struct buf *out, const char *text)
{
    buf_u8(out, '"');
    for (; *text; text++) {
        if (*text == '"') buf_u8(out, '"');
        buf_u8(out, (uint8_t)*text);
    }
    buf_u8(out, '"');
}

void quote_csv_print(FILE *out, const char *text)
{
    struct buf b = {0};
    quote_csv(&b, text);
    fwrite(b.data, 1, b.len, out);
    buf_free(&b);
}
