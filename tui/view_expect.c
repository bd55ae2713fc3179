/*
 * Rules: the expectations beside the selected kernel's source (FAMILY/VARIANT.expect), held against
 * the code that runs: what holds, what is off and by how much, which retry condition is open again.
 */
#include "sass_view/expect.h"
#include "tui/code.h"
#include "tui/view.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct expect_view {
    struct code code;
    struct expect_set set;
    char path[300], why[300]; /* of the rules; why there are none */
    uint64_t loaded;          /* code hash that the rules were looked up for */
    uint32_t at, top, shown;
};

static void expect_view_done(void *data)
{
    struct expect_view *v = data;
    code_free(&v->code);
    expect_free(&v->set);
}

/* kernels/FAMILY/VARIANT.expect here, or beside the folder of the program: build/.. */
static bool find_rules(const struct kernel *k, char *path, size_t size)
{
    char exe[200];
    snprintf(path, size, "kernels/%s/%s.expect", k->def.family, k->def.variant);
    if (!access(path, R_OK)) return true;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return false;
    exe[n] = 0;
    char *slash = strrchr(exe, '/');
    if (slash) *slash = 0;
    snprintf(path, size, "%s/../kernels/%s/%s.expect", exe, k->def.family, k->def.variant);
    return !access(path, R_OK);
}

static void load_rules(struct expect_view *v, const struct kernel *k)
{
    expect_free(&v->set);
    v->at = v->top = 0;
    v->why[0] = 0;
    if (strchr(k->def.family, '/') || strchr(k->def.variant, '/') || !k->def.variant[0] ||
        !find_rules(k, v->path, sizeof v->path)) {
        snprintf(
            v->why, sizeof v->why,
            "no rules beside %s: kernels/%.31s/%.47s.expect isn't there (docs/SASS.md says how "
            "to write one)",
            k->def.name, k->def.family, k->def.variant[0] ? k->def.variant : "NAME");
        return;
    }
    if (expect_load(&v->set, v->path)) snprintf(v->why, sizeof v->why, "%.290s", err_msg());
}

static void expect_view_update(struct app *a, void *data)
{
    struct expect_view *v = data;
    const struct kernel *k = app_kernel(a);
    if (!k) return;
    code_load(&v->code, app_session(a), k);
    if (v->loaded == v->code.code_hash && (v->set.nrules || v->why[0])) return;
    v->loaded = v->code.code_hash;
    load_rules(v, k);
}

static enum role state_role(enum expect_state st)
{
    static const enum role roles[] = {ROLE_GOOD, ROLE_BAD, ROLE_WARN,
                                      ROLE_DIM,  ROLE_DIM, ROLE_WARN};
    return roles[st];
}

static void draw_words(struct app *a, const struct expect_view *v, struct area area)
{
    const char *text = !app_kernel(a) ? "no kernel has run yet"
                       : !v->code.ok  ? v->code.why
                                      : v->why;
    canvas_wrap(&a->canvas, (struct area){1, area.y, area.w - 2, area.h}, ROLE_DIM, text);
}

/* Calls for each rule that is about this kernel; the number of them. */
static uint32_t each_rule(const struct expect_view *v, uint32_t from, int rows, struct canvas *c,
                          struct area area, unsigned n[EXPECT_REOPENED + 1])
{
    uint32_t i = 0;
    for (unsigned k = 0; k < v->set.nrules; k++) {
        const struct expect_rule *rule = &v->set.rules[k];
        struct expect_result r;
        if (!expect_applies(&v->set, rule->section, &v->code.census)) continue;
        expect_hold(&v->set, rule, &v->code.census, v->code.cubin.toolkit, &r);
        n[r.state]++;
        if (c && i >= from && i < from + (uint32_t)rows) {
            int y = area.y + (int)(i - from);
            canvas_text(c, 2, y, 9, state_role(r.state) | STYLE_BOLD, expect_state_name(r.state));
            canvas_text(c, 12, y, area.w - 13,
                        r.state == EXPECT_HELD ? ROLE_TEXT : state_role(r.state), r.text);
        }
        i++;
    }
    return i;
}

/* Whether no section about this kernel has its code. */
static bool code_is_new(const struct expect_view *v)
{
    for (unsigned i = 0; i < v->set.nsections; i++)
        if (expect_applies(&v->set, i, &v->code.census) &&
            expect_code_changed(&v->set, i, &v->code.census))
            return true;
    return false;
}

static void expect_view_draw(struct app *a, void *data, struct area area)
{
    struct expect_view *v = data;
    struct canvas *c = &a->canvas;
    unsigned n[EXPECT_REOPENED + 1] = {0};
    if (!app_kernel(a) || !v->code.ok || v->why[0]) {
        draw_words(a, v, area);
        return;
    }
    v->shown = each_rule(v, 0, 0, NULL, area, n);
    canvas_printf(c, 1, area.y, area.w - 2, ROLE_ACCENT | STYLE_BOLD, "%s  %s",
                  v->code.census.kernel, v->code.census.arch);
    int x = 4 + text_columns(v->code.census.kernel) + text_columns(v->code.census.arch);
    canvas_printf(c, x, area.y, area.w - x - 1,
                  n[EXPECT_OFF] + n[EXPECT_UNKNOWN] ? ROLE_BAD : ROLE_TEXT,
                  "%u held, %u off, %u unknown, %u skipped; %u reopened", n[EXPECT_HELD],
                  n[EXPECT_OFF], n[EXPECT_UNKNOWN], n[EXPECT_SKIPPED], n[EXPECT_REOPENED]);
    canvas_text(c, 1, area.y + 1, area.w - 2, ROLE_DIM,
                !v->shown        ? "the rules beside it name other kernels or archs"
                : code_is_new(v) ? "the code was rebuilt since the rules were counted"
                                 : "the rules were counted on this code");
    area.y += 2;
    area.h -= 2;
    if (area.h < 1 || !v->shown) return;
    if (v->at >= v->shown) v->at = v->shown - 1;
    if (v->at < v->top) v->top = v->at;
    if (v->at >= v->top + (uint32_t)area.h) v->top = v->at - (uint32_t)area.h + 1;
    memset(n, 0, sizeof n);
    each_rule(v, v->top, area.h, c, area, n);
    int y = area.y + (int)(v->at - v->top);
    canvas_text(c, 0, y, 1, ROLE_ACCENT, c->ascii ? ">" : "▸");
    canvas_restyle(c, 0, y, area.w, -1, STYLE_REVERSE);
}

static bool expect_view_request(struct app *a, void *data, enum request r)
{
    struct expect_view *v = data;
    switch (r) {
    case REQ_RULES:
        app_show_view(a, a->back);
        return true;
    case REQ_UP:
        v->at -= v->at > 0;
        return true;
    case REQ_DOWN:
        v->at += v->at + 1 < v->shown;
        return true;
    case REQ_HOME:
        v->at = 0;
        return true;
    case REQ_END:
        v->at = v->shown ? v->shown - 1 : 0;
        return true;
    default:
        return false;
    }
}

const struct view_ops expect_ops = {
    .name = "rules",
    .title = "rules beside the selected kernel's source",
    .size = sizeof(struct expect_view),
    .done = expect_view_done,
    .update = expect_view_update,
    .draw = expect_view_draw,
    .request = expect_view_request,
};
