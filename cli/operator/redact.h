/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REDACT_H
#define REDACT_H 1

/* Removes secrets from text: for "stagecoach support".
 *
 * There are two passes.  The first removes private keys in PEM, passwords in
 * URLs, JSON web tokens, and each value with a name like "password"
 * ("API_TOKEN=x", "password: x", {"secret": "x"}, "--token x"), and remembers
 * these values.  The second removes them wherever else they occur, for example
 * a password of a configuration file in a log.  So all texts pass the first
 * before any passes the second:
 *
 *    struct redactor r;
 *
 *    redactor_init(&r);
 *    a = redact_names(&r, text_a, &n);
 *    b = redact_names(&r, text_b, &n);
 *    a = redact_values(&r, a, &n);
 *    b = redact_values(&r, b, &n);
 *    redactor_uninit(&r);
 *
 * The absolute path of a file stays, because options name keys by it.  A
 * secret without such a name, in no such form, is not recognised. */

#include <stddef.h>

#include "sset.h"

struct redactor {
    struct sset secrets;        /* Values removed by their names. */
};

void redactor_init(struct redactor *);
void redactor_uninit(struct redactor *);

/* Both free 'text', return another one, and add the number of removals to
 * '*n'. */
char *redact_names(struct redactor *, char *text, size_t *n);
char *redact_values(const struct redactor *, char *text, size_t *n);

#endif /* cli/operator/redact.h */
