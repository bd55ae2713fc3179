/* The grid of cells; see canvas.h. Invariant: cells[] always holds w x h runes that are printable
 * or 0 (right half of a wide one), and a wide rune never stands in the last column. */
#include "tui/canvas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELLIPSIS = 0x2026, REPLACEMENT = 0xfffd };

static int clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

enum status canvas_resize(struct canvas *c, int w, int h)
{
    w = clamp(w, 1, CANVAS_MAX_W);
    h = clamp(h, 1, CANVAS_MAX_H);
    struct glyph *cells = realloc(c->cells, sizeof *cells * (size_t)w * (size_t)h);
    if (!cells) return err_set(ERR_NOMEM, "no memory for a screen of %d x %d", w, h);
    c->cells = cells;
    c->w = w;
    c->h = h;
    canvas_clear(c);
    return OK;
}

void canvas_free(struct canvas *c)
{
    free(c->cells);
    *c = (struct canvas){.ascii = c->ascii};
}

void canvas_clear(struct canvas *c)
{
    for (int i = 0; i < c->w * c->h; i++) c->cells[i] = (struct glyph){' ', ROLE_TEXT};
}

/* Takes one rune off *p; broken bytes give U+FFFD and one byte. */
static uint32_t next_rune(const char **p)
{
    const unsigned char *s = (const unsigned char *)*p;
    unsigned n = s[0] < 0x80 ? 0 : (s[0] & 0xe0) == 0xc0 ? 1 : (s[0] & 0xf0) == 0xe0 ? 2 : 3;
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

    *p += 1;
    if (n == 0) return s[0];
    if (n == 3 && (s[0] & 0xf8) != 0xf0) return REPLACEMENT;
    uint32_t r = s[0] & (0x3fu >> n);
    for (unsigned i = 1; i <= n; i++) {
        if ((s[i] & 0xc0) != 0x80) return REPLACEMENT;
        r = r << 6 | (s[i] & 0x3f);
    }
    if (r < least[n] || r > 0x10ffff || (r >= 0xd800 && r < 0xe000)) return REPLACEMENT;
    *p += n;
    return r;
}

/* Columns of a rune: 0 for marks that combine, 2 for East Asian wide forms and emoji. */
static int rune_columns(uint32_t r)
{
    static const struct {
        uint32_t from, to;
        int w;
    } ranges[] = {
        {0x300, 0x36f, 0},     {0x200b, 0x200f, 0},   {0x202a, 0x202e, 0},   {0x2060, 0x206f, 0},
        {0xfe00, 0xfe0f, 0},   {0xfeff, 0xfeff, 0},   {0x1100, 0x115f, 2},   {0x2e80, 0x303e, 2},
        {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe30, 0xfe6f, 2},
        {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2},
        {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (r >= ranges[i].from && r <= ranges[i].to) return ranges[i].w;
    return 1;
}

/* What an ASCII terminal shows instead. */
static uint32_t ascii_rune(uint32_t r)
{
    static const struct {
        uint32_t from;
        char to;
    } map[] = {{0x2500, '-'}, {0x2502, '|'}, {0x00b1, '~'}, {0x00d7, 'x'},   {0x00b7, '.'},
               {0x2191, '^'}, {0x2193, 'v'}, {0x25b8, '>'}, {ELLIPSIS, '~'}, {0x0394, 'd'},
               {0x25cf, '*'}, {0x25b2, '^'}, {0x2192, '>'}, {0x00b5, 'u'}};
    if (r < 0x7f) return r;
    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        if (map[i].from == r) return (uint32_t)map[i].to;
    return '?';
}

static void put(struct canvas *c, int x, int y, uint32_t r, unsigned style, int columns)
{
    if (y < 0 || y >= c->h || x < 0 || x + columns > c->w) return;
    struct glyph *g = &c->cells[y * c->w + x];
    if (g->rune == 0 && x > 0) g[-1].rune = ' '; /* left half of a wide one loses its right */
    if (x + columns < c->w && g[columns].rune == 0) g[columns].rune = ' ';
    g[0] = (struct glyph){r, (uint16_t)style};
    if (columns == 2) g[1] = (struct glyph){0, (uint16_t)style};
}

static uint32_t safe_rune(const struct canvas *c, const char **p)
{
    uint32_t r = next_rune(p);
    if (r < 32 || (r >= 0x7f && r < 0xa0)) r = '?';
    return c->ascii ? ascii_rune(r) : r;
}

int text_columns(const char *text)
{
    int n = 0;
    while (*text) n += rune_columns(next_rune(&text));
    return n;
}

int canvas_text(struct canvas *c, int x, int y, int w, unsigned style, const char *text)
{
    int used = 0;

    while (*text && w > 0) {
        const char *at = text;
        uint32_t r = safe_rune(c, &text);
        int columns = c->ascii ? 1 : rune_columns(r);
        if (columns == 0) continue;
        bool last = used + columns >= w && text_columns(at) > w - used;
        if (last) {
            put(c, x + used, y, c->ascii ? '~' : ELLIPSIS, style, 1);
            return used + 1;
        }
        put(c, x + used, y, r, style, columns);
        used += columns;
    }
    return used;
}

void canvas_right(struct canvas *c, int x, int y, int w, unsigned style, const char *text)
{
    int n = text_columns(text);
    int pad = n < w ? w - n : 0;
    canvas_text(c, x + pad, y, w - pad, style, text);
}

int canvas_printf(struct canvas *c, int x, int y, int w, unsigned style, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return canvas_text(c, x, y, w, style, text);
}

/* Bytes of the next line of at most w columns, and where the line after it starts. */
static size_t take_line(const char *text, int w, const char **next)
{
    const char *p = text, *space = NULL;
    int used = 0;

    while (*p && *p != '\n') {
        const char *at = p;
        int columns = rune_columns(next_rune(&p));
        if (used + columns > w && at > text) {
            const char *cut = *at == ' ' ? at : space && space > text ? space : at;
            *next = cut + (*cut == ' ');
            return (size_t)(cut - text);
        }
        if (*at == ' ') space = at;
        used += columns;
    }
    *next = *p == '\n' ? p + 1 : p;
    return (size_t)(p - text);
}

int canvas_wrap(struct canvas *c, struct area a, unsigned style, const char *text)
{
    int row = 0;
    for (; *text && row < a.h && a.w > 0; row++) {
        const char *next;
        size_t n = take_line(text, a.w, &next);
        /* The last row takes the rest, and the ellipsis with it. */
        if (row + 1 == a.h && *next) n = strcspn(text, "\n");
        canvas_printf(c, a.x, a.y + row, a.w, style, "%.*s", (int)n, text);
        text = next;
    }
    return row;
}

void canvas_tail(struct canvas *c, struct area a, unsigned style, const char *text)
{
    int rows = 0;
    if (a.w < 1 || a.h < 1) return;
    for (const char *p = text; *p; rows++) take_line(p, a.w, &p);
    for (; rows > a.h; rows--) take_line(text, a.w, &text);
    canvas_wrap(c, a, style, text);
}

void canvas_fill(struct canvas *c, struct area a, uint32_t rune, unsigned style)
{
    if (c->ascii) rune = ascii_rune(rune);
    for (int y = a.y; y < a.y + a.h; y++)
        for (int x = a.x; x < a.x + a.w; x++) put(c, x, y, rune, style, 1);
}

void canvas_restyle(struct canvas *c, int x, int y, int w, int role, unsigned attributes)
{
    if (y < 0 || y >= c->h) return;
    for (int i = x < 0 ? 0 : x; i < x + w && i < c->w; i++) {
        uint16_t *s = &c->cells[y * c->w + i].style;
        if (role >= 0) *s = (uint16_t)((*s & ~STYLE_ROLE) | (unsigned)role);
        *s = (uint16_t)(*s | attributes);
    }
}

void canvas_rule(struct canvas *c, int x, int y, int w, const char *title)
{
    canvas_fill(c, (struct area){x, y, w, 1}, 0x2500, ROLE_DIM);
    if (!*title || w < 6) return;
    int n = canvas_printf(c, x + 2, y, w - 4, ROLE_HEAD | STYLE_BOLD, " %s ", title);
    (void)n;
}

void canvas_bar(struct canvas *c, int x, int y, int w, double share, unsigned style)
{
    if (!(share > 0)) return;
    int eighths = (int)lround((share > 1 ? 1 : share) * w * 8);
    for (int i = 0; i < w && eighths > 0; i++, eighths -= 8) {
        uint32_t block = eighths >= 8 ? 0x2588 : 0x2590 - (uint32_t)eighths;
        if (c->ascii) block = eighths >= 4 ? '#' : '.';
        put(c, x + i, y, block, style, 1);
    }
}

void canvas_column(struct canvas *c, int x, int y, int h, double share, unsigned style)
{
    if (!(share >= 0)) return;
    int eighths = (int)lround((share > 1 ? 1 : share) * h * 8);
    if (eighths < 1) eighths = 1;
    for (int i = 0; i < h && eighths > 0; i++, eighths -= 8) {
        uint32_t block = eighths >= 8 ? 0x2588 : 0x2580 + (uint32_t)eighths;
        if (c->ascii) block = eighths >= 7 ? '#' : eighths >= 5 ? '=' : eighths >= 3 ? '-' : '_';
        put(c, x, y - i, block, style, 1);
    }
}

void canvas_spark(struct canvas *c, int x, int y, int w, const float *v, unsigned n, unsigned style)
{
    static const char ascii_levels[] = "_.-:=+*#";
    float lo = INFINITY, hi = -INFINITY;

    if (w < 1) return;
    if (n > (unsigned)w) {
        v += n - (unsigned)w;
        n = (unsigned)w;
    }
    for (unsigned i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        if (v[i] < lo) lo = v[i];
        if (v[i] > hi) hi = v[i];
    }
    if (!(hi > 0)) return;
    /* A base well below the minimum keeps small differences visible and noise small. */
    float base = hi - lo < 0.5f * hi ? lo - (hi - lo) * 0.5f - 0.02f * hi : 0;
    for (unsigned i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        int level = clamp((int)((v[i] - base) / (hi - base) * 7.999f), 0, 7);
        put(c, x + (int)i, y, c->ascii ? (uint32_t)ascii_levels[level] : 0x2581 + (uint32_t)level,
            style, 1);
    }
}

static void put_utf8(struct buf *out, uint32_t r)
{
    if (r < 0x80) {
        buf_u8(out, (uint8_t)r);
    } else if (r < 0x800) {
        buf_u8(out, (uint8_t)(0xc0 | r >> 6));
        buf_u8(out, (uint8_t)(0x80 | (r & 0x3f)));
    } else if (r < 0x10000) {
        buf_u8(out, (uint8_t)(0xe0 | r >> 12));
        buf_u8(out, (uint8_t)(0x80 | (r >> 6 & 0x3f)));
        buf_u8(out, (uint8_t)(0x80 | (r & 0x3f)));
    } else {
        buf_u8(out, (uint8_t)(0xf0 | r >> 18));
        buf_u8(out, (uint8_t)(0x80 | (r >> 12 & 0x3f)));
        buf_u8(out, (uint8_t)(0x80 | (r >> 6 & 0x3f)));
        buf_u8(out, (uint8_t)(0x80 | (r & 0x3f)));
    }
}

void canvas_dump(const struct canvas *c, struct buf *out)
{
    for (int y = 0; y < c->h; y++) {
        const struct glyph *row = c->cells + y * c->w;
        int end = c->w;
        while (end > 0 && row[end - 1].rune == ' ') end--;
        for (int x = 0; x < end; x++)
            if (row[x].rune) put_utf8(out, row[x].rune);
        buf_u8(out, '\n');
    }
}

bool canvas_holds(const struct canvas *c, const char *text)
{
    struct buf b = {0};
    canvas_dump(c, &b);
    buf_u8(&b, 0);
    bool found = !b.failed && strstr((const char *)b.data, text) != NULL;
    buf_free(&b);
    return found;
}
