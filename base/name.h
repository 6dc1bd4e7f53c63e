/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_NAME_H
#define BASE_NAME_H 1

/* Names that operators, clusters and frameworks choose.
 *
 * Hosts, switches, searches (cojobs) and jobs have the names that their
 * cluster gives them, up to the 253 characters of a DNS name: letters, digits
 * and '_', and behind the first one also '.' and '-'.  Users are often e-mail
 * addresses, so their names may have '@' and '+', too.
 *
 * Metrics, such as "train/loss", "val/acc@5" or "eval loss", have any UTF-8
 * text of 1 to 255 bytes as a name.
 *
 * What has a harder limit elsewhere gets a shorter form: name_shorten().
 *
 * Plain C without any library.  Thread-safe. */

#include <stdbool.h>
#include <stddef.h>

#define NAME_MAX_LEN 253
#define NAME_SIZE (NAME_MAX_LEN + 1)          /* With the null byte. */
#define METRIC_SIZE 256                       /* The same. */
#define NAME_PAIR_SIZE (2 * NAME_MAX_LEN + 2) /* "COJOB/JOB". */

/* The rules for messages. */
#define METRIC_RULE "a name of 1 to 255 bytes of UTF-8"
#define NAME_RULE                                                \
    "a name of 1 to 253 letters, digits, '.', '_' and '-' that " \
    "begins with a letter, a digit or '_'"
#define USER_NAME_RULE                                    \
    "a name of 1 to 253 letters, digits, '.', '_', '-', " \
    "'@' and '+' that begins with a letter, a digit or '_'"

bool name_is_valid(const char *name);
bool name_is_valid_user(const char *name);
bool name_is_valid_metric(const char *name);

/* Converts 'text' to a valid name: other characters become "-", or "x" where
 * they are first; a longer name is shortened.  Empty if 'text'
 * is empty. */
void name_fit(const char *text, char name[NAME_SIZE]);

/* Stores 'name' in 'out', which has room for 'size' bytes, at least 32: a name
 * that does not fit loses its end and gets "-" and 16 digits of a hash of the
 * whole name, the same on each host.  The hash is no protection:
 * two chosen names can have the same short form. */
void name_shorten(const char *name, char *out, size_t size);

#endif /* base/name.h */
