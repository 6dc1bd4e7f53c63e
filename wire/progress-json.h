/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROGRESS_JSON_H
#define PROGRESS_JSON_H 1

/* Reads progress in JSON: datagrams, bodies of REST, lines of logs.
 *
 * Training programs report what they have.  Python writes NaN and Infinity,
 * which are no JSON; a metric may be missing, null, nested, or have a name
 * that is not allowed here.  None of this discards a report: its iteration
 * counts, there is no value, and 'left_out' is true, for a counter.  Other
 * JSON (json-check.h) stays strict.
 *
 *    top = progress_json_parse(text, size);
 *    error = progress_json_read(top, &progress);
 *    cJSON_Delete(top);
 *
 * No state.  Thread-safe. */

#include <stddef.h>

#include <cjson/cJSON.h>

struct progress;

/* Returns JSON in which NaN, Infinity and -Infinity are empty texts, or NULL
 * if 'text' is not JSON. */
cJSON *progress_json_parse(const char *text, size_t size);

/* Reads the members "iteration" (required, unless there is a "control_port" or
 * "sent"), "received", "posted", "counted", "stage", "time", "metric" and
 * "value". Returns NULL or a malloc()'d message that begins with the JSON
 * pointer of a member. */
char *progress_json_read(const cJSON *top, struct progress *);

#endif /* wire/progress-json.h */
