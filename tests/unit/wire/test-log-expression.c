/* SPDX-License-Identifier: Apache-2.0 */

/* Expressions of tenants: they have the syntax of POSIX, and a match ends. */

#include <string.h>

#include "tests/unit/unit-test.h"
#include "wire/log-expression.h"

/* Compiles 'text', which is valid, and searches 'line'.  Stores the group. */
static enum log_match
find(const char *text, const char *line, char group[64])
{
    struct log_expression *e;
    size_t begin = 0, end = 0;
    enum log_match found;

    assert_null(log_expression_compile(text, &e));
    found = log_expression_find(e, line, strlen(line), &begin, &end);
    assert_true(begin <= end && end <= strlen(line) && end - begin < 64);
    memcpy(group, line + begin, end - begin);
    group[end - begin] = '\0';
    log_expression_destroy(e);
    return found;
}

UNIT_TEST(expressions_have_the_syntax_of_posix)
{
    static const struct {
        const char *text, *line, *group;        /* NULL: no match. */
    } cases[] = {
        { "step ([0-9]+)", "a step 12", "12" },
        { "^([0-9]+)$", "12", "12" },
        { "^([0-9]+)$", "12 ", NULL },
        { "step[ =]+([0-9]+)", "step = 7", "7" },
        { "([[:digit:]]+)[[:space:]]", "a7 ", "7" },
        { "[\\.]([0-9])", "\\1", "1" },
        { "([]a]+)", "[b]a", "]a" },
        { "([^]-]+)", "]-x", "x" },
        { "([a\\]+)", "a\\b", "a\\" },
        { "([[a]+)", "[a]", "[a" },
        { "x+?([0-9]+)", "7", "7" },
        { "([0-9]+?)", "1234", "1234" },
        { "([0-9]**)", "1234", "1234" },
        { "\\(([^)]*)\\)", "f(x)", "x" },
        { "\\<([0-9]+)\\>", "a1 22 3b", "22" },
        { "\\`a\\W(\\w+)\\'", "a b1", "b1" },
        { "(a)|b", "b", NULL },
        { "\\$([0-9]+)\\{", "$5{", "5" },
        { ".([0-9])", "\n1", "1" },
        { "((.))", "\xff", "\xff" },
        { "#(a b)", "#a b", "a b" },
        { ".*step ([0-9]+)", "step 1 step 2", "2" },
        { ".*step ([0-9]+)|(x)", "step 1 step 2", "2" },
        { "a(1)|.*(2)", "a1 2", "1" },
        { "(b+)|(c)", "abbc", "bb" },
        { "x|^(a)", "ba", NULL },
    };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        char group[64];

        assert_int_equal(find(cases[i].text, cases[i].line, group),
                         cases[i].group ? LOG_FOUND : LOG_NOT_FOUND);
        if (cases[i].group) {
            assert_string_equal(group, cases[i].group);
        }
    }
}

UNIT_TEST(what_is_not_an_expression_is_refused)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "[0-9]+", "no group" },
        { "([0-9]", "closing parenthesis" },
        { "a)(b)", "\")\" without" },
        { "(a))", "\")\" without" },
        { "(a{2})", "intervals" },
        { "(a)\\1", "intervals" },
        { "(?:a)(b)", "\"(?\": not the begin" },
        { "(?R)(b)", "\"(?\": not the begin" },
        { "(*LIMIT_MATCH=9)(a)", "\"(*\": not the begin" },
        { "(a)\\Kb", "\"\\K\" is no escape" },
        { "\\Q(a)\\E", "\"\\Q\" is no escape" },
        { "(a)\\", "a backslash at the end" },
        { "([a)", "\"[\" without \"]\"" },
        { "([[:alpha)", "\"[:\" without \":]\"" },
        { "([[:no:]])", "expected an extended regular expression" },
        { "([[.a.]])", "collating" },
        { "([z-a])", "expected an extended regular expression" },
        { "^*(a)", "expected an extended regular expression" },
    };
    struct log_expression *e;
    char text[2 * LOG_EXPRESSION_SIZE];
    char *error;

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        assert_says(log_expression_compile(cases[i].text, &e), cases[i].error);
        assert_null(e);
    }
    memset(text, '(', sizeof text);
    text[LOG_EXPRESSION_SIZE] = '\0';
    error = log_expression_compile(text, &e);
    assert_says(error, "more than 100 nested groups");
    text[LOG_EXPRESSION_SIZE] = '(';
    text[LOG_EXPRESSION_SIZE + 1] = '\0';
    assert_says(log_expression_compile(text, &e), "more than 256 bytes");
}

/* Stores 'open' 'n' times, 'middle' and 'close' 'n' times. */
static void
nest(char *text, int n, const char *open, const char *middle,
     const char *close)
{
    *text = '\0';
    for (int i = 0; i < n; i++) {
        strcat(text, open);
    }
    strcat(text, middle);
    for (int i = 0; i < n; i++) {
        strcat(text, close);
    }
}

UNIT_TEST(a_costly_expression_ends)
{
    char text[LOG_EXPRESSION_SIZE + 1], line[4096], group[64];

    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    nest(text, 69, "(", "[0-9]", "+)");
    assert_int_equal(strlen(text), 212);
    assert_int_equal(find(text, "step 1, 12 of 100", group), LOG_FOUND);
    nest(text, 60, "(", "[a-z]", "+)");
    strcat(text, "[0-9]");
    assert_int_equal(find(text, line, group), LOG_EXHAUSTED);
    assert_int_equal(find("(.|a)*([0-9])", line, group), LOG_EXHAUSTED);
    assert_int_equal(find("(a+a+)+[b-d]", line, group), LOG_EXHAUSTED);

    /* Few steps at each place of a line, but many places. */
    assert_int_equal(find("([a-z]*)(.)[0-9]", line, group), LOG_EXHAUSTED);
    assert_int_equal(find(".*step ([0-9]+)", line, group), LOG_NOT_FOUND);
    line[100] = '\0';
    assert_int_equal(find("([a-z]*)(.)[0-9]", line, group), LOG_NOT_FOUND);
}
