/*
 * The terminal through ncursesw; see screen.h. Curses is used as a cell painter only: the canvas is
 * copied cell by cell and curses sends what changed. Colours: 256 where there are, else 16 (8),
 * none with NO_COLOR; attributes alone carry the meaning then.
 */
#include "tui/keys.h"
#include "tui/screen.h"

/* Curses has key names of its own that mean other things than ours. */
#undef KEY_NONE
enum { NO_KEY = 0 };

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_WIDECHAR 1
#include <ncursesw/curses.h>

static SCREEN *screen;
static bool colours;

static void pick_colours(void)
{
    /* 256-colour values chosen to read on dark and on light; the 16-colour ones are the nearest. */
    static const struct {
        short c256, c16;
    } palette[ROLES] = {
        [ROLE_TEXT] = {-1, -1},          [ROLE_DIM] = {244, COLOR_BLUE},
        [ROLE_HEAD] = {74, COLOR_CYAN},  [ROLE_ACCENT] = {80, COLOR_CYAN},
        [ROLE_GOOD] = {71, COLOR_GREEN}, [ROLE_WARN] = {178, COLOR_YELLOW},
        [ROLE_BAD] = {167, COLOR_RED},   [ROLE_BAR] = {67, COLOR_BLUE},
    };
    const char *no = getenv("NO_COLOR");

    colours = has_colors() && !(no && *no) && start_color() == 0;
    if (!colours) return;
    use_default_colors();
    for (short r = 0; r < ROLES; r++)
        init_pair((short)(r + 1), COLORS >= 256 ? palette[r].c256 : palette[r].c16, -1);
}

enum status screen_open(void)
{
    if (!isatty(0) || !isatty(1))
        return err_set(ERR_UNAVAILABLE, "no terminal here; use --headless, or `sasstop report`");
    set_escdelay(25);
    screen = newterm(NULL, stdout, stdin);
    if (!screen) {
        const char *term = getenv("TERM");
        return err_set(ERR_UNAVAILABLE, "terminal type '%s' is unknown; try TERM=xterm-256color",
                       term ? term : "");
    }
    set_term(screen);
    const char *place = tigetstr("cup");
    if (!place || place == (const char *)-1) {
        screen_close();
        return err_set(ERR_UNAVAILABLE,
                       "terminal type '%s' can't place its cursor; try TERM=xterm-256color, or "
                       "`sasstop run --headless`",
                       getenv("TERM"));
    }
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    pick_colours();
    return OK;
}

void screen_close(void)
{
    if (!screen) return;
    endwin();
    delscreen(screen);
    screen = NULL;
}

void screen_size(int *w, int *h)
{
    struct winsize ws;
    if (ioctl(1, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 && ws.ws_row > 0) {
        if (screen && (ws.ws_col != COLS || ws.ws_row != LINES)) resizeterm(ws.ws_row, ws.ws_col);
        *w = ws.ws_col;
        *h = ws.ws_row;
    } else {
        *w = 80;
        *h = 24;
    }
}

static attr_t attributes(unsigned style)
{
    attr_t a = A_NORMAL;
    unsigned role = style & STYLE_ROLE;

    if (style & STYLE_BOLD) a |= A_BOLD;
    if (style & STYLE_REVERSE) a |= A_REVERSE;
    if (style & STYLE_UNDER) a |= A_UNDERLINE;
    if (!colours && role == ROLE_DIM) a |= A_DIM;
    if (!colours && (role == ROLE_BAD || role == ROLE_WARN)) a |= A_BOLD;
    return a;
}

void screen_show(const struct canvas *c, bool all)
{
    if (!screen) return;
    if (all) clearok(curscr, TRUE);
    erase();
    for (int y = 0; y < c->h && y < LINES; y++)
        for (int x = 0; x < c->w && x < COLS; x++) {
            const struct glyph *g = &c->cells[y * c->w + x];
            if (g->rune == 0 || (g->rune == ' ' && g->style == 0)) continue;
            wchar_t text[2] = {(wchar_t)g->rune, 0};
            cchar_t cell;
            short pair = colours ? (short)((g->style & STYLE_ROLE) + 1) : 0;
            setcchar(&cell, text, attributes(g->style), pair, NULL);
            mvadd_wch(y, x, &cell);
        }
    refresh();
}

int screen_key(void)
{
    static const struct {
        wint_t curses;
        int key;
    } map[] = {
        {KEY_UP, KEY_ARROW_UP},       {KEY_DOWN, KEY_ARROW_DOWN},  {KEY_LEFT, KEY_ARROW_LEFT},
        {KEY_RIGHT, KEY_ARROW_RIGHT}, {KEY_PPAGE, KEY_PG_UP},      {KEY_NPAGE, KEY_PG_DN},
        {KEY_HOME, KEY_GO_HOME},      {KEY_END, KEY_GO_END},       {KEY_BTAB, KEY_BACK_TAB},
        {KEY_ENTER, KEY_RETURN},      {KEY_BACKSPACE, KEY_RUBOUT},
    };
    wint_t k;

    if (!screen) return NO_KEY;
    int kind = get_wch(&k);
    if (kind == ERR) return NO_KEY;
    if (kind != KEY_CODE_YES) return k == '\r' ? KEY_RETURN : k == 8 ? KEY_RUBOUT : (int)k;
    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        if (map[i].curses == k) return map[i].key;
    if (k >= KEY_F(1) && k <= KEY_F(12)) return KEY_F_1 + (int)(k - KEY_F(1));
    return NO_KEY;
}

bool screen_ascii(void)
{
    const char *term = getenv("TERM");
    static const char *const plain[] = {"linux", "dumb", "vt100", "vt220"};

    if (strcmp(nl_langinfo(CODESET), "UTF-8")) return true;
    for (size_t i = 0; term && i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(term, plain[i])) return true;
    return false;
}
