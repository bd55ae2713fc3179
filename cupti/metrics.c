/*
 * The metric table. Invariant: ids and keys are unique (held by tests/unit/test_cupti_metrics.c).
 * To add a metric: one row in metrics.def; nothing here changes.
 */
#include "cupti/metrics.h"

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
