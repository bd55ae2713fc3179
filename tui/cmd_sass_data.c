/*
 * Job: the formats of the `sass` subcommand that programs read: JSON and CSV.
 *
 * Invariants: a figure that isn't known is null in JSON and empty in CSV; hashes are hex strings.
 */
#include "base/quote.h"
#include "tui/cmd_sass_print.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* JSON */

bool sass_add_number(cJSON *o, const char *key, int v)
{
    return v == CUBIN_UNKNOWN ? cJSON_AddNullToObject(o, key) != NULL
                              : cJSON_AddNumberToObject(o, key, v) != NULL;
}

bool sass_add_hash(cJSON *o, const char *key, uint64_t v)
{
    char s[17];
    snprintf(s, sizeof s, "%016" PRIx64, v);
    return cJSON_AddStringToObject(o, key, s) != NULL;
}

/* The counts of one scope: "opcodes" and "classes", without zeros. */
static bool add_counts(cJSON *o, const struct census *s, enum census_scope scope)
{
    cJSON *ops = cJSON_AddObjectToObject(o, "opcodes");
    cJSON *cls = cJSON_AddObjectToObject(o, "classes");
    bool ok = ops && cls;
    for (size_t i = 0; ok && i < s->nrows; i++)
        if (s->rows[i].n[scope])
            ok = cJSON_AddNumberToObject(ops, s->rows[i].key, s->rows[i].n[scope]) != NULL;
    for (int c = 0; ok && c < INSN_CLASSES; c++)
        if (s->classes[c][scope])
            ok = cJSON_AddNumberToObject(cls, insn_class_name((enum insn_class)c),
                                         s->classes[c][scope]) != NULL;
    return ok;
}

/* Multiply-adds a warp; unknown (null) where no tensor instruction says. */
static int known_macs(const struct census *s, enum census_scope scope)
{
    uint64_t macs = census_macs(s, scope);
    return macs && macs <= INT32_MAX ? (int)macs : CUBIN_UNKNOWN;
}

static bool add_scope(cJSON *o, const char *key, const struct census *s, enum census_scope scope)
{
    cJSON *in = s->loops_known ? cJSON_AddObjectToObject(o, key) : NULL;
    if (!in) return !s->loops_known && cJSON_AddNullToObject(o, key);
    return cJSON_AddNumberToObject(in, "total", s->sum[scope]) &&
           sass_add_number(in, "macs", known_macs(s, scope)) && add_counts(in, s, scope);
}

static bool fill_object(cJSON *o, const struct sass_job *j, const struct cubin_kernel *k,
                        const struct census *s)
{
    return cJSON_AddStringToObject(o, "kernel", sass_safe(k->name)) &&
           cJSON_AddStringToObject(o, "name", sass_name(k->name)) &&
           cJSON_AddStringToObject(o, "file", sass_safe(j->file)) &&
           cJSON_AddNumberToObject(o, "part", (double)j->part) &&
           cJSON_AddStringToObject(o, "arch", s->arch) &&
           sass_add_hash(o, "cubin_hash", s->file_hash) &&
           sass_add_hash(o, "code_hash", s->code_hash) &&
           cJSON_AddNumberToObject(o, "total", s->total) &&
           cJSON_AddNumberToObject(o, "padding", s->padding) &&
           cJSON_AddNumberToObject(o, "dummies", s->dummies) &&
           cJSON_AddNumberToObject(o, "unknown", s->unknown) && add_counts(o, s, CENSUS_ALL) &&
           add_scope(o, "in_loop", s, CENSUS_LOOP) && add_scope(o, "hot_loop", s, CENSUS_HOT) &&
           sass_add_number(o, "regs", s->regs) && sass_add_number(o, "smem", s->smem) &&
           sass_add_number(o, "spill_bytes", s->spill_bytes) &&
           sass_add_number(o, "stack", s->stack) && sass_add_number(o, "barriers", s->barriers) &&
           sass_add_number(o, "max_threads", s->max_threads) &&
           sass_add_number(o, "blocks_per_sm", sass_blocks_per_sm(j->cubin, k));
}

static enum status json_begin(struct sass_job *j)
{
    j->json = cJSON_CreateArray();
    return j->json ? OK : err_set(ERR_NOMEM, "out of memory for the JSON");
}

static enum status json_kernel(struct sass_job *j, const struct cubin_kernel *k)
{
    struct census s;
    enum status st = census_make(&s, j->cubin, k);
    if (st) return st;
    cJSON *o = cJSON_CreateObject();
    if (!o || !cJSON_AddItemToArray(j->json, o) || !fill_object(o, j, k, &s))
        st = err_set(ERR_NOMEM, "out of memory for the JSON");
    census_free(&s);
    return st;
}

enum status sass_print_json(const cJSON *json)
{
    char *text = cJSON_Print(json);
    if (!text) return err_set(ERR_NOMEM, "out of memory for the JSON");
    puts(text);
    cJSON_free(text);
    return OK;
}

static enum status json_end(struct sass_job *j)
{
    return sass_print_json(j->json);
}

/* CSV: one line an opcode. Fields hold no commas or quotes but names, which are quoted. */

static enum status csv_begin(struct sass_job *j)
{
    (void)j;
    puts("file,part,arch,kernel,code_hash,opcode,class,total,in_loop,hot_loop");
    return OK;
}

static void csv_field(const char *s)
{
    quote_csv_print(stdout, s);
    putchar(',');
}

static enum status csv_kernel(struct sass_job *j, const struct cubin_kernel *k)
{
    struct census s;
    enum status st = census_make(&s, j->cubin, k);
    for (size_t i = 0; st == OK && i < s.nrows; i++) {
        const struct census_row *r = &s.rows[i];
        csv_field(sass_safe(j->file));
        printf("%zu,%s,", j->part, s.arch);
        csv_field(sass_safe(k->name));
        printf("%016" PRIx64 ",%s,%s,%u,", s.code_hash, r->key,
               insn_class_name((enum insn_class)r->cls), r->n[CENSUS_ALL]);
        if (s.loops_known)
            printf("%u,%u\n", r->n[CENSUS_LOOP], r->n[CENSUS_HOT]);
        else
            puts(",");
    }
    if (st == OK) census_free(&s);
    return st;
}

const struct sass_format sass_json_format = {
    .name = "json", .begin = json_begin, .kernel = json_kernel, .end = json_end};
const struct sass_format sass_csv_format = {
    .name = "csv", .begin = csv_begin, .kernel = csv_kernel};
