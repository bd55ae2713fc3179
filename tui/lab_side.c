/* See lab_side.h. To add an option of a side: a branch in take_option(). */
#include "tui/lab_side.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status bad_side(const char *text)
{
    return err_set(ERR_USAGE,
                   "the side '%s' isn't understood; write VARIANT:KD[,blocks=N][,cubins=DIR]"
                   "[,NAME=VALUE], such as nb:8,blocks=1",
                   text);
}

static bool env_name(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(isupper((unsigned char)p[i]) || p[i] == '_' || (i && isdigit((unsigned char)p[i]))))
            return false;
    return n > 0;
}

static bool take_option(struct lab_side *s, const char *word)
{
    const char *eq = strchr(word, '=');
    char *end;
    if (!eq || !eq[1]) return false;
    size_t n = (size_t)(eq - word);
    if (n == 6 && !strncmp(word, "blocks", n)) {
        long v = strtol(eq + 1, &end, 10);
        s->blocks = (int)v;
        return !*end && v >= 1 && v <= 32;
    }
    if (n == 6 && !strncmp(word, "cubins", n)) {
        snprintf(s->cubins, sizeof s->cubins, "%s", eq + 1);
        return strlen(eq + 1) < sizeof s->cubins;
    }
    if (!env_name(word, n) || n >= sizeof s->env[0].name || s->nenv == LAB_ENV_MAX) return false;
    memcpy(s->env[s->nenv].name, word, n);
    snprintf(s->env[s->nenv++].value, sizeof s->env[0].value, "%s", eq + 1);
    return strlen(eq + 1) < sizeof s->env[0].value;
}

enum status lab_side_parse(const char *text, struct lab_side *out)
{
    char copy[512], *save = NULL, *end;
    *out = (struct lab_side){0};
    if (strlen(text) >= sizeof out->text) return bad_side(text);
    snprintf(out->text, sizeof out->text, "%s", text);
    snprintf(copy, sizeof copy, "%s", text);
    char *word = strtok_r(copy, ",", &save);
    char *colon = word ? strchr(word, ':') : NULL;
    if (!colon || colon == word || (size_t)(colon - word) >= sizeof out->variant)
        return bad_side(text);
    memcpy(out->variant, word, (size_t)(colon - word));
    unsigned long kd = strtoul(colon + 1, &end, 10);
    if (end == colon + 1 || *end || kd > 64) return bad_side(text);
    out->kd = (uint32_t)kd;
    while ((word = strtok_r(NULL, ",", &save)))
        if (!take_option(out, word)) return bad_side(text);
    return OK;
}

void lab_side_kernel(const struct lab_side *s, char *out, size_t size)
{
    if (s->kd)
        snprintf(out, size, "%s_kd%u", s->variant, s->kd);
    else
        snprintf(out, size, "%s", s->variant);
}

void lab_side_resolve(struct lab_side *s, int sm)
{
    struct registry_options o = {.dir = s->cubins[0] ? s->cubins : NULL, .sm = sm};
    char kernel[64], spec[600];
    lab_side_kernel(s, kernel, sizeof kernel);
    if (registry_open(&o, &s->reg) != OK) return;
    s->v = registry_find(s->reg, kernel);
    if (!s->v) {
        err_set(ERR_FAILED, "no kernel %s in %s", kernel, registry_dir(s->reg));
        return;
    }
    snprintf(spec, sizeof spec, "%s:%s", s->v->path, kernel);
    s->has_code = pick_kernel(&s->code, spec, NULL) == OK;
}

void lab_side_close(struct lab_side *s)
{
    if (s->has_code) pick_free(&s->code);
    registry_close(s->reg);
    s->reg = NULL;
    s->v = NULL;
    s->has_code = false;
}

bool lab_side_same_place(const struct lab_side *a, const struct lab_side *b)
{
    if (a->blocks != b->blocks || a->nenv != b->nenv) return false;
    for (unsigned i = 0; i < a->nenv; i++)
        if (strcmp(a->env[i].name, b->env[i].name) || strcmp(a->env[i].value, b->env[i].value))
            return false;
    return true;
}

void lab_side_options(const struct lab_side *s, struct lab_side_text *text, struct run_options *ro)
{
    snprintf(text->kd, sizeof text->kd, "%u", s->kd);
    snprintf(text->blocks, sizeof text->blocks, "%d", s->blocks);
    ro->variant = s->variant;
    ro->kd = text->kd;
    ro->blocks = s->blocks ? text->blocks : NULL;
}

void lab_side_enter(const struct lab_side *s)
{
    for (unsigned i = 0; i < s->nenv; i++) setenv(s->env[i].name, s->env[i].value, 1);
    if (s->cubins[0]) setenv("SASSTOP_CUBINS", s->cubins, 1);
}

/* What was there before under such a name is not brought back: children of the other side get the
 * plain environment. */
void lab_side_leave(const struct lab_side *s)
{
    for (unsigned i = 0; i < s->nenv; i++) unsetenv(s->env[i].name);
    if (s->cubins[0]) unsetenv("SASSTOP_CUBINS");
}
