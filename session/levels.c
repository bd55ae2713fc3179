/*
 * Bounded least squares of levels; see levels.h.
 *
 * Everything is kept as normal equations: A'A, A'y of each metric, y'y. Invariant: `gram` is
 * symmetric with stride LEVELS_ROWS_MAX; places are given out in order and never again.
 */
#include "session/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = LEVELS_ROWS_MAX, SWEEPS = 100 };

static const double DEPENDENT =
    1e-6; /* pivot of a scaled row under which it is one of the others' */

struct levels {
    unsigned n, metrics;
    uint32_t row[N], seen[N];
    uint64_t samples;
    double most[LEVELS_METRICS_MAX];
    bool absent[LEVELS_METRICS_MAX]; /* had no value in any sample so far */
    double gram[N * N], factor[N * N];
    bool factored;
    double inverse[N]; /* diagonal of the scaled gram's inverse */
    double aty[LEVELS_METRICS_MAX][N], x[LEVELS_METRICS_MAX][N];
    double strayed[LEVELS_METRICS_MAX][N]; /* sum of a^2 e^2 */
    double checked[N];                     /* sum of a^2 over the same samples */
    double yy[LEVELS_METRICS_MAX], y[LEVELS_METRICS_MAX];
};

struct levels *levels_new(unsigned metrics, const double *most)
{
    if (metrics > LEVELS_METRICS_MAX) return NULL;
    struct levels *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->metrics = metrics;
    for (unsigned i = 0; i < metrics; i++) {
        l->most[i] = most ? most[i] : INFINITY;
        l->absent[i] = true;
    }
    return l;
}

void levels_free(struct levels *l)
{
    free(l);
}

int levels_row(struct levels *l, uint32_t row)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->row[i] == row) return (int)i;
    if (l->n == N) return -1;
    l->row[l->n] = row;
    return (int)l->n++;
}

unsigned levels_rows(const struct levels *l)
{
    return l->n;
}

uint64_t levels_samples(const struct levels *l)
{
    return l->samples;
}

uint32_t levels_row_at(const struct levels *l, unsigned place)
{
    return place < l->n ? l->row[place] : 0;
}

int levels_parts(struct levels *l, const struct overlap *rows, int n, uint64_t dur, int *place,
                 double *part)
{
    for (int i = 0; i < n; i++) {
        place[i] = rows[i].row ? levels_row(l, rows[i].row) : -1;
        part[i] = (double)rows[i].ns / (double)dur;
        if (place[i] < 0) return -1;
    }
    return n;
}

/* Whether the sample has all the values that it should. */
static bool whole(const struct levels *l, const double *value)
{
    for (unsigned m = 0; m < l->metrics; m++)
        if (!isfinite(value[m]) && !l->absent[m]) return false;
    return true;
}

void levels_add(struct levels *l, const int *place, const double *part, unsigned n,
                const double *value)
{
    if (!whole(l, value)) return;
    l->samples++;
    l->factored = false;
    for (unsigned m = 0; m < l->metrics; m++) {
        if (!isfinite(value[m])) continue;
        /* A metric that starts late would have fewer samples than the equations: it stays out. */
        if (l->absent[m] && l->samples > 1) continue;
        l->absent[m] = false;
        l->yy[m] += value[m] * value[m];
        l->y[m] += value[m];
        for (unsigned i = 0; i < n; i++) l->aty[m][place[i]] += part[i] * value[m];
    }
    for (unsigned i = 0; i < n; i++) {
        l->seen[place[i]]++;
        for (unsigned j = 0; j < n; j++) l->gram[place[i] * N + place[j]] += part[i] * part[j];
    }
}

/* ---- solving ---- */

/* Coordinate descent from the last solution; g = A'A x - A'y is kept up to date. */
static void descend(struct levels *l, unsigned m)
{
    double g[N], *x = l->x[m];

    for (unsigned i = 0; i < l->n; i++) {
        g[i] = -l->aty[m][i];
        for (unsigned j = 0; j < l->n; j++) g[i] += l->gram[i * N + j] * x[j];
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double moved = 0;
        for (unsigned i = 0; i < l->n; i++) {
            double d = l->gram[i * N + i];
            if (!(d > 0)) continue;
            double to = fmin(fmax(x[i] - g[i] / d, 0), l->most[m]), step = to - x[i];
            if (step == 0) continue;
            x[i] = to;
            for (unsigned j = 0; j < l->n; j++) g[j] += l->gram[i * N + j] * step;
            moved = fmax(moved, fabs(step));
        }
        if (moved < 1e-4) break;
    }
}

/* Cholesky of the gram matrix scaled to a unit diagonal. A row that the ones before it make up has
 * a zero pivot and is left out. */
static void factorise(struct levels *l)
{
    double scale[N];

    if (l->factored) return;
    l->factored = true;
    for (unsigned i = 0; i < l->n; i++) {
        double d = l->gram[i * N + i];
        scale[i] = d > 0 ? 1 / sqrt(d) : 0;
    }
    for (unsigned i = 0; i < l->n; i++)
        for (unsigned j = 0; j <= i; j++) {
            double sum = l->gram[i * N + j] * scale[i] * scale[j];
            for (unsigned k = 0; k < j; k++) sum -= l->factor[i * N + k] * l->factor[j * N + k];
            double pivot = l->factor[j * N + j];
            if (i == j)
                l->factor[i * N + i] = sum > DEPENDENT ? sqrt(sum) : 0;
            else
                l->factor[i * N + j] = pivot > 0 ? sum / pivot : 0;
        }
}

/* z = inv(L) b, with what is left out as 0. */
static void forward(const struct levels *l, const double *b, double *z)
{
    for (unsigned i = 0; i < l->n; i++) {
        double sum = b[i], pivot = l->factor[i * N + i];
        for (unsigned k = 0; k < i; k++) sum -= l->factor[i * N + k] * z[k];
        z[i] = pivot > 0 ? sum / pivot : 0;
    }
}

/* Diagonal of inv(C) for C = L L': of column j the squared length of inv(L) e_j. The rows that a
 * left-out row is made of are as undetermined as it is: found by their part in it. */
static void invert_diagonal(struct levels *l)
{
    double e[N] = {0}, z[N] = {0};

    for (unsigned j = 0; j < l->n; j++) {
        e[j] = 1;
        forward(l, e, z);
        e[j] = 0;
        l->inverse[j] = l->factor[j * N + j] > 0 ? 0 : INFINITY;
        for (unsigned i = 0; i < l->n; i++) l->inverse[j] += z[i] * z[i];
    }
    for (unsigned d = 0; d < l->n; d++) {
        if (l->factor[d * N + d] > 0) continue;
        /* c = coefficients of row d in the others: back substitution of L' c = L[d]. */
        for (unsigned j = d; j-- > 0;) {
            double sum = l->factor[d * N + j], pivot = l->factor[j * N + j];
            for (unsigned k = j + 1; k < d; k++) sum -= l->factor[k * N + j] * z[k];
            z[j] = pivot > 0 ? sum / pivot : 0;
            if (fabs(z[j]) > 1e-3) l->inverse[j] = INFINITY;
        }
    }
}

void levels_solve(struct levels *l)
{
    factorise(l);
    invert_diagonal(l);
    for (unsigned m = 0; m < l->metrics; m++)
        if (!l->absent[m]) descend(l, m);
}

void levels_check(struct levels *l, const int *place, const double *part, unsigned n,
                  const double *value)
{
    if (!whole(l, value)) return;
    for (unsigned m = 0; m < l->metrics; m++) {
        double e = value[m];
        if (l->absent[m]) continue;
        for (unsigned i = 0; i < n; i++) e -= part[i] * l->x[m][place[i]];
        for (unsigned i = 0; i < n; i++) l->strayed[m][place[i]] += part[i] * part[i] * e * e;
    }
    for (unsigned i = 0; i < n; i++) l->checked[place[i]] += part[i] * part[i];
}

void levels_get(const struct levels *l, unsigned metric, unsigned place, double loose,
                struct level *out)
{
    *out = (struct level){.state = LEVEL_FEW, .v = NAN, .error = NAN, .inflation = INFINITY};
    if (metric >= l->metrics || place >= l->n || l->absent[metric]) return;
    out->samples = l->seen[place];
    out->inflation = l->inverse[place];
    if (l->seen[place] < LEVELS_MIN_SAMPLES || !(l->checked[place] > 0)) return;
    out->state = LEVEL_TIED;
    if (!(out->inflation <= LEVELS_MAX_INFLATION)) return;
    out->v = l->x[metric][place];
    out->error = sqrt(out->inflation / l->gram[place * N + place] * l->strayed[metric][place] /
                      l->checked[place]);
    out->state = out->error > loose && out->error > 0.1 * out->v ? LEVEL_LOOSE : LEVEL_OK;
}

double levels_residual(struct levels *l, unsigned metric)
{
    double b[N] = {0}, z[N] = {0}, left;

    if (metric >= l->metrics || l->absent[metric]) return NAN;
    factorise(l);
    for (unsigned i = 0; i < l->n; i++) {
        double d = l->gram[i * N + i];
        b[i] = d > 0 ? l->aty[metric][i] / sqrt(d) : 0;
    }
    forward(l, b, z);
    left = l->yy[metric];
    for (unsigned i = 0; i < l->n; i++) left -= z[i] * z[i];
    return left > 0 ? left : 0;
}

double levels_variance(const struct levels *l, unsigned metric)
{
    if (metric >= l->metrics || l->absent[metric] || !l->samples) return NAN;
    double v = l->yy[metric] - l->y[metric] * l->y[metric] / (double)l->samples;
    return v > 0 ? v : 0;
}
