/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json-check.h"
#include "base/similar.h"
#include "tests/unit/unit-test.h"

static const char *const colours[] = { "red", "green", NULL };

/* What a reader would do with
 * {"name", "n", "x"?, "rate"?, "colour"?, "on"?, "list"?, "inner"?}. */
static char *
read_example(const char *text)
{
    struct json_check *jc = json_check_open("f.json", text);
    const struct json_at *top = json_check_top(jc);
    const struct json_at *list, *inner;

    free(json_name(top, "name"));
    json_integer(top, "n", 1, 8);
    json_number_or(top, "x", 0, 1, 0.5);
    if (json_has(top, "rate")) {
        json_rate(top, "rate");
    }
    json_enum_or(top, "colour", colours, 1);
    json_bool_or(top, "on", true);
    list = json_array_or_null(top, "list", 1, 3);
    for (size_t i = 0; i < json_n(list); i++) {
        if (json_at_integer(json_element(list, i), 0, 9) == 7) {
            json_fail(json_element(list, i), NULL, "7 is taken");
        }
    }
    inner = json_object_or_null(top, "inner");
    free(json_string_or(inner, "s", NULL));
    json_ignore(top, "$schema");
    return json_check_close(jc);
}

static const struct {
    const char *text;
    const char *error;
} mistakes[] = {
    { "{\"name\": \"a\",\n\"n\": ,}", "f.json:2: not valid JSON near \",}\"" },
    { "[1]", "f.json: /: [1] is not an object" },
    { "{\"n\": 1}", "f.json: /name: required member is missing" },
    { "{\"name\": 3, \"n\": 1}", "f.json: /name: 3 is not a string" },
    { "{\"name\": \"a b\", \"n\": 1}",
      "f.json: /name: \"a b\" is not a name of 1 to 253 letters, digits, '.', "
      "'_' and '-' that begins with a letter, a digit or '_'" },
    { "{\"name\": \"a\", \"n\": 9}",
      "f.json: /n: 9 is not an integer from 1 to 8" },
    { "{\"name\": \"a\", \"n\": 1e400}",
      "f.json: /n: a number beyond all bounds is not an integer from 1 to 8" },
    { "{\"name\": \"a\", \"n\": 1.5}",
      "f.json: /n: 1.5 is not an integer from 1 to 8" },
    { "{\"name\": \"a\", \"n\": 1, \"x\": \"big\"}",
      "f.json: /x: \"big\" is not a number from 0 to 1" },
    { "{\"name\": \"a\", \"n\": 1, \"rate\": \"0Mbit\"}",
      "f.json: /rate: \"0Mbit\" is not a rate from \"1kbit\" to "
      "\"10000Gbit\", such as \"50Mbit\"" },
    { "{\"name\": \"a\", \"n\": 1, \"colour\": \"blue\"}",
      "f.json: /colour: \"blue\" is not one of \"red\", \"green\"" },
    { "{\"name\": \"a\", \"n\": 1, \"on\": 1}",
      "f.json: /on: 1 is not true or false" },
    { "{\"name\": \"a\", \"n\": 1, \"list\": []}",
      "f.json: /list: 0 elements; expected 1 to 3" },
    { "{\"name\": \"a\", \"n\": 1, \"list\": [1, 10]}",
      "f.json: /list/1: 10 is not an integer from 0 to 9" },
    { "{\"name\": \"a\", \"n\": 1, \"list\": [1, 2, 7]}",
      "f.json: /list/2: 7 is taken" },
    { "{\"name\": \"a\", \"n\": 1, \"inner\": 1}",
      "f.json: /inner: 1 is not an object" },
    { "{\"name\": \"a\", \"n\": 1, \"inner\": {\"t\": 1}}",
      "f.json: /inner/t: unknown member" },
    { "{\"name\": \"a\", \"n\": 1, \"clour\": \"red\"}",
      "f.json: /clour: unknown member, did you mean \"colour\"" },
    { "{\"name\": \"a\", \"nmae\": 2, \"n\": 1}",
      "f.json: /nmae: unknown member" },
    { "{\"name\": \"a\", \"n\": 1, \"n\": 2}",
      "f.json: /n: stands here twice" },
    { "{\"name\": \"a\", \"n\": 1, \"inner\": {\"s\": \"a\", \"s\": 1}}",
      "f.json: /inner/s: stands here twice" },
    { "{\"name\": \"a\", \"n\": 1, \"a/b~\\n\\u001b\": 2}",
      "f.json: /a~1b~0\\u000a\\u001b: unknown member" },
    { "{\"name\": \"a\", \"n\": \n", "f.json:2: not valid JSON near "
                                     "the end of the line" },
    { "{\"name\": \"a\", \"n\": 1} x", "f.json:1: not valid JSON near \"x\"" },
};

UNIT_TEST(names_the_member_at_fault)
{
    for (size_t i = 0; i < N_ELEMENTS(mistakes); i++) {
        assert_is(read_example(mistakes[i].text), mistakes[i].error);
    }
}

UNIT_TEST(accepts_all_members)
{
    assert_null(read_example("{\"name\": \"a-1._\", \"n\": 8, \"x\": 1, "
                             "\"rate\": \"1.5Gbit\", \"colour\": \"red\", "
                             "\"on\": false, \"list\": [0, 9], "
                             "\"inner\": {\"s\": \"t\"}, \"$schema\": 0}"));
}

UNIT_TEST(reads_values)
{
    struct json_check *jc = json_check_open(
        "f.json", "{\"r\": \"1.5Gbit\", \"e\": \"green\", \"s\": \"x\","
                  " \"o\": {}, \"a\": [\"red\", \"green\"]}");
    const struct json_at *top = json_check_top(jc);
    const struct json_at *a;

    assert_int_equal(json_rate(top, "r"), 1500000000);
    assert_int_equal(json_enum(top, "e", colours), 1);
    assert_int_equal(json_integer_or(top, "i", 0, 9, 4), 4);
    assert_null(json_string_or(top, "none", NULL));
    assert_false(json_has_object(top, "s"));
    assert_false(json_has_object(top, "none"));
    assert_true(json_has_object(top, "o"));
    json_ignore(top, "o");
    assert_false(json_has_array(top, "o"));
    assert_false(json_has_array(top, "none"));
    assert_true(json_has_array(top, "a"));
    a = json_array(top, "a", 2, 2);
    assert_int_equal(json_at_enum(json_element(a, 1), colours), 1);
    assert_is(json_string(top, "s"), "x");
    assert_true(json_ok(jc));
    assert_null(json_check_close(jc));
}

UNIT_TEST(survives_what_is_missing)
{
    struct json_check *jc = json_check_open("f.json", "{}");
    const struct json_at *none = json_object(json_check_top(jc), "o");

    assert_null(none);
    free(json_string(none, "s"));
    assert_int_equal(json_integer(none, "i", 3, 5), 3);
    assert_int_equal(json_n(json_array(none, "a", 0, 1)), 0);
    assert_null(json_element(none, 0));
    assert_false(json_ok(jc));
    assert_is(json_check_close(jc), "f.json: /o: required member is missing");
}

/* A reader of {"a": 0..9, "map": {NAME: 0..9}}. */
static struct json_check *
read_map(const char *text, int *sump)
{
    struct json_check *jc = json_check_open("f.json", text);
    const struct json_at *top = json_check_top(jc);
    const struct json_at *map = json_object_or_null(top, "map");

    *sump = json_integer_or(top, "a", 0, 9, 0);
    for (size_t i = 0; i < json_n(map); i++) {
        const char *name;
        const struct json_at *at = json_member(map, i, &name);

        *sump += json_at_integer(at, 0, 9) * strlen(name);
    }
    return jc;
}

UNIT_TEST(reads_members_whose_names_are_the_writers)
{
    struct json_check *jc;
    const char *name = "untouched";
    char *error;
    int sum;

    jc = read_map("{\"map\": {\"ab\": 3, \"c\": 4}}", &sum);
    assert_int_equal(sum, 10);
    assert_null(json_member(json_check_top(jc), 1, &name));
    assert_null(json_member(NULL, 0, &name));
    assert_string_equal(name, "untouched");
    assert_null(json_check_close(jc));

    jc = read_map("{\"map\": {\"a b\": 3}}", &sum);
    error = json_check_close(jc);
    assert_is(error, "f.json: /map/a b: its name is not "
                     "a name of 1 to 253 letters, digits, '.', '_' and '-' "
                     "that begins with a letter, a digit or '_'");
}

UNIT_TEST(tells_all_errors_to_whom_asks)
{
    char *errors;
    int sum;

    errors = json_check_close_all(read_map(
        "{\"a\": 10, \"b\": 1, \"map\": {\"m\": true}, \"a\": 3}", &sum));
    assert_is(errors, "f.json: /a: stands here twice\n"
                      "f.json: /a: 10 is not an integer from 0 to 9\n"
                      "f.json: /map/m: true is not an integer from 0 to 9\n"
                      "f.json: /b: unknown member");
    assert_null(json_check_close_all(read_map("{\"a\": 1}", &sum)));
    errors = json_check_close_all(read_map("{", &sum));
    assert_is(errors, "f.json:1: not valid JSON near the end of the "
                      "line");
}

UNIT_TEST(keeps_no_more_errors_than_a_person_reads)
{
    char text[1024] = "{\"map\": {", *errors;
    size_t n_lines = 1;
    int sum;

    for (int i = 0; i < 30; i++) {
        snprintf(text + strlen(text), 32, "%s\"m%d\": 10", i ? ", " : "", i);
    }
    errors = json_check_close_all(read_map(strcat(text, "}}"), &sum));
    for (const char *s = errors; *s; s++) {
        n_lines += *s == '\n';
    }
    assert_int_equal(n_lines, 20);
    free(errors);
}

UNIT_TEST(says_why_a_file_is_not_read)
{
    char *text, *error = json_read_file("/no/such/file", &text);

    assert_null(text);
    assert_is(error, "/no/such/file: No such file or directory");
}

UNIT_TEST(refuses_a_file_with_a_nul)
{
    char name[] = "/tmp/test-json-check-XXXXXX";
    int fd = mkstemp(name);
    char *text, *error, *expected;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{}\0{", 4), 4);
    close(fd);
    error = json_read_file(name, &text);
    unlink(name);
    assert_null(text);
    assert_true(
        asprintf(&expected, "%s: byte 2 is 0; expected only text", name) > 0);
    assert_is(error, expected);
    free(expected);
}

/* A byte order mark is skipped, and nothing that only begins as one. */
UNIT_TEST(reads_a_file_without_its_byte_order_mark)
{
    static const struct {
        const char *file, *text;
    } cases[] = {
        { "\xef\xbb\xbf{}", "{}" },
        { "\xef\xbb\xbf", "" },
        { "\xef\xbb\xbf\xef\xbb\xbf{}", "\xef\xbb\xbf{}" },
        { "\xef\xbb", "\xef\xbb" },
        { "\xef\xbd\x9e", "\xef\xbd\x9e" },
        { "\xef", "\xef" },
        { "", "" },
        { "{\"a\": 1}\r\n", "{\"a\": 1}\r\n" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[] = "/tmp/test-json-check-XXXXXX";
        int fd = mkstemp(name);
        char *text;

        assert_true(fd >= 0);
        assert_int_equal(write(fd, cases[i].file, strlen(cases[i].file)),
                         strlen(cases[i].file));
        close(fd);
        assert_null(json_read_file(name, &text));
        unlink(name);
        assert_string_equal(text, cases[i].text);
        free(text);
    }
}

UNIT_TEST(finds_the_name_that_was_meant)
{
    static const char *const names[] = { "order", "levels", "lease_ms", "n",
                                         NULL };
    char longer[100] = { 0 };

    assert_string_equal(similar_name("ordre", names), "order");
    assert_string_equal(similar_name("level", names), "levels");
    assert_string_equal(similar_name("leasems", names), "lease_ms");
    assert_null(similar_name("m", names));
    assert_null(similar_name("orchard", names));
    assert_null(similar_name("", names));
    memset(longer, 'n', sizeof longer - 1);
    assert_null(similar_name(longer, names));
    assert_int_equal(similar_distance("abcd", "badc"), 2);
    assert_int_equal(similar_distance("", "abc"), 3);
}
