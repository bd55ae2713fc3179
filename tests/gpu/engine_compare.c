/*
 * Compares what two runs of the engine left, for engine_parity.sh, and reads rates off one:
 *   engine_compare rates FILE SKIP        tokens/s of a stream's timed rounds but the first SKIP,
 *                                         when rounds came first, and where they were timed
 *   engine_compare logits REF GOT LIMIT   two --logits files: NMSE at most LIMIT; prints the root
 *                                         mean square of their difference too, and GOT's hash
 *   engine_compare tokens REF GOT N GAP   two frame streams: the first N generated tokens equal;
 * where they part, both gaps of the two largest logits are shown, and a sum of at most GAP explains
 * it. REF has x1 - x2 = g > 0 for the token it takes and the one the other takes, GOT has y2 - y1
 * = h > 0 for the same two, so g + h = (y2 - x2) - (y1 - x1): the difference of two errors. (The
 * gaps told are to the runner-up, which may be a third token: their sum is at most that.) With
 * errors of standard deviation s that is sqrt(2) s, and 4 s are 2.8 standard deviations.
 * Exit status 0 when they agree, 1 when not, 2 when they can't be read. With no arguments there is
 * nothing to do, said in a closing line, so that the runner of all tests may call it.
 */
#include "base/buf.h"
#include "base/median.h"
#include "session/proto.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int unreadable(const char *path, const char *why)
{
    fprintf(stderr, "engine_compare: %s: %s\n", path, why);
    return 2;
}

/* ---- logits ---- */

struct sums {
    double err, ref, worst;
    size_t n, bad;
};

static void add_piece(struct sums *s, const float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)x[i] - y[i]);
        if (!isfinite(y[i])) s->bad++;
        if (d > s->worst) s->worst = d;
        s->err += d * d;
        s->ref += (double)x[i] * x[i];
    }
    s->n += n;
}

static int compare_files(FILE *a, FILE *b, double limit, XXH3_state_t *hash)
{
    static float x[65536], y[65536];
    struct sums s = {0};
    XXH3_64bits_reset(hash);
    for (;;) {
        size_t na = fread(x, sizeof *x, 65536, a), nb = fread(y, sizeof *y, 65536, b);
        if (na != nb) return unreadable("the two files", "they differ in length");
        if (na == 0) break;
        XXH3_64bits_update(hash, y, nb * sizeof *y);
        add_piece(&s, x, y, na);
    }
    double nmse = s.ref > 0 ? s.err / s.ref : s.err;
    printf("NMSE %.3e over %zu logits, rms difference %.4g, worst %.3e, %zu not finite, hash "
           "%016llx\n",
           nmse, s.n, s.n ? sqrt(s.err / (double)s.n) : 0, s.worst, s.bad,
           (unsigned long long)XXH3_64bits_digest(hash));
    return s.n > 0 && s.bad == 0 && nmse <= limit ? 0 : 1;
}

static int logits(const char *ref, const char *got, const char *limit)
{
    FILE *a = fopen(ref, "rb"), *b = fopen(got, "rb");
    XXH3_state_t *hash = XXH3_createState();
    int rc = !hash    ? unreadable(got, "out of memory")
             : a && b ? compare_files(a, b, strtod(limit, NULL), hash)
                      : unreadable(a ? got : ref, "can't be opened");
    XXH3_freeState(hash);
    if (a) fclose(a);
    if (b) fclose(b);
    return rc;
}

/* ---- tokens ---- */

enum { TOKENS_MAX = 4096 };

struct tokens {
    uint32_t token[TOKENS_MAX];
    double gap[TOKENS_MAX];
    unsigned n;
};

static bool read_all(const char *path, struct buf *out)
{
    uint8_t piece[65536];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) buf_put(out, piece, n);
    fclose(f);
    return !out->failed;
}

/* The generated tokens of the first round that has any; prompt tokens carry a negative gap. */
static void take_tokens(const struct buf *b, struct tokens *out)
{
    static union msg_any m;
    uint32_t round = 0;
    struct frame f;
    size_t used;
    for (size_t at = 0; at < b->len; at += used) {
        enum status st = proto_next(b->data + at, b->len - at, &f, &used);
        if (used == 0) break;
        if (st != OK || f.type != FRAME_TEXT || proto_decode(&f, &m, sizeof m) != OK) continue;
        if (m.text.gap < 0 || out->n == TOKENS_MAX) continue;
        if (out->n == 0) round = m.text.round;
        if (m.text.round != round) continue;
        out->token[out->n] = m.text.token;
        out->gap[out->n++] = m.text.gap;
    }
}

static int load_tokens(const char *path, struct tokens *out)
{
    struct buf b = {0};
    int rc = read_all(path, &b) ? 0 : unreadable(path, "can't be read");
    out->n = 0;
    if (rc == 0) take_tokens(&b, out);
    buf_free(&b);
    return rc;
}

static int tokens(const char *ref, const char *got, unsigned n, double gap)
{
    static struct tokens a, b;
    int rc = load_tokens(ref, &a);
    if (rc == 0) rc = load_tokens(got, &b);
    if (rc) return rc;
    if (a.n < n || b.n < n) {
        printf("%u and %u tokens were made, %u are needed\n", a.n, b.n, n);
        return 1;
    }
    double least = a.gap[0];
    for (unsigned i = 0; i < n; i++) {
        if (a.gap[i] < least) least = a.gap[i];
        if (a.token[i] == b.token[i]) continue;
        bool explained = a.gap[i] + b.gap[i] <= gap;
        printf("token %u is %u and %u; gaps %.4g and %.4g, together %s %.4g: %s\n", i, a.token[i],
               b.token[i], a.gap[i], b.gap[i], explained ? "within" : "beyond", gap,
               explained ? "near a tie, explained" : "too wide for rounding");
        return explained ? 0 : 1;
    }
    printf("%u tokens equal, least gap %.4g\n", n, least);
    return 0;
}

/* ---- rates ---- */

static void print_rate(const char *what, double *v, unsigned n)
{
    double iqr, median = median_iqr(v, n, &iqr);
    if (n) printf("%s %.1f tokens/s, interquartile range %.1f, %u rounds\n", what, median, iqr, n);
}

static int rates(const char *path, unsigned skip)
{
    static double prefill[TOKENS_MAX], decode[TOKENS_MAX];
    static union msg_any m;
    struct buf b = {0};
    int rc = read_all(path, &b) ? 0 : unreadable(path, "can't be read");
    unsigned n = 0;
    double first = 0, first_timed = 0; /* s */
    char place[8] = "";
    struct frame f;
    size_t used;
    for (size_t at = 0; rc == 0 && at < b.len; at += used) {
        enum status st = proto_next(b.data + at, b.len - at, &f, &used);
        if (used == 0) break;
        if (st != OK || f.type != FRAME_ROUND || proto_decode(&f, &m, sizeof m) != OK) continue;
        if (!(first > 0)) first = (double)f.t_ns * 1e-9;
        if (m.round.counted || !m.round.prefill_ns || !m.round.decode_ns || n == TOKENS_MAX)
            continue;
        if (!(first_timed > 0)) first_timed = (double)f.t_ns * 1e-9;
        snprintf(place, sizeof place, "%s", m.round.timed_in);
        if (skip) {
            skip--;
            continue;
        }
        prefill[n] = 1e9 * m.round.prefill_tokens / (double)m.round.prefill_ns;
        decode[n++] = 1e9 * m.round.decode_tokens / (double)m.round.decode_ns;
    }
    print_rate("prefill", prefill, n);
    print_rate("decode", decode, n);
    if (n) printf("first %.2f s, timed %.2f s, in %s\n", first, first_timed, *place ? place : "?");
    buf_free(&b);
    return n ? rc : rc ? rc : 1;
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        printf("nothing to compare: engine_parity.sh calls this\n0 passed, 0 failed, 0 skipped\n");
        return 0;
    }
    if (argc == 5 && !strcmp(argv[1], "logits")) return logits(argv[2], argv[3], argv[4]);
    if (argc == 6 && !strcmp(argv[1], "tokens"))
        return tokens(argv[2], argv[3], (unsigned)strtoul(argv[4], NULL, 10),
                      strtod(argv[5], NULL));
    if (argc == 4 && !strcmp(argv[1], "rates"))
        return rates(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
    fprintf(stderr, "usage: engine_compare logits REF GOT LIMIT | tokens REF GOT N GAP | "
                    "rates FILE SKIP\n");
    return 2;
}
