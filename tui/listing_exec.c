/* Executed counts for the listing; see listing_exec.h. */
#include "tui/listing_exec.h"

#include <stdio.h>
#include <string.h>

struct listing_exec exec_find(const struct session *s, uint32_t row)
{
    const struct executed *e = session_executed_like(s, row);
    return (struct listing_exec){s, e, e && e->row == row};
}

void exec_line(const struct listing_exec *x, char *out, size_t size)
{
    out[0] = '\0';
    if (x->of) exec_words(x->session, x->of, x->own, out, size);
}

static const struct exec_insn *at(const struct listing_exec *x, uint32_t i)
{
    return x->of && i < x->of->ninsns && x->of->insns[i].there ? &x->of->insns[i] : NULL;
}

/* The same figures as of an opcode, for one instruction. */
static struct exec_sum sum_of(const struct exec_insn *in)
{
    bool counted = !(in->flags & EXEC_UNCOUNTED);
    return (struct exec_sum){.inst = in->inst,
                             .threads = in->threads,
                             .pred_on = in->pred_on,
                             .in_loop = in->flags & EXEC_IN_LOOP ? in->inst : 0,
                             .count = 1,
                             .counted = counted,
                             .never = counted && !in->inst};
}

void exec_insn_words(const struct listing_exec *x, uint32_t i, char *out, size_t size)
{
    const struct exec_insn *in = at(x, i);
    char gap[200];
    out[0] = '\0';
    if (!in) return;
    struct exec_sum sum = sum_of(in);
    struct value n = exec_launch(x->of, &sum);
    exec_gap(x->session, x->of, &sum, gap, sizeof gap);
    if (n.state != VALUE_OK)
        snprintf(out, size, "not counted");
    else if (!in->inst)
        snprintf(out, size, "never runs");
    else
        snprintf(out, size, "ran %.0f times a launch%s%s", n.v, gap[0] ? ": " : "", gap);
}

void exec_draw(struct canvas *c, int x, int y, int w, const struct listing_exec *e, uint32_t i)
{
    const struct exec_insn *in = at(e, i);
    char text[24];
    if (!in) return;
    struct exec_sum sum = sum_of(in);
    struct value n = exec_launch(e->of, &sum);
    if (n.state != VALUE_OK)
        snprintf(text, sizeof text, "?");
    else
        value_format(&n, EXEC_W - 2, 0, 1, text, sizeof text);
    int width = text_columns(text);
    canvas_text(c, x + EXEC_W - 2 - width, y, w - (EXEC_W - 2 - width),
                in->inst ? ROLE_TEXT : ROLE_DIM, text);
}
