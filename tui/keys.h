/*
 * Keys and requests: a key is what the terminal sends, a request is what the user wants. Both come
 * from keys.def. Pure functions and static tables; any thread.
 */
#ifndef TUI_KEYS_H
#define TUI_KEYS_H

#include "base/buf.h"

/* Keys beyond Unicode. */
enum {
    KEY_NONE = 0,
    KEY_TAB = 9,
    KEY_RETURN = 10,
    KEY_ESCAPE = 27,
    KEY_RUBOUT = 127,
    KEY_ARROW_UP = 0x110000,
    KEY_ARROW_DOWN,
    KEY_ARROW_LEFT,
    KEY_ARROW_RIGHT,
    KEY_PG_UP,
    KEY_PG_DN,
    KEY_GO_HOME,
    KEY_GO_END,
    KEY_BACK_TAB,
    KEY_F_1,
    KEY_F_12 = KEY_F_1 + 11,
};

enum request {
    REQ_NONE,
#define KEY(req, keys, label, group, help) REQ_##req,
#include "tui/keys.def"
#undef KEY
    REQUESTS
};

enum key_group {
    KEYS_FLIP,
    KEYS_SESSION,
    KEYS_MOVE,
    KEYS_TABLE,
    KEYS_CODE,
    KEYS_REPLAY,
    KEYS_SCREEN,
    KEY_GROUPS
};

struct key_row {
    enum request request;
    const char *keys;  /* "h F1 ?" */
    const char *label; /* footer; "" = none */
    enum key_group group;
    const char *help;
};

extern const struct key_row key_rows[];
extern const unsigned nkey_rows;
const char *key_group_title(enum key_group g);

/* The key of a name ("v", "Space", "F5", "C-l", "PgDn"); KEY_NONE when there is none. */
int key_parse(const char *name);
enum request key_request(int key);

/* docs/KEYS.md, whole. */
void keys_markdown(struct buf *out);

#endif
