/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes expressions and the logs to which they are applied.  The first two
 * lines of the input are the expressions of iteration and metric, and the rest
 * is the log. */

#include <config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/fuzz/agent/fuzz-log-decoder.h"
#include "wire/log-expression.h"

/* Returns the first line of the text at '*datap' and moves that behind it. */
static char *
take_line(const uint8_t **datap, size_t *sizep)
{
    const uint8_t *newline = *sizep ? memchr(*datap, '\n', *sizep) : NULL;
    size_t n = newline ? newline - *datap : *sizep;
    char *line = copy_text(*datap, n);

    n += newline != NULL;
    *datap += n;
    *sizep -= n;
    return line;
}

/* Searches the whole text, which may have any bytes.  Returns false if the
 * expression is refused. */
static bool
search(const char *text, const uint8_t *data, size_t size)
{
    struct log_expression *e;
    char *error = log_expression_compile(text, &e);
    size_t begin, end;
    char *copy;

    must(!error == !!e);
    if (error) {
        must(*error && !strchr(error, '\n'));
        free(error);
        return false;
    }
    copy = copy_bytes(data, size);
    if (log_expression_find(e, copy, size, &begin, &end) == LOG_FOUND) {
        must(begin <= end && end <= size);
    }
    free(copy);
    log_expression_destroy(e);
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *iteration = take_line(&data, &size);
    char *metric = take_line(&data, &size);
    bool good = search(iteration, data, size);
    char text[2 * LOG_EXPRESSION_SIZE + 64];
    struct log_spec spec;
    char *error;

    if (search(metric, data, size) && good) {
        snprintf(text, sizeof text, "regex:/x,iteration=%s,metric=%s",
                 iteration, metric);
        /* An expression may contain ",stage=", for example. */
        error = log_spec_parse("spec", text, &spec);
        if (error) {
            free(error);
        } else {
            log_spec_uninit(&spec);
            fuzz_log(text, data, size);
        }
    }
    free(iteration);
    free(metric);
    return 0;
}
