/*
 * The ledger: one line of JSON for each state of an experiment, appended to a file beside the
 * project and never changed. An experiment has an "open" line when its bar was frozen and a
 * "closed" one with its verdict; a ledger read back holds one entry an experiment, the last state
 * of each, in the order in which they were opened. An entry that stays open was killed: its
 * recording holds the pairs that were finished.
 *
 * The caller owns a ledger; ledger_free() releases it. Writing and reading use the given file
 * alone.
 */
#ifndef SESSION_LAB_LEDGER_H
#define SESSION_LAB_LEDGER_H

#include "session/model.h"

#define LEDGER_FILE ".sasstop-ledger.jsonl"

enum { LEDGER_MAX = 10000, LEDGER_LINE_MAX = 64 << 10 };

struct ledger_entry {
    char session[40], state[8]; /* open, closed */
    char time[24], device[64], driver[32], toolkit[32], commit[48], command[400];
    struct msg_experiment def;
    struct msg_verdict verdict; /* "" while open */
    char gates[400];            /* "parity A ok, claim A unmet, ..." */
    char recording[300];
};

struct ledger {
    struct ledger_entry *entries;
    uint32_t n;
    uint32_t damaged; /* lines that are no entry: left out, and said */
};

/* One line, newline included, by a single write to a file opened for appending, so that two
 * programs can't mix theirs. */
enum status ledger_append(const char *path, const char *recording, const struct msg_hello *hello,
                          const struct lab_experiment *x);
/* A missing file is an empty ledger. ERR_IO, ERR_NOMEM, ERR_LIMIT. */
enum status ledger_read(const char *path, struct ledger *out);
void ledger_free(struct ledger *l);

/* Appends the closing line of an entry that was left open. */
enum status ledger_close_entry(const char *path, const struct ledger_entry *e, const char *why);

/* The experiment as JSON text, samples included when `samples`; the caller frees it with
 * cJSON_free(). NULL without memory. */
char *ledger_json(const char *recording, const struct msg_hello *hello,
                  const struct lab_experiment *x, bool samples, bool pretty);

/* A retry condition: "A changes", "B changes", "toolkit changes", or a rule about A's machine code
 * ("LDS.32 > 16 in hot"), several separated by ';'. Writes the i-th, trimmed; false past the end.
 */
bool ledger_retry(const char *retry, unsigned i, char *out, size_t size);

#endif
