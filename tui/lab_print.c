/* See lab_print.h. Figures come from the experiment's own evaluation, as in tables and reports. */
#include "tui/lab_print.h"

#include "session/lab_ledger.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_interval(const char *name, const struct lab_interval *i)
{
    if (i->n == 0) return;
    printf("  %-22s %+.2f %%", name, 100 * lab_gain(i->est));
    if (i->known)
        printf("  (%+.2f to %+.2f)", 100 * lab_gain(i->lo), 100 * lab_gain(i->hi));
    else
        printf("  (too few for an interval)");
    printf("  %u pairs\n", i->n);
}

static void print_series(const struct lab_experiment *x, const char *name, enum lab_series s)
{
    struct lab_interval i;
    if (lab_series_interval(x, s, &i) == OK) print_interval(name, &i);
}

static void print_figures(const struct lab_experiment *x)
{
    if (x->nfigures) printf("\n  %-32s %12s %12s  %8s  source\n", "figure", "A", "B", "change");
    for (uint32_t i = 0; i < x->nfigures; i++) {
        const struct msg_mechanism *m = &x->figures[i];
        printf("  %-32s", m->name);
        if (isfinite(m->a) && isfinite(m->b))
            printf(" %12.6g %12.6g", m->a, m->b);
        else
            printf(" %12s %12s", "-", "-");
        if (m->a > 0 && m->b > 0)
            printf("  %+7.1f%%", 100 * (m->b / m->a - 1));
        else
            printf("  %8s", "");
        printf("  %s %s%s%s\n", m->source, m->unit, m->why[0] ? ": " : "", m->why);
    }
}

void lab_print_text(const struct lab_experiment *x, const char *recording)
{
    const struct msg_verdict *v = &x->verdict;
    struct lab_result r;
    char more[40];
    printf("%s%s: %s against %s, bar %s\n%s\n\n", v->verdict, v->firm ? "" : " (not firm)",
           x->def.b, x->def.a, x->def.bar, v->why);
    if (lab_evaluate(x, &r) == OK) {
        print_interval("warmed", &r.ab);
        print_series(x, "un-warmed", LAB_COLD);
        print_series(x, "in SM cycles", LAB_CYCLES);
        print_series(x, "the other phase", LAB_ALSO);
        print_interval("A against A", &r.aa);
        print_interval("third kernel", &r.control);
    }
    if (isfinite(v->band)) printf("  %-22s +-%.2f %%\n", "noise band", 100 * v->band);
    if (v->detectable > 0)
        printf("  %-22s %.2f %% (four times in five)\n", "smallest gain found",
               100 * v->detectable);
    if (v->dropped) printf("  %-22s %u pairs\n", "left out", v->dropped);
    if (v->more && v->pairs >= LAB_MIN_PAIRS)
        printf("  %-22s %s\n", "would settle it", lab_more_text(v->more, more, sizeof more));
    print_figures(x);
    if (v->sentence[0]) printf("\n%s\n", v->sentence);
    printf("\nrecorded: %s\n", recording);
}

enum status lab_print_json(const struct session *s, const struct lab_experiment *x,
                           const char *recording)
{
    char *text = ledger_json(recording, &s->hello, x, true, true);
    if (!text) return err_set(ERR_NOMEM, "out of memory for the JSON");
    puts(text);
    cJSON_free(text);
    return OK;
}
