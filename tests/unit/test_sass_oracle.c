/*
 * The decoder against the vendor's disassembler, where it's installed ($SASSTOP_NVDISASM, or
 * nvdisasm in the PATH; PyPI has it as nvidia-cuda-nvdisasm). Over every cubin at hand: the
 * mnemonic on at least 99.9% of instructions, the guard, the branch target, and the width or shape
 * on every memory and tensor instruction.
 */
#include "sass_view/flow.h"
#include "tests/lib/sass_lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LINE = 1024, LABELS = 8192, WORST = 40 };

struct label {
    char name[48];
    int64_t at;
};

struct tally {
    const char *tool;
    size_t files, insns, wrong_names, keys, wrong_keys, targets, wrong_targets, wrong_guards;
    size_t shown;
};

/* One kernel's text of the other tool: names its branches by label, so labels are kept to the end.
 */
struct listing {
    struct flow f;
    struct label labels[LABELS];
    size_t nlabels;
    struct {
        char name[48];
        uint32_t insn;
    } jumps[LABELS];
    size_t njumps;
};

static bool has_part(const char *op, const char *part)
{
    size_t n = strlen(part);
    for (const char *p = strchr(op, '.'); p; p = strchr(p + 1, '.'))
        if (!strncmp(p + 1, part, n) && (p[1 + n] == '.' || p[1 + n] == 0)) return true;
    return false;
}

static const char *width_of(const char *op)
{
    static const char *const widths[] = {"U8", "S8", "U16", "S16", "256", "128", "64"};
    if (strstr(op, ".U.128")) return "U.128";
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        if (has_part(op, widths[i])) return widths[i];
    return "32";
}

/* LDSM.16.MT88.4 -> LDSM.x4.T: the other tool's modifiers in our words. */
static void matrix_key(const char *op, char *out, size_t size)
{
    const char *count = has_part(op, "4") ? "x4" : has_part(op, "2") ? "x2" : "x1";
    const char *kind = "";
    if (has_part(op, "8"))
        kind = ".B8.T";
    else if (has_part(op, "U4x16P64TO8"))
        kind = ".B4";
    else if (has_part(op, "U6x16P32TO8"))
        kind = ".B6";
    else if (has_part(op, "MT88"))
        kind = ".T";
    snprintf(out, size, "%.4s.%s%s", op, count, kind);
}

static void drop_part(char *key, const char *part)
{
    char *p = strstr(key, part);
    if (p) memmove(p, p + strlen(part), strlen(p + strlen(part)) + 1);
}

/* The key that `op` of the other tool should have here; "" when only the mnemonic is compared. */
static void expected_key(const char *op, enum insn_class cls, const char *mnemonic, char *out,
                         size_t size)
{
    static const char *const moved[] = {"LD",   "LDG", "LDS", "LDL", "LDC", "ULDC",
                                        "LDCU", "ST",  "STG", "STS", "STL", "LDGSTS"};
    out[0] = 0;
    if (!strcmp(mnemonic, "LDSM") || !strcmp(mnemonic, "STSM")) {
        matrix_key(op, out, size);
        return;
    }
    for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++)
        if (!strcmp(mnemonic, moved[i]))
            snprintf(out, size, "%s.%s%s", mnemonic, width_of(op),
                     has_part(op, "BYPASS") ? ".BYPASS" : "");
    if (cls != INSN_CLASS_TENSOR || !strncmp(op, "UTC", 3)) return;
    snprintf(out, size, "%s", op);
    drop_part(out, ".POPC");
    if (!strcmp(mnemonic, "BGMMA")) drop_part(out, ".AND");
    if (!strcmp(out, "DMMA.8x8x4")) snprintf(out, size, "DMMA.884");
}

static void complain(struct tally *t, const char *path, uint32_t off, const char *ours,
                     const char *theirs)
{
    if (t->shown++ < WORST) print_message("%s %x: %s, there %s\n", path, off, ours, theirs);
}

static void compare(struct tally *t, const char *path, const struct insn *in, const char *guard,
                    const char *op)
{
    char want[96], mine[16], got[17] = "";
    size_t n = strcspn(op, ".");
    t->insns++;
    if (strlen(in->mnemonic) != n || strncmp(in->mnemonic, op, n)) {
        t->wrong_names++;
        complain(t, path, in->offset, in->key, op);
    }
    insn_guard_text(in, mine, sizeof mine);
    if (guard[0]) snprintf(got, sizeof got, "%.14s ", guard);
    if (strcmp(mine, got)) {
        t->wrong_guards++;
        complain(t, path, in->offset, mine, guard);
    }
    expected_key(op, (enum insn_class)in->cls, in->mnemonic, want, sizeof want);
    if (!want[0]) return;
    t->keys++;
    if (strcmp(want, in->key)) {
        t->wrong_keys++;
        complain(t, path, in->offset, in->key, op);
    }
}

static void finish_listing(struct tally *t, const char *path, struct listing *l)
{
    for (size_t j = 0; j < l->njumps; j++) {
        const struct insn *in = &l->f.insns[l->jumps[j].insn];
        for (size_t i = 0; i < l->nlabels; i++) {
            if (strcmp(l->labels[i].name, l->jumps[j].name)) continue;
            t->targets++;
            if (l->labels[i].at == in->target) break;
            t->wrong_targets++;
            complain(t, path, in->offset, in->key, l->jumps[j].name);
            break;
        }
    }
    flow_free(&l->f);
    l->nlabels = l->njumps = 0;
}

/* A line of code: "/\*0040*\/ @!P0 BRA `(.L_x_3) ;" */
static void take_insn(struct tally *t, const char *path, struct listing *l, char *line)
{
    unsigned off;
    char guard[16] = "", op[96] = "", *p = strstr(line, "*/");
    if (sscanf(line, " /*%x*/", &off) != 1 || !p || off / INSN_BYTES >= l->f.ninsns) return;
    p += 2 + strspn(p + 2, " \t{");
    if (*p == '@' && sscanf(p, "%15s", guard) == 1)
        p += strlen(guard) + strspn(p + strlen(guard), " ");
    if (sscanf(p, "%95[^ ;]", op) != 1) return;
    const struct insn *in = &l->f.insns[off / INSN_BYTES];
    for (size_t i = l->nlabels; i-- > 0 && l->labels[i].at < 0;) l->labels[i].at = off;
    const char *ref = strstr(p, "`(");
    if (ref && in->target != INSN_NO_TARGET && l->njumps < LABELS) {
        l->jumps[l->njumps].insn = off / INSN_BYTES;
        if (sscanf(ref + 2, "%47[^)]", l->jumps[l->njumps].name) == 1) l->njumps++;
    }
    compare(t, path, in, guard, op);
}

static void take_line(struct tally *t, const char *path, const struct cubin *c, struct listing *l,
                      char *line)
{
    char name[512];
    if (sscanf(line, " .section%*[ \t]%511[^,]", name) == 1) {
        if (l->f.insns) finish_listing(t, path, l);
        const struct cubin_kernel *k =
            strncmp(name, ".text.", 6) ? NULL : cubin_find_kernel(c, name + 6);
        if (k && flow_make(&l->f, c, k)) fail_msg("%s", err_msg());
        return;
    }
    if (!l->f.insns) return;
    if (line[0] != ' ' && line[0] != '\t' && strchr(line, ':') && l->nlabels < LABELS) {
        snprintf(l->labels[l->nlabels].name, sizeof l->labels[0].name, "%.*s",
                 (int)strcspn(line, ":"), line);
        l->labels[l->nlabels++].at = -1;
        return;
    }
    if (strstr(line, "/*")) take_insn(t, path, l, line);
}

static void check_file(const char *path, void *ctx)
{
    struct tally *t = ctx;
    static struct listing l;
    struct cubin c;
    char cmd[1200], line[LINE];
    size_t before = t->insns;
    l.f = (struct flow){.hot = -1};
    l.nlabels = l.njumps = 0;
    if (cubin_open_file(&c, path)) fail_msg("%s", err_msg());
    snprintf(cmd, sizeof cmd, "'%s' -c '%s' 2>/dev/null", t->tool, path);
    FILE *f = popen(cmd, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) take_line(t, path, &c, &l, line);
    if (l.f.insns) finish_listing(t, path, &l);
    assert_int_equal(pclose(f), 0);
    size_t all = before;
    for (size_t i = 0; i < c.nkernels; i++) all += c.kernels[i].code_size / INSN_BYTES;
    assert_int_equal(t->insns, all); /* none was passed over */
    cubin_close(&c);
    t->files++;
}

static const char *find_tool(void)
{
    const char *env = getenv("SASSTOP_NVDISASM");
    if (env && *env) return env;
    return system("command -v nvdisasm >/dev/null 2>&1") ? NULL : "nvdisasm";
}

static void agreement(void **state)
{
    (void)state;
    struct tally t = {.tool = find_tool()};
    if (!t.tool) {
        print_message("no nvdisasm here ($SASSTOP_NVDISASM, PATH): the decoder isn't compared\n");
        skip();
    }
    lab_each_cubin(check_file, &t);
    print_message(
        "%zu cubins, %zu instructions: %zu other mnemonics, %zu other guards; %zu widths and "
        "shapes, %zu other; %zu targets, %zu other\n",
        t.files, t.insns, t.wrong_names, t.wrong_guards, t.keys, t.wrong_keys, t.targets,
        t.wrong_targets);
    assert_true(t.files >= 4 && t.insns > 1000 && t.keys > 100 && t.targets > 10);
    assert_true(t.wrong_names * 1000 <= t.insns);
    assert_int_equal(t.wrong_keys, 0);
    assert_int_equal(t.wrong_guards, 0);
    assert_int_equal(t.wrong_targets, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agreement)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
