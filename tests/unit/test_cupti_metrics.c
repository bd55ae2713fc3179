/*
 * The metric table, and its packing by NVIDIA's own Profiler Host API for every chip it knows:
 * needs libcupti but no GPU and no driver; skipped with the reason where libcupti is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cupti/pack.h"

static struct cupti_lib *lib;

static void need_lib(void)
{
#ifdef __SANITIZE_ADDRESS__
    /* It loads libnvperf_host with RTLD_DEEPBIND, at which the sanitizer ends the process. */
    print_message("skipped: NVIDIA's library can't be loaded under AddressSanitizer\n");
    skip();
#endif
    if (lib) return;
    if (cupti_open(&lib) == OK) return;
    print_message("skipped: %s\n", err_msg());
    skip();
}

static int close_lib(void **state)
{
    (void)state;
    cupti_close(lib);
    return 0;
}

static void table_is_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < metric_count(); i++) {
        const struct metric *m = metric_at(i);
        assert_true(m->id > 0 && m->key[0] && m->label[0] && m->meaning[0] && m->sets);
        assert_ptr_equal(metric_by_id(m->id), m); /* ids and keys are unique */
        assert_ptr_equal(metric_by_key(m->key), m);
        assert_true(strlen(m->label) <= 20 && !strchr(m->key, ' '));
        assert_true(!!(m->sets & METRIC_SET_PM) == (m->pm[0] != 0));
        assert_true(!!(m->sets & ~(unsigned)METRIC_SET_PM) == (m->range[0] != 0));
    }
    assert_null(metric_at(metric_count()));
    assert_null(metric_by_id(0));
    assert_null(metric_by_key("no such key"));
    assert_null(metric_by_key(NULL));
}

static void candidates_are_cut(void **state)
{
    (void)state;
    char out[8];
    assert_int_equal(metric_candidate("a|bb|ccc", 0, out, sizeof out), 1);
    assert_string_equal(out, "a");
    assert_int_equal(metric_candidate("a|bb|ccc", 2, out, sizeof out), 3);
    assert_string_equal(out, "ccc");
    assert_int_equal(metric_candidate("a|bb|ccc", 3, out, sizeof out), 0);
    assert_int_equal(metric_candidate("", 0, out, sizeof out), 0);
    assert_int_equal(metric_candidate("12345678", 0, out, sizeof out), 0); /* does not fit */
}

static bool has(const struct pack_set *s, uint16_t id, const char *prefix)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->ids[i] == id) return strncmp(s->names[i], prefix, strlen(prefix)) == 0;
    return false;
}

/* The chips of the design: SM% in one pass by their triage metric, or not at all. */
static void live_set_is_one_pass(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *sm; /* prefix of the SM% name, NULL = none on this chip */
        size_t least;
    } chips[] = {
        {"GH100", "TriageCompute.sm__throughput", 11},
        {"GB100", "TriageCompute.sm__throughput", 9},
        {"AD102", "TriageSCG.sm__throughput", 6},
        {"GA102", "TriageSCG.sm__throughput", 6},
        {"GB10B", "TriageTop.sm__throughput", 5},
        {"TU102", "SM.TriageA.sm__throughput", 4},
        {"GA100", NULL, 4},
        {"GB202", NULL, 4},
        {"GB20B", NULL, 4},
        {"GB110", NULL, 8},
    };
    need_lib();
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
        struct pack_set s;
        assert_int_equal(pack_pm_set(lib, chips[i].chip, NULL, &s), OK);
        assert_int_equal(s.passes, 1);
        assert_true(s.n >= chips[i].least);
        assert_true(s.config_size > 0 && s.host);
        assert_int_equal(has(&s, METRIC_SM, chips[i].sm ? chips[i].sm : "?"), chips[i].sm != NULL);
        assert_true(has(&s, METRIC_SM_ACTIVE, ""));
        pack_free(lib, &s);
    }
}

static void exact_live_set_is_one_pass(void **state)
{
    (void)state;
    need_lib();
    size_t n = 0, known = 0;
    const char *const *chips = pack_chips(lib, &n);
    assert_true(n >= 25);
    for (size_t i = 0; i < n; i++) {
        struct pack_set s;
        if (pack_range_set(lib, chips[i], METRIC_SET_LIVE, &s) != OK) {
            assert_non_null(strstr(err_msg(), chips[i])); /* refused in words: GV11B */
            continue;
        }
        known++;
        bool old = strncmp(chips[i], "TU", 2) == 0 || strncmp(chips[i], "GV", 2) == 0;
        assert_int_equal(s.passes, old ? 2 : 1);
        assert_true(has(&s, METRIC_INST, "smsp__inst_executed.sum"));
        assert_true(s.n + s.refused == 16 && s.n >= 14);
        pack_free(lib, &s);
    }
    assert_true(known >= n - 1);
}

static void other_sets_pack(void **state)
{
    (void)state;
    need_lib();
    struct pack_set s;
    unsigned sets[] = {METRIC_SET_SOL, METRIC_SET_PIPES, METRIC_SET_MEMORY, METRIC_SET_STALLS,
                       METRIC_SET_ALL};
    size_t most[] = {9, 3, 2, 7, 20};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(pack_range_set(lib, "GH100", sets[i], &s), OK);
        assert_int_equal(s.refused, 0);
        assert_true(s.passes >= 1 && s.passes <= most[i]);
        pack_free(lib, &s);
    }
}

/* What a chip knows of all sets is one group; what it doesn't is refused by its key. On one chip of
 * each family also set by set: together they take no more passes than apart. */
static void every_set_packs_on_every_chip(void **state)
{
    (void)state;
    need_lib();
    size_t n = 0;
    const char *const *chips = pack_chips(lib, &n);
    for (size_t i = 0; i < n; i++) {
        static const char families[] =
            "GV100 TU102 GA100 GA102 AD102 GH100 GB100 GB110 GB202 GB10B";
        size_t apart = 0, together = 0;
        bool parts = strstr(families, chips[i]) != NULL;
        for (unsigned k = parts ? 0 : METRIC_SETS - 1; k < METRIC_SETS; k++) {
            struct pack_set s;
            unsigned set = metric_sets_parse(metric_set_name(k));
            if (pack_range_set(lib, chips[i], set, &s) != OK) {
                assert_string_equal(chips[i], "GV11B"); /* this CUPTI lists it but refuses it */
                continue;
            }
            assert_true(s.n > 0 && s.n < PACK_MAX && s.passes >= 1 && s.passes <= 24);
            assert_int_equal(!!s.refused, s.refused_keys[0] != '\0');
            *(set == METRIC_SET_ALL ? &together : &apart) += s.passes;
            if (getenv("VERBOSE"))
                print_message("%-6s %-7s %2zu metrics %2zu passes; not here: %s\n", chips[i],
                              metric_set_name(k), s.n, s.passes, s.refused_keys);
            pack_free(lib, &s);
        }
        if (parts) assert_true(together <= apart);
    }
}

static void sets_have_names(void **state)
{
    (void)state;
    char text[METRIC_SETS_TEXT];
    assert_int_equal(metric_sets_parse("live"), METRIC_SET_LIVE);
    assert_int_equal(metric_sets_parse("live,sol"), METRIC_SET_LIVE | METRIC_SET_SOL);
    assert_int_equal(metric_sets_parse("all"), METRIC_SET_ALL);
    assert_int_equal(metric_sets_parse("live,sol,stalls,pipes,memory"), METRIC_SET_ALL);
    static const char *const wrong[] = {"", "liv", "live,", ",live", "live sol", "lives", "LIVE"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(metric_sets_parse(wrong[i]), 0);
    assert_int_equal(metric_sets_parse(NULL), 0);
    for (unsigned sets = 0; sets < 64; sets++) {
        metric_sets_text(sets, text);
        assert_int_equal(metric_sets_parse(text), sets & METRIC_SET_ALL);
    }
    assert_null(metric_set_name(METRIC_SETS));
}

static void bad_names_poison_nothing(void **state)
{
    (void)state;
    need_lib();
    assert_false(pack_knows(lib, "GH100", CUPTI_TYPE_RANGE, "sm__no_such_thing.sum"));
    assert_false(pack_knows(lib, "GH100", CUPTI_TYPE_RANGE, ""));
    assert_true(pack_knows(lib, "GH100", CUPTI_TYPE_RANGE, "smsp__inst_executed.sum"));
    struct pack_set s;
    /* DRAM names are unknown on GB10B: the rest is there all the same. */
    assert_int_equal(pack_range_set(lib, "GB10B", METRIC_SET_LIVE, &s), OK);
    assert_int_equal(s.n, 14);
    assert_non_null(strstr(s.refused_keys, "dram_pct"));
    pack_free(lib, &s);
    assert_int_equal(pack_range_set(lib, "NOCHIP", METRIC_SET_LIVE, &s), ERR_UNAVAILABLE);
    assert_non_null(strstr(err_msg(), "newer than this CUPTI"));
    assert_int_equal(pack_pm_set(lib, "GV100", NULL, &s), ERR_UNAVAILABLE);
    assert_int_equal(pack_pm_set(lib, "GH100", "inst", &s), ERR_USAGE); /* exact only */
    assert_int_equal(pack_pm_set(lib, "GH100", "sm_pct,tensor_pct", &s), OK);
    assert_int_equal(s.n, 2);
    pack_free(lib, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_sound),       cmocka_unit_test(candidates_are_cut),
        cmocka_unit_test(live_set_is_one_pass), cmocka_unit_test(exact_live_set_is_one_pass),
        cmocka_unit_test(other_sets_pack),      cmocka_unit_test(every_set_packs_on_every_chip),
        cmocka_unit_test(sets_have_names),      cmocka_unit_test(bad_names_poison_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, close_lib);
}
