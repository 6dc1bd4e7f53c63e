/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_EXPRESSION_H
#define LOG_EXPRESSION_H 1

/* Regular expressions of tenants, with limits.
 *
 * A tenant writes the expression and the text to which it is applied, so both
 * can be chosen to cost as much as possible.  The C library has no limit: 43
 * bytes such as "((((a+)+)+)+)+", nested 14 times, take 4 s and 80 MB, and 70
 * bytes never end.  PCRE2 counts its steps and its memory and gives up at
 * LOG_EXPRESSION_STEPS for a line and LOG_EXPRESSION_KIB.  The caller never
 * repeats a match that gives up: see log-decoder.h.
 *
 * Extended regular expressions (POSIX), as before with the C library, without
 * intervals ("a{2,3}") and back-references ("\1"), and with these escapes:
 * \w \W \s \S \b \B \< \> \` \' as in the GNU C library, \d \D for digits, and
 * any punctuation.  An expression has at most LOG_EXPRESSION_SIZE bytes.
 * A backslash in a bracket expression stands for itself.  The expression is
 * translated, so that nothing else of PCRE2's language can be reached: options
 * and assertions "(?", verbs "(*", recursion, callouts.
 *
 * Two differences to the C library remain.  Alternatives are tried from left
 * to right, and the first one with a match counts, not the longest.  Collating
 * elements "[.x.]" and "[=x=]" are refused.
 *
 *    error = log_expression_compile("step ([0-9]+)", &e);
 *    switch (log_expression_find(e, line, strlen(line), &begin, &end)) {
 *    case LOG_FOUND:
 *        ...line[begin] to line[end - 1] is the first group...
 *    }
 *
 * The caller owns expressions.  A thread at a time may use one. */

#include <stddef.h>

struct log_expression;

/* Limits of one match: steps of the matcher, which take 20 to 150 ns each, at
 * all places of the line together, and memory. */
#ifndef LOG_EXPRESSION_STEPS
#define LOG_EXPRESSION_STEPS 1000000
#endif
#define LOG_EXPRESSION_KIB 8192

#define LOG_EXPRESSION_SIZE 256

enum log_match {
    LOG_FOUND,
    LOG_NOT_FOUND,              /* No match, or the group is not part of
                                 * it. */
    LOG_EXHAUSTED,              /* A limit was reached. */
};

/* Returns NULL and stores the expression, or returns a malloc()'d message,
 * what is wrong and what is allowed, without a place. */
char *log_expression_compile(const char *text, struct log_expression **);
void log_expression_destroy(struct log_expression *);

/* Searches the 'n' bytes at 'line' and stores where the first group begins and
 * ends. */
enum log_match log_expression_find(const struct log_expression *,
                                   const char *line, size_t n, size_t *begin,
                                   size_t *end);

#endif /* wire/log-expression.h */
