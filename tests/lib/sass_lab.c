/*
 * Job: find or compile cubins for the SASS tests. To add a source: a .cu in tests/fixtures/sass/, a
 * row here for each arch that it is worth compiling for.
 */
#include "tests/lib/sass_lab.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct lab_source corpus[] = {
    {"scalar", "80"},      {"scalar", "86"},     {"scalar", "89"},   {"scalar", "90a"},
    {"scalar", "100a"},    {"scalar", "120a"},   {"scalar", "121"},  {"memory", "80"},
    {"memory", "86"},      {"memory", "89"},     {"memory", "90a"},  {"memory", "100a"},
    {"memory", "120a"},    {"memory", "121"},    {"tensor", "80"},   {"tensor", "86"},
    {"tensor", "89"},      {"tensor", "90a"},    {"tensor", "100a"}, {"tensor", "120a"},
    {"tensor", "121"},     {"flow", "80"},       {"flow", "90a"},    {"flow", "121"},
    {"hopper", "90a"},     {"hopper", "100a"},   {"hopper", "120a"}, {"blackwell", "100a"},
    {"blackwell", "120a"}, {"blackwell", "121"}, {"texture", "75"},  {"texture", "80"},
    {"texture", "86"},     {"texture", "89"},    {"texture", "90a"}, {"texture", "100a"},
    {"texture", "120a"},   {"texture", "121"},   {"generic", "75"},  {"generic", "80"},
    {"generic", "86"},     {"generic", "89"},    {"generic", "90a"}, {"generic", "100a"},
    {"generic", "120a"},   {"generic", "121"},   {"uniform", "75"},  {"uniform", "80"},
    {"uniform", "86"},     {"uniform", "89"},    {"uniform", "90a"}, {"uniform", "100a"},
    {"uniform", "120a"},   {"uniform", "121"},   {"remote", "90a"},  {"remote", "100a"},
    {"remote", "120a"},    {"remote", "121"},
};

const struct lab_source *lab_corpus(size_t i)
{
    return i < sizeof corpus / sizeof corpus[0] ? &corpus[i] : NULL;
}

static const char *nvcc(void)
{
    static const char *const usual = "/usr/local/cuda/bin/nvcc";
    const char *env = getenv("NVCC");
    if (env && *env) return env;
    if (!access(usual, X_OK)) return usual;
    return system("command -v nvcc >/dev/null 2>&1") ? NULL : "nvcc";
}

bool lab_have_nvcc(void)
{
    return nvcc() != NULL;
}

bool lab_nvcc_is(const char *release)
{
    char cmd[320];
    const char *cc = nvcc();
    if (!cc) return false;
    snprintf(cmd, sizeof cmd, "%s --version | grep -q 'release %s,'", cc, release);
    return system(cmd) == 0;
}

const char *lab_build(const struct lab_source *s, const char **why)
{
    static char path[128];
    char source[128], cmd[640];
    struct stat have, want;
    const char *cc = nvcc();
    snprintf(source, sizeof source, "tests/fixtures/sass/%s.cu", s->name);
    snprintf(path, sizeof path, "build/sass_corpus/%s_sm_%s.cubin", s->name, s->arch);
    if (!stat(path, &have) && !stat(source, &want) && have.st_mtime >= want.st_mtime) return path;
    *why = "no nvcc here";
    if (!cc) return NULL;
    *why = "nvcc can't compile for this arch";
    snprintf(cmd, sizeof cmd,
             "mkdir -p build/sass_corpus && %s -cubin -O3 -std=c++17 -arch=sm_%s -o %s.%d %s "
             ">/dev/null 2>&1 && mv %s.%d %s",
             cc, s->arch, path, (int)getpid(), source, path, (int)getpid(), path);
    return system(cmd) ? NULL : path;
}

static size_t each_match(const char *pattern, void (*fn)(const char *, void *), void *ctx)
{
    glob_t g;
    size_t n = 0;
    if (glob(pattern, 0, NULL, &g)) return 0;
    for (; n < g.gl_pathc; n++) fn(g.gl_pathv[n], ctx);
    globfree(&g);
    return n;
}

size_t lab_each_cubin(void (*fn)(const char *path, void *ctx), void *ctx)
{
    const struct lab_source *s;
    const char *path, *why;
    size_t n = each_match("tests/fixtures/sass/*.cubin", fn, ctx);
    for (size_t i = 0; (s = lab_corpus(i)); i++) {
        if (!(path = lab_build(s, &why))) continue;
        fn(path, ctx);
        n++;
    }
    n += each_match("build/cubin/*/*/*.cubin", fn, ctx);
    return n + each_match("build/cubin/*/*/*/*.cubin", fn, ctx);
}
