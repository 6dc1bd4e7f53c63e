/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REDACT_H
#define REDACT_H 1

/* Removes secrets from text: for "stagecoach support".
 *
 * There are two passes.  The first removes private keys in PEM, passwords in
 * URLs, JSON web tokens, and each value with a name like "password"
 * ("API_TOKEN=x", "password: x", {"secret": "x"}, "--token x"), and adds these
 * values to a set.  The second removes them wherever else they occur, for
 * example a password of a configuration file in a log.  So all texts pass the
 * first before any passes the second:
 *
 *    struct sset secrets = SSET_INITIALIZER(&secrets);
 *
 *    a = redact_names(text_a, &secrets, &n);
 *    b = redact_names(text_b, &secrets, &n);
 *    a = redact_values(a, &secrets, &n);
 *    b = redact_values(b, &secrets, &n);
 *    sset_destroy(&secrets);
 *
 * The absolute path of a file stays, because options name keys by it.  A
 * secret without such a name, in no such form, is not recognised. */

#include <stddef.h>

#include "sset.h"

/* Both free 'text', return another one, and add the number of removals to
 * '*n'. */
char *redact_names(char *text, struct sset *secrets, size_t *n);
char *redact_values(char *text, const struct sset *secrets, size_t *n);

#endif /* cli/operator/redact.h */
