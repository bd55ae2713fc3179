/*
 * `sasstop ledger`: the experiments of a project, from the file beside it: list, show, run again,
 * check conditions against what is built now, close what was killed. To add a verb: a row in
 * `verbs`.
 */
#include "tui/commands.h"

#include "sass_view/expect.h"
#include "session/lab_ledger.h"
#include "tui/lab_side.h"

#include <cjson/cJSON.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ledger_job {
    struct ledger l;
    const char *path, *verdict, *number;
    bool json;
};

static const char *state_of(const struct ledger_entry *e)
{
    return e->verdict.verdict[0] ? e->verdict.verdict : "open";
}

static void print_gain(const struct msg_verdict *v)
{
    if (isfinite(v->gain))
        printf(" %+7.2f%%", 100 * v->gain);
    else
        printf(" %8s", "-");
    if (isfinite(v->band))
        printf(" %5.2f%%", 100 * v->band);
    else
        printf(" %6s", "-");
}

static int list_json(const struct ledger_job *j)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < j->l.n; i++) {
        const struct ledger_entry *e = &j->l.entries[i];
        if (j->verdict && strcasecmp(j->verdict, state_of(e))) continue;
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "n", i + 1);
        cJSON_AddStringToObject(o, "time", e->time);
        cJSON_AddStringToObject(o, "a", e->def.a);
        cJSON_AddStringToObject(o, "b", e->def.b);
        cJSON_AddStringToObject(o, "bar", e->def.bar);
        cJSON_AddStringToObject(o, "verdict", state_of(e));
        if (isfinite(e->verdict.gain)) cJSON_AddNumberToObject(o, "gain", e->verdict.gain);
        cJSON_AddStringToObject(o, "recording", e->recording);
        cJSON_AddItemToArray(list, o);
    }
    char *text = cJSON_Print(list);
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(list);
    return text ? EXIT_OK : EXIT_FAILED;
}

static int do_list(struct ledger_job *j)
{
    if (j->json) return list_json(j);
    printf("%3s %-20s %-8s %8s %6s %-16s %s\n", "no", "when", "verdict", "gain", "noise", "bar",
           "B against A");
    for (uint32_t i = 0; i < j->l.n; i++) {
        const struct ledger_entry *e = &j->l.entries[i];
        if (j->verdict && strcasecmp(j->verdict, state_of(e))) continue;
        printf("%3u %-20s %-8s", i + 1, e->time, state_of(e));
        print_gain(&e->verdict);
        printf(" %-16s %s against %s, %s %s\n", e->def.bar, e->def.b, e->def.a, e->def.workload,
               e->def.shape);
    }
    if (!j->l.n) printf("no experiment yet in %s\n", j->path);
    if (j->l.damaged) printf("%u damaged lines were left out\n", j->l.damaged);
    return EXIT_OK;
}

static const struct ledger_entry *chosen(const struct ledger_job *j)
{
    char *end;
    unsigned long n = j->number ? strtoul(j->number, &end, 10) : 0;
    if (j->number && n >= 1 && n <= j->l.n && !*end) return &j->l.entries[n - 1];
    fprintf(stderr, "sasstop ledger: which experiment? %s has 1 to %u\n", j->path, j->l.n);
    return NULL;
}

static void line(const char *name, const char *text)
{
    if (text[0]) printf("%-12s %s\n", name, text);
}

static const char *hash_text(uint64_t hash, char *out, size_t size)
{
    snprintf(out, size, hash ? "%016" PRIx64 : "not known", hash);
    return out;
}

static int do_show(struct ledger_job *j)
{
    const struct ledger_entry *e = chosen(j);
    char text[200], a[20], b[20];
    if (!e) return EXIT_USAGE;
    line("verdict", state_of(e));
    line("why", e->verdict.why);
    line("when", e->time);
    line("A", e->def.a);
    line("B", e->def.b);
    line("third", e->def.control);
    snprintf(text, sizeof text, "%s %s, bar on %s", e->def.workload, e->def.shape, e->def.metric);
    line("workload", text);
    line("hypothesis", e->def.hypothesis);
    line("claim", e->def.claim);
    line("bar", e->def.bar);
    line("gates", e->gates);
    if (isfinite(e->verdict.gain)) {
        snprintf(text, sizeof text, "%+.2f %% (%+.2f to %+.2f), noise +-%.2f %%, %u pairs",
                 100 * e->verdict.gain, 100 * e->verdict.lo, 100 * e->verdict.hi,
                 100 * e->verdict.band, e->verdict.pairs);
        line("gain", text);
    }
    line("mechanism", e->verdict.sentence);
    line("retry when", e->def.retry);
    snprintf(text, sizeof text, "%s and %s", hash_text(e->def.code_a, a, sizeof a),
             hash_text(e->def.code_b, b, sizeof b));
    line("code", e->def.code_a || e->def.code_b ? text : "not known");
    line("device", e->device);
    line("driver", e->driver);
    line("toolkit", e->toolkit);
    line("commit", e->commit);
    line("command", e->command);
    line("recording", e->recording);
    return EXIT_OK;
}

/* ---- check ---- */

static const char *code_state(const struct lab_side *s, uint64_t was)
{
    if (!was) return "its code was not known";
    if (!s->v) return "not built now";
    return s->v->code_hash == was ? "as recorded" : "changed since";
}

/* Whether one retry condition holds now; `text` says what was found. */
static bool due(const struct ledger_entry *e, const struct lab_side *a, const struct lab_side *b,
                const char *rule, char *text, size_t size)
{
    struct expect_set set = {0};
    struct expect_rule r;
    struct expect_result res;
    snprintf(text, size, "not met");
    if (!strcmp(rule, "A changes")) return a->v && a->v->code_hash != e->def.code_a;
    if (!strcmp(rule, "B changes")) return b->v && b->v->code_hash != e->def.code_b;
    if (!strcmp(rule, "toolkit changes"))
        return a->has_code && strcmp(a->code.cubin.toolkit, e->toolkit) != 0;
    if (!a->has_code) {
        snprintf(text, size, "unknown: no cubin of A");
        return false;
    }
    if (expect_parse_rule(&r, rule) != OK) {
        snprintf(text, size, "not understood: %s", err_msg());
        return false;
    }
    expect_hold(&set, &r, &a->code.census, a->code.cubin.toolkit, &res);
    snprintf(text, size, "%s", res.text);
    return res.state == EXPECT_HELD;
}

static unsigned check_entry(const struct ledger_entry *e, unsigned number)
{
    struct lab_side a, b;
    char rule[200], text[400];
    unsigned found = 0;
    if (lab_side_parse(e->def.a, &a) != OK || lab_side_parse(e->def.b, &b) != OK) return 0;
    lab_side_resolve(&a, 90);
    if (!a.v) {
        lab_side_close(&a);
        lab_side_resolve(&a, 0);
    }
    lab_side_resolve(&b, a.v && !strncmp(a.v->arch, "90", 2) ? 90 : 0);
    printf("%u %s against %s: %s; A %s, B %s\n", number, e->def.b, e->def.a, state_of(e),
           code_state(&a, e->def.code_a), code_state(&b, e->def.code_b));
    for (unsigned i = 0; ledger_retry(e->def.retry, i, rule, sizeof rule); i++) {
        bool yes = due(e, &a, &b, rule, text, sizeof text);
        found += yes;
        printf("    %s %s (%s)\n", yes ? "DUE" : "   ", rule, yes ? "met" : text);
    }
    lab_side_close(&a);
    lab_side_close(&b);
    return found;
}

/* Retry conditions and code hashes against what is built now. */
static int do_check(struct ledger_job *j)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < j->l.n; i++) found += check_entry(&j->l.entries[i], i + 1);
    printf("%u experiments, %u retry conditions met\n", j->l.n, found);
    return EXIT_OK;
}

/* ---- rerun, close ---- */

/* The recorded command, with a recording of its own. Words are split as join() put them. */
static int run_again(struct ledger_job *j, bool resume)
{
    const struct ledger_entry *e = chosen(j);
    static char words[400];
    static char option[] = "--resume", recording[300];
    char *argv[68], *p = words;
    int argc = 0;
    if (!e) return EXIT_USAGE;
    snprintf(words, sizeof words, "%s", e->command);
    while (*p && argc < 63) {
        while (*p == ' ') p++;
        char quote = *p == '\'' ? *p++ : ' ';
        if (!*p) break;
        char *end = strchr(p, quote);
        argv[argc++] = p;
        if (!end) break;
        *end = '\0';
        p = end + 1;
    }
    argv[argc] = NULL;
    if (argc < 3 || strcmp(argv[1], "ab") != 0) {
        fprintf(stderr, "sasstop ledger: the command of experiment %s isn't known whole: %s\n",
                j->number, e->command);
        return EXIT_FAILED;
    }
    for (int i = 2; i + 1 < argc; i++) /* nothing is overwritten: a new file */
        if (!strcmp(argv[i], "--record")) {
            for (int k = i; k + 2 <= argc; k++) argv[k] = argv[k + 2];
            argc -= 2;
            break;
        }
    if (resume) {
        snprintf(recording, sizeof recording, "%s", e->recording);
        argv[argc++] = option;
        argv[argc++] = recording;
        argv[argc] = NULL;
    }
    return cmd_ab(argc - 1, argv + 1);
}

static int do_rerun(struct ledger_job *j)
{
    return run_again(j, false);
}

static int do_resume(struct ledger_job *j)
{
    return run_again(j, true);
}

static int do_close(struct ledger_job *j)
{
    const struct ledger_entry *e = chosen(j);
    if (!e) return EXIT_USAGE;
    if (e->verdict.verdict[0]) {
        fprintf(stderr, "sasstop ledger: experiment %s has its verdict: %s\n", j->number,
                e->verdict.verdict);
        return EXIT_FAILED;
    }
    enum status st = ledger_close_entry(j->path, e, "closed by hand: it was not finished");
    return st == OK ? EXIT_OK : command_fail(st);
}

static const struct {
    const char *name;
    int (*run)(struct ledger_job *j);
} verbs[] = {
    {"list", do_list},   {"show", do_show},     {"check", do_check},
    {"rerun", do_rerun}, {"resume", do_resume}, {"close", do_close},
};

int cmd_ledger(int argc, char **argv)
{
    static const struct option longs[] = {{"ledger", 1, NULL, 'l'},
                                          {"verdict", 1, NULL, 'v'},
                                          {"json", 0, NULL, 'j'},
                                          {NULL, 0, NULL, 0}};
    struct ledger_job j = {.path = LEDGER_FILE};
    int c, code = EXIT_USAGE;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
        if (c == 'l')
            j.path = optarg;
        else if (c == 'v')
            j.verdict = optarg;
        else if (c == 'j')
            j.json = true;
        else
            return command_usage("ledger", argv);
    }
    const char *verb = optind < argc ? argv[optind++] : "list";
    if (optind < argc) j.number = argv[optind++];
    if (optind < argc) return command_usage("ledger", argv);
    enum status st = ledger_read(j.path, &j.l);
    if (st != OK) return command_fail(st);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(verbs[i].name, verb)) {
            code = verbs[i].run(&j);
            ledger_free(&j.l);
            return code;
        }
    fprintf(stderr,
            "sasstop ledger: there is no '%s'; there are list, show, check, rerun, resume, close\n",
            verb);
    ledger_free(&j.l);
    return code;
}
