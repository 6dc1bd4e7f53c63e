/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JSON_CHECK_H
#define JSON_CHECK_H 1

/* Reads JSON that a person wrote and reports precise errors.
 *
 * Policies, scenarios and searches are written by hand.  A misspelled member
 * that is silently ignored costs an operator a day, so each member must be
 * read by name, and unread members are errors.  All messages have one form,
 * "FILE: /json/pointer: what was found and what is allowed".
 *
 * The reader reads members one after the other without checking for errors.
 * After the first error every call returns a valid default.
 *
 *    struct json_check *jc = json_check_open(name, text);
 *    const struct json_at *top = json_check_top(jc);
 *
 *    policy->name = json_string(top, "name");             // Required.
 *    policy->lease = json_integer_or(top, "lease_ms", 100, 600000, 10000);
 *    levels = json_array(top, "levels", 1, 8);
 *    for (size_t i = 0; i < json_n(levels); i++) {
 *        policy->dscp[i] = json_at_integer(json_element(levels, i), 0, 63);
 *    }
 *    if (a_rule_between_members_is_broken) {
 *        json_fail(top, "levels", "%d levels, at most %d are allowed", n, 8);
 *    }
 *    error = json_check_close(jc);       // First error, or unread member.
 *
 * A caller that allocates by values that it has read must check json_ok()
 * first.  A rule between members is not checked if json_n_errors() grew while
 * they were read.
 *
 * A 'struct json_at' is an item of the text and lives until
 * json_check_close().  Every function accepts a null item and then does
 * nothing.  Strings returned are copies that the caller frees. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libopenvswitch has functions of these names (openvswitch/json.h).  Programs
 * link both, so these functions have other names for the linker.  A file
 * that includes both headers includes this one last. */
#define json_array json_check_array
#define json_integer json_check_integer
#define json_object json_check_object
#define json_string json_check_string

struct json_check;
struct json_at;

/* Messages begin with 'name', usually the file name.  Never returns NULL.
 * If the text is not JSON, or its top is not an object, that is the first
 * error. */
struct json_check *json_check_open(const char *name, const char *text);
const struct json_at *json_check_top(struct json_check *);
bool json_ok(const struct json_check *);
size_t json_n_errors(const struct json_check *);
char *json_check_close(struct json_check *);
char *json_check_close_all(struct json_check *);

/* Reads the whole of 'file' into '*textp', which the caller frees, without a
 * byte order mark, if it has at most 64 MiB.  Returns NULL or a message. */
char *json_read_file(const char *file, char **textp);

/* Members of an object.  Without "_or" a missing member is an error.
 * "json_string_or" takes NULL as a default; others return copies. */
bool json_has(const struct json_at *, const char *member);
bool json_has_object(const struct json_at *, const char *member);
bool json_has_array(const struct json_at *, const char *member);
char *json_string(const struct json_at *, const char *member);
char *json_string_or(const struct json_at *, const char *member,
                     const char *deflt);
double json_number(const struct json_at *, const char *member,
                   double min, double max);
double json_number_or(const struct json_at *, const char *member,
                      double min, double max, double deflt);
int64_t json_integer(const struct json_at *, const char *member,
                     int64_t min, int64_t max);
int64_t json_integer_or(const struct json_at *, const char *member,
                        int64_t min, int64_t max, int64_t deflt);
bool json_bool_or(const struct json_at *, const char *member, bool deflt);
int json_enum(const struct json_at *, const char *member,
              const char *const names[]);       /* Null-terminated. */
int json_enum_or(const struct json_at *, const char *member,
                 const char *const names[], int deflt);

/* A string such as "50Mbit" or "1.5Gbit" (kbit, Mbit, Gbit: powers of 1,000)
 * in bits per second, 1 kbit to 10 Tbit. */
int64_t json_rate(const struct json_at *, const char *member);

/* Returns the rate of such a text, 0 if it is invalid. */
int64_t json_rate_parse(const char *text);
#define JSON_RATE_RULE "a rate from \"1kbit\" to \"10000Gbit\", such as " \
                       "\"50Mbit\""

/* A name of a cojob, a job or a host (base/name.h). */
char *json_name(const struct json_at *, const char *member);

/* Objects and arrays inside.  The "_or_null" functions return NULL if there is
 * no such member.  An array must have 'min_n' to 'max_n' elements. */
const struct json_at *json_object(const struct json_at *, const char *member);
const struct json_at *json_object_or_null(const struct json_at *,
                                          const char *member);
const struct json_at *json_array(const struct json_at *, const char *member,
                                 size_t min_n, size_t max_n);
const struct json_at *json_array_or_null(const struct json_at *,
                                         const char *member,
                                         size_t min_n, size_t max_n);
size_t json_n(const struct json_at *);          /* Elements or members. */
const struct json_at *json_element(const struct json_at *, size_t index);

/* An element that is an object; another type is an error. */
const struct json_at *json_element_object(const struct json_at *,
                                          size_t index);

/* Returns the member of an object by its index from 0, for objects with names
 * that the writer chooses.  If 'index' is too large, '*namep' does not change.
 * The name must be one that json_name() allows. */
const struct json_at *json_member(const struct json_at *, size_t index,
                                  const char **namep);

/* The value of an item itself. */
char *json_at_string(const struct json_at *);
char *json_at_name(const struct json_at *);
double json_at_number(const struct json_at *, double min, double max);
int64_t json_at_integer(const struct json_at *, int64_t min, int64_t max);
int json_at_enum(const struct json_at *, const char *const names[]);

/* Accepts 'member', with all that it has, without reading it: "$schema",
 * "description". */
void json_ignore(const struct json_at *, const char *member);

/* Reports an error at 'member' of the item, or at the item itself if 'member'
 * is null.  json_check_close() returns the first error of a text. */
void json_fail(const struct json_at *, const char *member, const char *format,
               ...) __attribute__((__format__(__printf__, 3, 4)));

#endif /* base/json-check.h */
