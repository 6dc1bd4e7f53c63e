/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/log-expression.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/memory.h"

/* Nested groups.  PCRE2's compiler is recursive. */
#define MAX_NESTED 100

struct log_expression {
    pcre2_code *code;
    pcre2_match_context *limits;
    pcre2_match_data *data;
};

/* Translation of an extended regular expression to PCRE2's language. */
struct translation {
    const char *p;              /* Next byte of the expression. */
    FILE *out;                  /* Stream of the result. */
    char quantifier;            /* '*', '+' or '?' that is not yet in the
                                 * result, because another may follow; 0
                                 * without one. */
    bool alternatives;          /* There is a '|' outside of groups. */
    char *error;                /* NULL, or the first error. */
};

static void
refuse(struct translation *t, char *error)
{
    if (!t->error) {
        t->error = error;
    } else {
        free(error);
    }
}

/* "a+?" is "(a+)?", which is "a*".  PCRE2 would read a lazy "+". */
static void
add_quantifier(struct translation *t, char c)
{
    t->quantifier = !t->quantifier || t->quantifier == c ? c : '*';
}

static void
end_quantifier(struct translation *t)
{
    if (t->quantifier) {
        putc(t->quantifier, t->out);
        t->quantifier = 0;
    }
}

/* Translates the escape with its backslash before 't->p'. */
static void
translate_escape(struct translation *t)
{
    char c = *t->p;

    if (!c) {
        refuse(t, message("a backslash at the end, a character after it is "
                          "needed"));
        return;
    }
    t->p++;
    switch (c) {
    case '<':
        fputs("\\b(?=\\w)", t->out);
        break;
    case '>':
        fputs("\\b(?<=\\w)", t->out);
        break;
    case '`':
        fputs("\\A", t->out);
        break;
    case '\'':
        fputs("\\z", t->out);
        break;
    default:
        if (isdigit((unsigned char) c)) {
            refuse(t, message("intervals and back-references; expected other "
                              "extended regular expressions"));
        } else if (isalpha((unsigned char) c) && !strchr("wWsSdDbB", c)) {
            refuse(
                t,
                message("\"\\%c\" is no escape; expected \\w \\W \\s \\S \\d "
                        "\\D \\b \\B \\< \\> or punctuation",
                        c));
        } else if (isalpha((unsigned char) c)) {
            fprintf(t->out, "\\%c", c);
        } else {
            fprintf(t->out, "\\x%02x", (unsigned char) c);
        }
        break;
    }
}

/* Copies the class, such as "[:digit:]", at 't->p'. */
static void
translate_class(struct translation *t)
{
    const char *end = strstr(t->p + 2, ":]");

    if (!end) {
        refuse(t, message("\"[:\" without \":]\"; expected a class such as "
                          "[:digit:]"));
        return;
    }
    fprintf(t->out, "%.*s", (int) (end + 2 - t->p), t->p);
    t->p = end + 2;
}

/* Translates the bracket expression with its '[' before 't->p'. */
static void
translate_bracket(struct translation *t)
{
    bool first = true;

    putc('[', t->out);
    if (*t->p == '^') {
        putc(*t->p++, t->out);
    }
    for (; !t->error; first = false) {
        char c = *t->p;

        if (!c) {
            refuse(t, message(
                          "\"[\" without \"]\"; expected a bracket expression "
                          "such as [0-9]"));
        } else if (c == '[' && t->p[1] == ':') {
            translate_class(t);
        } else if (c == '[' && (t->p[1] == '.' || t->p[1] == '=')) {
            refuse(t, message("collating elements are not allowed in "
                              "brackets, characters, ranges and classes "
                              "are"));
        } else if (c == ']' && !first) {
            t->p++;
            putc(c, t->out);
            return;
        } else {
            t->p++;
            if (c == '-') {
                putc(c, t->out);
            } else {
                fprintf(t->out, "\\x%02x", (unsigned char) c);
            }
        }
    }
}

/* Translates up to the end of 't->p'. */
static void
translate_all(struct translation *t)
{
    int nested = 0;
    char c;

    while (!t->error && (c = *t->p)) {
        t->p++;
        if (strchr("*+?", c)) {
            add_quantifier(t, c);
            continue;
        }
        end_quantifier(t);
        if (c == '\\') {
            translate_escape(t);
        } else if (c == '[') {
            translate_bracket(t);
        } else if (c == '{') {
            refuse(t, message("intervals and back-references; expected other "
                              "extended regular expressions"));
        } else if (c == '(' && (*t->p == '?' || *t->p == '*')) {
            refuse(t, message("\"(%c\": not the begin of a group; expected "
                              "a character, a bracket or a group",
                              *t->p));
        } else if (c == '(' && ++nested > MAX_NESTED) {
            refuse(t,
                   message("more than %d nested groups; expected at most %d",
                           MAX_NESTED, MAX_NESTED));
        } else if (c == ')' && !nested--) {
            refuse(t,
                   message("\")\" without \"(\"; expected an extended regular "
                           "expression"));
        } else {
            t->alternatives |= c == '|' && !nested;
            putc(c, t->out);
        }
    }
    end_quantifier(t);
}

/* Stores the translation of 'text' in '*resultp', which the caller must free
 * in any case.  Returns NULL or a malloc()'d message.
 *
 * The result matches at the beginning of a line only, after anything, instead
 * of being tried at each place: PCRE2 counts steps from 0 at each.  An
 * expression that begins with ".*" already has anything before it. */
static char *
translate(const char *text, char **resultp)
{
    struct translation t = { .p = text };
    char *translated;
    size_t size;

    t.out = must(open_memstream(&translated, &size));
    translate_all(&t);
    if (fclose(t.out)) {
        abort();
    }
    *resultp = message("%s(?:%s)", strncmp(text, ".*", 2) || t.alternatives
                                   ? ".*?" : "", translated);
    free(translated);
    return t.error;
}

static char *
compile(const char *text, struct log_expression *e)
{
    PCRE2_SIZE at;
    uint32_t n;
    int code;

    e->code = pcre2_compile((PCRE2_SPTR) text, PCRE2_ZERO_TERMINATED,
                            PCRE2_ANCHORED | PCRE2_DOLLAR_ENDONLY
                            | PCRE2_DOTALL
                            | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP
                            | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    if (!e->code) {
        char reason[128];

        pcre2_get_error_message(code, (PCRE2_UCHAR *) reason, sizeof reason);
        return message("%s; expected an extended regular expression", reason);
    }
    pcre2_pattern_info(e->code, PCRE2_INFO_CAPTURECOUNT, &n);
    if (!n) {
        return message("no group, one around the number is needed");
    }
    e->limits = must(pcre2_match_context_create(NULL));
    pcre2_set_match_limit(e->limits, LOG_EXPRESSION_STEPS);
    pcre2_set_depth_limit(e->limits, LOG_EXPRESSION_STEPS);
    pcre2_set_heap_limit(e->limits, LOG_EXPRESSION_KIB);
    e->data = must(pcre2_match_data_create(2, NULL));
    return NULL;
}

char *
log_expression_compile(const char *text, struct log_expression **ep)
{
    struct log_expression *e;
    char *error, *translated;

    *ep = NULL;
    if (strlen(text) > LOG_EXPRESSION_SIZE) {
        return message(
            "more than %d bytes; expected an extended regular expression "
            "of at most %d",
            LOG_EXPRESSION_SIZE, LOG_EXPRESSION_SIZE);
    }
    e = allocate(1, sizeof *e);
    error = translate(text, &translated);
    error = error ? error : compile(translated, e);
    free(translated);
    if (error) {
        log_expression_destroy(e);
    } else {
        *ep = e;
    }
    return error;
}

void
log_expression_destroy(struct log_expression *e)
{
    if (e) {
        pcre2_match_data_free(e->data);
        pcre2_match_context_free(e->limits);
        pcre2_code_free(e->code);
        free(e);
    }
}

enum log_match
log_expression_find(const struct log_expression *e, const char *line,
                    size_t n, size_t *begin, size_t *end)
{
    int rc = pcre2_match(e->code, (PCRE2_SPTR) line, n, 0, 0, e->data,
                         e->limits);
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(e->data);

    if (rc == PCRE2_ERROR_NOMATCH) {
        return LOG_NOT_FOUND;
    }
    if (rc < 0) {
        return LOG_EXHAUSTED;
    }
    if (rc == 1 || at[2] == PCRE2_UNSET) {
        return LOG_NOT_FOUND;
    }
    *begin = at[2];
    *end = at[3];
    return LOG_FOUND;
}
