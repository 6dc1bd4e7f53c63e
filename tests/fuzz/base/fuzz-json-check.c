/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the JSON checker with policies, scenarios and searches from untrusted
 * sources: for any text every call returns, and the result is NULL or a
 * message of one line. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "tests/fuzz/must.h"

static const char *const names[] = { "one", "two", NULL };

static void
read_place(const struct json_at *at, int depth)
{
    const struct json_at *list = json_array_or_null(at, "list", 0, 16);

    free(json_string_or(at, "string", "default"));
    free(json_has(at, "name") ? json_name(at, "name") : NULL);
    json_number_or(at, "number", -1e9, 1e9, 0);
    json_integer_or(at, "integer", INT64_MIN, INT64_MAX, 0);
    json_bool_or(at, "bool", false);
    json_enum_or(at, "enum", names, 0);
    if (json_has(at, "rate")) {
        json_rate(at, "rate");
    }
    for (size_t i = 0; i < json_n(list); i++) {
        json_at_integer(json_element(list, i), 0, 63);
    }
    if (depth < 8) {
        const struct json_at *inner = json_object_or_null(at, "object");

        if (inner) {
            read_place(inner, depth + 1);
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct json_check *jc;
    char *error;

    memcpy(text, data, size);
    text[size] = '\0';
    jc = json_check_open("f", text);
    read_place(json_check_top(jc), 0);
    error = json_check_close(jc);
    if (error && (strncmp(error, "f:", 2) || strchr(error, '\n'))) {
        abort();
    }
    free(error);
    free(text);
    return 0;
}
