/*
 * Pre-tokenizers of byte-level BPE: how text is cut into words before merging.
 *
 * Job: regular expressions by name. The first cuts the text, the next cuts each piece, and so on;
 * what lies between two matches is a piece too, and a piece is matched as a text of its own (so an
 * end of piece is an end of text to a look-ahead). Invariant: the pieces in order are the text. To
 * add one, add a row to `kinds` with the expressions that its tokenizer.json publishes.
 */
#include "engine/tokenizer_priv.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define GPT2_WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"

enum { MAX_REGEX = 4 };

struct kind {
    const char *name;
    bool whole_words, add_bos;
    const char *regex[MAX_REGEX];
};

static const struct kind kinds[] = {
    {"llama-bpe",
     true,
     true,
     {"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
      "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"smollm", false, false, {"\\p{N}", GPT2_WORDS}},
    {"gpt-2", false, false, {GPT2_WORDS}},
    {"default",
     false,
     false,
     {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2_WORDS, "\\p{N}+", "[0-9][0-9][0-9]"}},
};

struct pre_tokenizer {
    const struct kind *kind;
    pcre2_code *code[MAX_REGEX];
    size_t n;
};

static const struct kind *find_kind(struct gguf_str name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (gguf_str_is(name, kinds[i].name)) return &kinds[i];
    return NULL;
}

enum status pre_tokenizer_open(const struct gguf *g, struct gguf_str name,
                               struct pre_tokenizer **out)
{
    char shown[48];
    const struct kind *kind = find_kind(name);

    *out = NULL;
    if (!kind)
        return err_set(
            ERR_FORMAT,
            "%s: the pre-tokenizer \"%s\" isn't known here; llama-bpe, smollm, gpt-2 and default "
            "are",
            gguf_name(g), gguf_str_copy(name, shown, sizeof shown));
    struct pre_tokenizer *p = calloc(1, sizeof *p);
    if (!p) return err_set(ERR_NOMEM, "%s: no memory for its tokenizer", gguf_name(g));
    p->kind = kind;
    for (; p->n < MAX_REGEX && kind->regex[p->n]; p->n++) {
        int error;
        PCRE2_SIZE at;
        pcre2_code *code = pcre2_compile((PCRE2_SPTR)kind->regex[p->n], PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_UCP, &error, &at, NULL);
        if (!code) {
            pre_tokenizer_close(p);
            return err_set(ERR_FAILED,
                           "pre-tokenizer %s: expression refused by pcre2 (error %d at %zu)",
                           kind->name, error, (size_t)at);
        }
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* matching works without, slower */
        p->code[p->n] = code;
    }
    *out = p;
    return OK;
}

void pre_tokenizer_close(struct pre_tokenizer *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n; i++) pcre2_code_free(p->code[i]);
    free(p);
}

const char *pre_tokenizer_name(const struct pre_tokenizer *p)
{
    return p->kind->name;
}

bool pre_tokenizer_whole_words(const struct pre_tokenizer *p)
{
    return p->kind->whole_words;
}

bool pre_tokenizer_add_bos(const struct pre_tokenizer *p)
{
    return p->kind->add_bos;
}

/* Appends the cuts of text[from, to) by one expression to `ends`. */
static enum status cut_piece(const pcre2_code *code, pcre2_match_data *md, const char *text,
                             size_t from, size_t to, size_t *ends, size_t *n)
{
    size_t at = 0, len = to - from;
    while (at < len) {
        int rc =
            pcre2_match(code, (PCRE2_SPTR)(text + from), len, at, PCRE2_NO_UTF_CHECK, md, NULL);
        if (rc == PCRE2_ERROR_NOMATCH) break;
        if (rc < 0)
            return err_set(ERR_LIMIT, "pcre2 gave up on the text (error %d); shorten it", rc);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(md);
        if (span[1] <= at) break; /* an empty match would never end */
        if (span[0] > at) ends[(*n)++] = from + span[0];
        ends[(*n)++] = from + span[1];
        at = span[1];
    }
    if (at < len) ends[(*n)++] = to;
    return OK;
}

enum status pre_tokenizer_split(const struct pre_tokenizer *p, const char *text, size_t len,
                                size_t **ends, size_t *n)
{
    enum status st = OK;
    /* A piece has a byte at least, so there are at most len. */
    size_t *old = malloc((len + 1) * sizeof *old), *cuts = malloc((len + 1) * sizeof *cuts);
    pcre2_match_data *md = pcre2_match_data_create(1, NULL);
    size_t n_old = len ? 1 : 0;

    *ends = NULL;
    *n = 0;
    if (!old || !cuts || !md) {
        st = err_set(ERR_NOMEM, "no memory to split a text of %zu bytes", len);
        goto out;
    }
    old[0] = len;
    for (size_t r = 0; r < p->n; r++) {
        size_t made = 0, from = 0;
        for (size_t i = 0; i < n_old && !st; from = old[i++])
            st = cut_piece(p->code[r], md, text, from, old[i], cuts, &made);
        if (st) goto out;
        size_t *swap = old;
        old = cuts;
        cuts = swap;
        n_old = made;
    }
    *ends = old;
    *n = n_old;
    old = NULL;
out:
    pcre2_match_data_free(md);
    free(old);
    free(cuts);
    return st;
}
