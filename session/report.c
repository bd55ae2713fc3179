/* The list of report formats and saving to a file; see report.h. */
#include "session/report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "session/report_priv.h"

const struct report_ops *const reports[] = {&report_md_ops,       &report_json_ops,
                                            &report_html_ops,     &report_csv_ops,
                                            &report_perfetto_ops, &report_sqlite_ops};
const unsigned nreports = sizeof reports / sizeof *reports;

const struct report_ops *report_find(const char *ext)
{
    for (unsigned i = 0; i < nreports; i++)
        if (strcmp(reports[i]->ext, ext) == 0) return reports[i];
    return NULL;
}

bool report_launched(const struct session *s, uint32_t i)
{
    for (uint32_t r = 0; r < s->nrows; r++)
        if (s->rows[r].def.kernel == i && (s->rows[r].calls || s->rows[r].window_calls)) return true;
    return false;
}

bool report_shows_census(const struct session *s, uint32_t i)
{
    return s->kernels[i].has_census && (s->nrows == 0 || report_launched(s, i));
}

static enum status write_file(int fd, const char *path, const struct buf *b)
{
    size_t at = 0;
    while (at < b->len) {
        ssize_t n = write(fd, b->data + at, b->len - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return err_set(ERR_IO, "%s: %s; the report is not whole", path,
                           n < 0 ? strerror(errno) : "nothing was written");
        at += (size_t)n;
    }
    return OK;
}

enum status report_save(const struct session *s, const char *ext, const char *path)
{
    const struct report_ops *ops = report_find(ext);
    struct buf b = {0};
    enum status st;
    int fd = -1;

    if (!ops)
        return err_set(
            ERR_USAGE,
            "no report format is called %s; there are md, json, html, csv, perfetto and sqlite",
            ext);
    st = ops->write(s, &b);
    if (st != OK) goto out;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        st = errno == EEXIST
                 ? err_set(ERR_IO, "%s exists already and is left alone; choose another name", path)
                 : err_set(ERR_IO, "%s: can't create the report: %s", path, strerror(errno));
        goto out;
    }
    st = write_file(fd, path, &b);
out:
    if (fd >= 0) close(fd);
    buf_free(&b);
    return st;
}
