/* The engine's command line: what it takes, and what it refuses by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/options.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 20 };

static enum status parse(struct options *o, const char *const *words)
{
    char *argv[MAX_WORDS + 2] = {"sasstop-engine"};
    int argc = 1;
    for (; *words && argc < MAX_WORDS; words++) argv[argc++] = (char *)(uintptr_t)*words;
    return options_parse(argc, argv, o);
}
#define PARSE(o, ...) parse(o, (const char *const[]){__VA_ARGS__, NULL})

static void defaults(void **state)
{
    struct options o;
    (void)state;
    assert_int_equal(PARSE(&o, "--fd", "3"), OK);
    assert_int_equal(o.fd, 3);
    assert_string_equal(o.model, "synth:tiny");
    assert_string_equal(o.backend, "auto");
    assert_true(o.graphs && o.parity && !o.doctor);
    assert_int_equal(o.timed, 3);
    assert_int_equal(o.counted, 1);
    assert_int_equal(o.rounds, 0);
    assert_int_equal(o.instance, 1);
    assert_null(o.prompt);
    assert_null(o.sources);
}

static void values(void **state)
{
    struct options o;
    (void)state;
    assert_int_equal(PARSE(&o, "--fd", "3", "--bench", "pp512,tg64", "--schedule", "5:2",
                           "--epoch-ns", "12345678901234", "--no-graphs", "--no-parity",
                           "--variant", "wide", "--kd", "8"),
                     OK);
    assert_int_equal(o.prefill, 512);
    assert_int_equal(o.decode, 64);
    assert_int_equal(o.timed, 5);
    assert_int_equal(o.counted, 2);
    assert_true(o.epoch_ns == 12345678901234u);
    assert_true(!o.graphs && !o.parity);
    assert_string_equal(o.variant, "wide");
    assert_int_equal(PARSE(&o, "--doctor", "--json"), OK);
    assert_true(o.doctor && o.json);
}

static void benches(void **state)
{
    static const char *const bad[] = {"",        "pp",     "pp0",     "pp5,",
                                      "pp5 tg6", "tg",     "tg6,pp5", "pp5,tg-1",
                                      "pp5tg6x", "512,64", "pp5,,t",  "pp99999999999999999999,tg1"};
    uint32_t pp, tg;
    (void)state;
    assert_int_equal(options_bench("pp7", &pp, &tg), OK);
    assert_int_equal(pp, 7);
    assert_int_equal(tg, 0);
    assert_int_equal(options_bench("tg9", &pp, &tg), OK);
    assert_int_equal(pp, 0);
    assert_int_equal(tg, 9);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(options_bench(bad[i], &pp, &tg), ERR_USAGE);
}

static void refusals_name_the_option(void **state)
{
    static const struct {
        const char *option, *value, *named;
    } bad[] = {{"--fd", "-1", "--fd"},
               {"--fd", "3x", "--fd"},
               {"--tokens", "0", "--tokens"},
               {"--rounds", "99999999999", "--rounds"},
               {"--exact", "sols", "--exact"},
               {"--exact", "", "--exact"},
               {"--executed", "", "--executed"},
               {"--executed", "a b c d", "--executed"},
               {"--variants", "", "--variants"},
               {"--schedule", "0:0", "--schedule"},
               {"--schedule", "3", "--schedule"},
               {"--threads", "100000", "--threads"},
               {"--backend", "metal", "--backend"},
               {"--instance", "0", "--instance"},
               {"--kd", "", "--kd"},
               {"--nothing", "1", "--help"}};
    struct options o;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(PARSE(&o, "--fd", "3", bad[i].option, bad[i].value), ERR_USAGE);
        assert_non_null(strstr(err_msg(), bad[i].named));
    }
    assert_int_equal(PARSE(&o, "--fd", "3", "--executed", "nb_kd8 attn_q prefill"), OK);
    assert_int_equal(PARSE(&o, "--fd", "3", "--executed", "all ffn_up"), OK);
    assert_int_equal(PARSE(&o, "--rounds", "1"), ERR_USAGE); /* no fd */
    assert_int_equal(PARSE(&o, "--fd", "3", "word"), ERR_USAGE);
    assert_int_equal(PARSE(&o, "--fd", "3", "--prompt", "x", "--bench", "pp5"), ERR_USAGE);
    assert_int_equal(PARSE(&o, "--fd", "3", "--logits", "f"), ERR_USAGE);
    assert_int_equal(PARSE(&o, "--fd"), ERR_USAGE);
}

static void scripted_faults_need_the_test_flag(void **state)
{
    struct options o;
    (void)state;
    unsetenv("SASSTOP_TEST");
    assert_int_equal(PARSE(&o, "--fd", "3", "--script-fault", "kill@round:1"), ERR_USAGE);
    setenv("SASSTOP_TEST", "1", 1);
    assert_int_equal(PARSE(&o, "--fd", "3", "--script-fault", "kill@prefill:2"), OK);
    assert_int_equal(o.fault.what, FAULT_KILL);
    assert_int_equal(o.fault.where, FAULT_AT_PREFILL);
    assert_int_equal(o.fault.round, 2);
    assert_int_equal(PARSE(&o, "--fd", "3", "--script-fault", "fault@variant:nb"), OK);
    assert_string_equal(o.fault.name, "nb");
    assert_int_equal(PARSE(&o, "--fd", "3", "--script-fault", "burn@round:1"), ERR_USAGE);
    assert_int_equal(PARSE(&o, "--fd", "3", "--script-fault", "kill@round:x"), ERR_USAGE);
}

static void the_help_knows_every_option(void **state)
{
    static const char *const names[] = {
        "--fd",        "--model",     "--backend",  "--prompt",   "--tokens",
        "--bench",     "--rounds",    "--sources",  "--exact",    "--variant",
        "--kd",        "--schedule",  "--threads",  "--seed",     "--context",
        "--no-graphs", "--no-parity", "--epoch-ns", "--instance", "--generation-base",
        "--session",   "--command",   "--doctor",   "--json",     "--logits",
        "--help",      "--executed"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_non_null(strstr(options_usage(), names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(values),
        cmocka_unit_test(benches),
        cmocka_unit_test(refusals_name_the_option),
        cmocka_unit_test(scripted_faults_need_the_test_flag),
        cmocka_unit_test(the_help_knows_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
