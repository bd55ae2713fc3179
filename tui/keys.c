/* Key names, bindings and the generated list of keys; see keys.h. To add a key: a row in keys.def.
 */
#include "tui/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const group_titles[KEY_GROUPS] = {
    [KEYS_FLIP] = "Flip variants", [KEYS_SESSION] = "Session",   [KEYS_MOVE] = "Move",
    [KEYS_TABLE] = "Tables",       [KEYS_CODE] = "Machine code", [KEYS_REPLAY] = "Replay",
    [KEYS_SCREEN] = "Screen",
};

static const struct {
    const char *name;
    int key;
} names[] = {
    {"Space", ' '},           {"Tab", KEY_TAB},          {"Enter", KEY_RETURN},
    {"Esc", KEY_ESCAPE},      {"Backspace", KEY_RUBOUT}, {"Up", KEY_ARROW_UP},
    {"Down", KEY_ARROW_DOWN}, {"Left", KEY_ARROW_LEFT},  {"Right", KEY_ARROW_RIGHT},
    {"PgUp", KEY_PG_UP},      {"PgDn", KEY_PG_DN},       {"Home", KEY_GO_HOME},
    {"End", KEY_GO_END},      {"S-Tab", KEY_BACK_TAB},
};

const char *key_group_title(enum key_group g)
{
    return group_titles[g];
}

int key_parse(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, name)) return names[i].key;
    if (name[0] == 'C' && name[1] == '-' && name[2] >= 'a' && name[2] <= 'z' && !name[3])
        return name[2] - 'a' + 1;
    if (name[0] == 'F' && name[1] >= '1' && name[1] <= '9') {
        int n = atoi(name + 1);
        return n <= 12 ? KEY_F_1 + n - 1 : KEY_NONE;
    }
    return name[0] > ' ' && name[0] < 127 && !name[1] ? name[0] : KEY_NONE;
}

static bool row_has(const struct key_row *row, int key)
{
    char list[40], *save = NULL;
    snprintf(list, sizeof list, "%s", row->keys);
    for (char *k = strtok_r(list, " ", &save); k; k = strtok_r(NULL, " ", &save))
        if (key_parse(k) == key) return true;
    return false;
}

enum request key_request(int key)
{
    if (key == '\r') key = KEY_RETURN;
    for (unsigned i = 0; key != KEY_NONE && i < nkey_rows; i++)
        if (row_has(&key_rows[i], key)) return key_rows[i].request;
    return REQ_NONE;
}

static void markdown_keys(struct buf *out, const char *keys)
{
    char list[40], *save = NULL;
    const char *between = "";
    snprintf(list, sizeof list, "%s", keys);
    for (char *k = strtok_r(list, " ", &save); k; k = strtok_r(NULL, " ", &save)) {
        buf_printf(out, "%s`%s`", between, k);
        between = ", ";
    }
}

void keys_markdown(struct buf *out)
{
    buf_printf(out, "# Keys\n\nGenerated from `tui/keys.def` by `sasstop help keys`; a test holds "
                    "the two equal.\n");
    for (int g = 0; g < KEY_GROUPS; g++) {
        buf_printf(out, "\n## %s\n\n| key | what it does |\n|---|---|\n", group_titles[g]);
        for (unsigned i = 0; i < nkey_rows; i++) {
            if ((int)key_rows[i].group != g) continue;
            buf_printf(out, "| ");
            markdown_keys(out, key_rows[i].keys);
            buf_printf(out, " | %s |\n", key_rows[i].help);
        }
    }
}

const struct key_row key_rows[] = {
#define KEY(req, keys, label, group, help) {REQ_##req, keys, label, KEYS_##group, help},
#include "tui/keys.def"
#undef KEY
};
const unsigned nkey_rows = sizeof key_rows / sizeof *key_rows;
