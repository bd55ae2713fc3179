/*
 * Scripts: the program without a terminal, for tests and pictures. One command a line, # starts a
 * comment:
 *   key K         a key by name: v, F1, Space, C-l, PgDn
 *   type TEXT     keys for each character
 *   seek S        a recording: to second S
 *   flip N        a recording: to the N-th flip from here
 *   play S        lets S seconds pass (virtual in a recording, real in a live session)
 *   resize WxH    another screen
 *   dump [FILE]   the screen as text, to stdout or a file
 *   say TEXT      a line of its own between dumps
 *   expect TEXT   fails unless the screen holds it
 *   refuse TEXT   fails if the screen holds it
 *   take V:KD     a live session: flip to this variant (FAMILY/V:KD; the family is q4k_gemm)
 *   wait TEXT     a live session: until the screen holds it, at most 120 s
 * To add one: a function and a row in `verbs`.
 */
#include "base/clock.h"
#include "tui/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t WAIT_NS = 120000000000ull;

static enum status on_key(struct app *a, const char *arg)
{
    int key = key_parse(arg);
    if (key == KEY_NONE) return err_set(ERR_USAGE, "no key is called '%s'", arg);
    app_key(a, key);
    return OK;
}

static enum status on_type(struct app *a, const char *arg)
{
    for (; *arg; arg++) app_key(a, (unsigned char)*arg);
    return OK;
}

static enum status number(const char *arg, double *v)
{
    char *end;
    *v = strtod(arg, &end);
    if (end == arg || *end || !(*v >= 0 && *v < 1e6))
        return err_set(ERR_USAGE, "'%s' is no number of seconds", arg);
    return OK;
}

static enum status on_seek(struct app *a, const char *arg)
{
    double s;
    enum status st = number(arg, &s);
    if (st != OK) return st;
    if (!a->recorded.src) return err_set(ERR_USAGE, "seek needs a recording");
    app_seek(a, (uint64_t)(s * 1e9));
    return OK;
}

static enum status on_flip(struct app *a, const char *arg)
{
    if (!a->recorded.src) return err_set(ERR_USAGE, "flip needs a recording");
    for (int n = atoi(arg); n > 0; n--) app_seek(a, replay_flip(a->recorded.src, 1));
    return OK;
}

static enum status on_play(struct app *a, const char *arg)
{
    double s;
    enum status st = number(arg, &s);
    if (st != OK) return st;
    if (a->feed->replay) {
        replay_play(a->feed->src, true);
        replay_pass(a->feed->src, (uint64_t)(s * 1e9));
        return app_pull(a, a->now_ns);
    }
    uint64_t end = clock_mono_ns() + (uint64_t)(s * 1e9);
    while (st == OK && !a->quit && clock_mono_ns() < end) st = loop_wait(a, 20, false);
    return st;
}

static enum status on_resize(struct app *a, const char *arg)
{
    int w, h;
    char rest;
    if (sscanf(arg, "%4dx%4d%c", &w, &h, &rest) != 2 || w < 1 || h < 1)
        return err_set(ERR_USAGE, "'%s' is no size like 80x24", arg);
    return canvas_resize(&a->canvas, w, h);
}

static enum status on_dump(struct app *a, const char *arg)
{
    struct buf b = {0};
    FILE *f = stdout;
    enum status st = OK;

    app_draw(a);
    canvas_dump(&a->canvas, &b);
    if (*arg && !(f = fopen(arg, "w"))) {
        buf_free(&b);
        return err_set(ERR_IO, "can't write %s", arg);
    }
    if (b.failed || fwrite(b.data, 1, b.len, f) != b.len) st = err_set(ERR_IO, "the dump failed");
    if ((*arg ? fclose(f) : fflush(f)) && st == OK) st = err_set(ERR_IO, "the dump failed");
    buf_free(&b);
    return st;
}

static enum status on_say(struct app *a, const char *arg)
{
    (void)a;
    puts(arg);
    return OK;
}

static enum status on_expect(struct app *a, const char *arg)
{
    app_draw(a);
    if (canvas_holds(&a->canvas, arg)) return OK;
    on_dump(a, "");
    return err_set(ERR_FAILED, "the screen doesn't hold '%s'", arg);
}

static enum status on_refuse(struct app *a, const char *arg)
{
    app_draw(a);
    if (!canvas_holds(&a->canvas, arg)) return OK;
    on_dump(a, "");
    return err_set(ERR_FAILED, "the screen holds '%s'", arg);
}

static enum status on_wait(struct app *a, const char *arg)
{
    uint64_t end = clock_mono_ns() + WAIT_NS;
    enum status st = OK;

    for (;;) {
        app_draw(a);
        if (canvas_holds(&a->canvas, arg)) return OK;
        if (a->quit || clock_mono_ns() > end) return on_expect(a, arg);
        if ((st = loop_wait(a, 20, false)) != OK) return st;
    }
}

static enum status on_take(struct app *a, const char *arg)
{
    char family[32] = "q4k_gemm", variant[48], rest;
    unsigned kd = 0;
    const char *slash = strchr(arg, '/');
    if (slash && slash - arg < (int)sizeof family)
        snprintf(family, sizeof family, "%.*s", (int)(slash - arg), arg);
    if (sscanf(slash ? slash + 1 : arg, "%47[^: ]:%4u%c", variant, &kd, &rest) != 2 &&
        sscanf(slash ? slash + 1 : arg, "%47[^: ]%c", variant, &rest) != 1)
        return err_set(ERR_USAGE, "'%s' is no variant like nb:8", arg);
    if (a->feed->replay) return err_set(ERR_USAGE, "take needs a live session");
    flip_to(a, family, variant, kd);
    return OK;
}

static const struct {
    const char *verb;
    enum status (*run)(struct app *a, const char *arg);
} verbs[] = {
    {"key", on_key},       {"type", on_type},     {"seek", on_seek}, {"flip", on_flip},
    {"play", on_play},     {"resize", on_resize}, {"dump", on_dump}, {"say", on_say},
    {"expect", on_expect}, {"refuse", on_refuse}, {"take", on_take}, {"wait", on_wait},
};

static enum status run_line(struct app *a, char *line)
{
    line[strcspn(line, "\r\n")] = 0;
    while (*line == ' ') line++;
    if (!*line || *line == '#') return OK;
    char *arg = line + strcspn(line, " ");
    if (*arg) *arg++ = 0;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(verbs[i].verb, line)) return verbs[i].run(a, arg);
    return err_set(ERR_USAGE, "no script command is called '%s'", line);
}

enum status loop_script(struct app *a, const char *path)
{
    char line[1024];
    int n = 0;
    enum status st = loop_signals();
    FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;

    if (!f) return err_set(ERR_IO, "can't read the script %s", path);
    while (st == OK && !a->quit && fgets(line, sizeof line, f)) {
        n++;
        st = run_line(a, line);
        if (st == OK && !a->feed->replay) st = app_pull(a, clock_mono_ns());
    }
    bool unread = ferror(f) != 0;
    if (f != stdin) fclose(f);
    if (st == OK && unread) return err_set(ERR_IO, "can't read the script %s", path);
    if (st != OK) return err_prefix(st, "%s line %d", path, n);
    loop_finish(a);
    return OK;
}
