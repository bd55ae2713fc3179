/*
 * Job: run nvdisasm on a cubin and keep the text of one kernel.
 *
 * Invariants: the program gets a file of ours as its only input and no shell sees any name; the
 * child is always waited for. Its output is text to be shown, so control bytes become '?'.
 */
#include "sass_view/vendor.h"
#include "base/buf.h"
#include "base/clock.h"
#include "sass_view/decode.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool find_tool(char *path, size_t size)
{
    const char *env = getenv("SASSTOP_NVDISASM"), *dirs = getenv("PATH");
    if (env) {
        snprintf(path, size, "%s", env);
        return *env && !access(path, X_OK);
    }
    while (dirs && *dirs) {
        size_t n = strcspn(dirs, ":");
        snprintf(path, size, "%.*s/nvdisasm", (int)n, dirs);
        if (n && !access(path, X_OK)) return true;
        dirs += n + (dirs[n] == ':');
    }
    return false;
}

bool vendor_installed(void)
{
    char path[512];
    return find_tool(path, sizeof path);
}

static pid_t start(const char *tool, char *file, int *out)
{
    posix_spawn_file_actions_t fa;
    char *argv[] = {(char *)(uintptr_t)tool, (char *)(uintptr_t) "-c", file, NULL};
    int fds[2];
    pid_t pid = -1;
    if (pipe(fds)) return -1;
    if (posix_spawn_file_actions_init(&fa) == 0) {
        posix_spawn_file_actions_adddup2(&fa, fds[1], 1);
        posix_spawn_file_actions_addclose(&fa, fds[0]);
        posix_spawn_file_actions_addclose(&fa, fds[1]);
        posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", 1, 0);
        if (posix_spawn(&pid, tool, &fa, NULL, argv, environ)) pid = -1;
        posix_spawn_file_actions_destroy(&fa);
    }
    close(fds[1]);
    if (pid < 0)
        close(fds[0]);
    else
        *out = fds[0];
    return pid;
}

/* All that it says, until its end, the time or the limit. */
static bool read_output(int fd, struct buf *text)
{
    uint64_t end = clock_mono_ns() + VENDOR_SECONDS * UINT64_C(1000000000);
    char chunk[65536];
    for (;;) {
        uint64_t now = clock_mono_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= end || text->len > VENDOR_BYTES_MAX) return false;
        if (poll(&p, 1, (int)((end - now) / 1000000) + 1) < 0 && errno != EINTR) return false;
        ssize_t n = p.revents ? read(fd, chunk, sizeof chunk) : 0;
        if (p.revents && n == 0) return !text->failed;
        if (n < 0 && errno != EINTR) return false;
        if (n > 0) buf_put(text, chunk, (size_t)n);
    }
}

static enum status run(const char *tool, char *file, struct buf *text)
{
    int fd = -1, status = 0;
    pid_t pid = start(tool, file, &fd);
    if (pid < 0) return err_set(ERR_FAILED, "%s can't be started", tool);
    bool whole = read_output(fd, text);
    close(fd);
    if (!whole) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!whole) return err_set(ERR_FAILED, "%s took too long, or said too much", tool);
    if (status) return err_set(ERR_FAILED, "%s failed on this cubin", tool);
    return OK;
}

bool vendor_line(const char *line, uint32_t *offset, char *text, size_t size)
{
    unsigned off;
    const char *p = strstr(line, "*/");
    if (sscanf(line, " /*%x*/", &off) != 1 || !p) return false;
    p += 2 + strspn(p + 2, " \t{");
    size_t n = strcspn(p, ";\n"), out = 0;
    while (n && (p[n - 1] == ' ' || p[n - 1] == '\t')) n--;
    if (!n || !size) return false;
    for (size_t i = 0; i < n && out + 1 < size; i++)
        text[out++] = p[i] < 0x20 || p[i] == 0x7f ? '?' : p[i];
    text[out] = 0;
    *offset = off;
    return true;
}

/* Keeps the lines of section .text.NAME. */
static enum status take(struct vendor_text *out, char *text, const struct cubin_kernel *k)
{
    bool here = false;
    uint32_t found = 0;
    char *save = NULL;
    out->n = k->code_size / INSN_BYTES;
    out->line = calloc(out->n ? out->n : 1, sizeof *out->line);
    if (!out->line) return err_set(ERR_NOMEM, "out of memory for the vendor's text");
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        char one[256], name[512];
        uint32_t off;
        if (sscanf(l, " .section%*[ \t]%511[^,]", name) == 1)
            here = !strncmp(name, ".text.", 6) && !strcmp(name + 6, k->name);
        if (!here || !vendor_line(l, &off, one, sizeof one)) continue;
        if (off % INSN_BYTES || off / INSN_BYTES >= out->n || out->line[off / INSN_BYTES]) continue;
        if (!(out->line[off / INSN_BYTES] = strdup(one)))
            return err_set(ERR_NOMEM, "out of memory for the vendor's text");
        found++;
    }
    return found ? OK : err_set(ERR_FAILED, "nvdisasm said nothing about %s", k->name);
}

enum status vendor_read(struct vendor_text *out, const struct cubin *c,
                        const struct cubin_kernel *k)
{
    char tool[512], file[] = "/tmp/sasstop-cubin-XXXXXX";
    struct buf text = {0};
    *out = (struct vendor_text){0};
    if (c->sealed) return err_set(ERR_UNAVAILABLE, "its licence forbids disassembling %s", k->name);
    if (!find_tool(tool, sizeof tool))
        return err_set(ERR_UNAVAILABLE, "nvdisasm isn't installed (PyPI: nvidia-cuda-nvdisasm)");
    int fd = mkstemp(file);
    if (fd < 0) return err_set(ERR_IO, "no file can be made in /tmp");
    bool written = write(fd, cubin_bytes(c), c->size) == (ssize_t)c->size;
    close(fd);
    enum status st =
        written ? run(tool, file, &text) : err_set(ERR_IO, "%s: can't be written", file);
    unlink(file);
    if (st == OK) {
        buf_u8(&text, 0);
        st = text.failed ? err_set(ERR_NOMEM, "out of memory") : take(out, (char *)text.data, k);
    }
    buf_free(&text);
    if (st) vendor_free(out);
    return st;
}

void vendor_free(struct vendor_text *t)
{
    for (uint32_t i = 0; t->line && i < t->n; i++) free(t->line[i]);
    free(t->line);
    *t = (struct vendor_text){0};
}
