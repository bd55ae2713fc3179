/*
 * The metric table. Invariant: ids and keys are unique (held by tests/unit/test_cupti_metrics.c).
 * To add a metric: one row in metrics.def; nothing here changes.
 */
#include "cupti/metrics.h"

#include <stdio.h>
#include <string.h>

static const struct metric table[] = {
#define METRIC(num, ID, key, label, unit, sets, range, pm, meaning)                                \
    {num, key, label, unit, sets, range, pm, meaning},
#include "cupti/metrics.def"
#undef METRIC
};

size_t metric_count(void)
{
    return sizeof table / sizeof table[0];
}

const struct metric *metric_at(size_t i)
{
    return i < metric_count() ? &table[i] : NULL;
}

const struct metric *metric_by_id(unsigned id)
{
    for (size_t i = 0; i < metric_count(); i++)
        if (table[i].id == id) return &table[i];
    return NULL;
}

const struct metric *metric_by_key(const char *k)
{
    for (size_t i = 0; k && i < metric_count(); i++)
        if (strcmp(table[i].key, k) == 0) return &table[i];
    return NULL;
}

static const struct {
    const char *name;
    unsigned set;
} sets_table[METRIC_SETS] = {
    {"live", METRIC_SET_LIVE},   {"sol", METRIC_SET_SOL},       {"stalls", METRIC_SET_STALLS},
    {"pipes", METRIC_SET_PIPES}, {"memory", METRIC_SET_MEMORY}, {"all", METRIC_SET_ALL},
};

const char *metric_set_name(unsigned i)
{
    return i < METRIC_SETS ? sets_table[i].name : NULL;
}

unsigned metric_sets_parse(const char *list)
{
    unsigned sets = 0;
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        size_t n = strcspn(p, ","), i = 0;
        while (i < METRIC_SETS &&
               (strlen(sets_table[i].name) != n || strncmp(p, sets_table[i].name, n)))
            i++;
        if (i == METRIC_SETS) return 0;
        sets |= sets_table[i].set;
    }
    return sets;
}

void metric_sets_text(unsigned sets, char *out)
{
    size_t at = 0;
    out[0] = '\0';
    if ((sets & METRIC_SET_ALL) == METRIC_SET_ALL) {
        snprintf(out, METRIC_SETS_TEXT, "all");
        return;
    }
    for (unsigned i = 0; i + 1 < METRIC_SETS && at < METRIC_SETS_TEXT; i++)
        if (sets & sets_table[i].set)
            at += (size_t)snprintf(out + at, METRIC_SETS_TEXT - at, "%s%s", at ? "," : "",
                                   sets_table[i].name);
}

size_t metric_candidate(const char *list, unsigned i, char *out, size_t size)
{
    while (i > 0 && *list) {
        const char *bar = strchr(list, '|');
        if (!bar) return 0;
        list = bar + 1;
        i--;
    }
    size_t len = strcspn(list, "|");
    if (i > 0 || len == 0 || len + 1 > size) return 0;
    memcpy(out, list, len);
    out[len] = '\0';
    return len;
}
