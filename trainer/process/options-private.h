/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OPTIONS_PRIVATE_H
#define OPTIONS_PRIVATE_H 1

/* What options-table.c, which has a row for each option and prints them as
 * help, and options.c, which reads a command line by them, share. */

#include <stddef.h>

#include "trainer/process/options.h"

enum kind {
    STRING,
    WORD,                       /* One of those that 'value' has. */
    INTEGER,
    REAL,
    SHAPE,
    IMAGE,
    SERVER,                     /* May be repeated. */
    FLAG,                       /* Has no value. */
    SYNC,
};

struct row {
    const char *name;
    int roles;                  /* Whose option it is. */
    enum kind kind;
    size_t offset;              /* In struct options. */
    double min, max;            /* Of a number. */
    const char *deflt;          /* As a person would write it; NULL: none. */
    const char *value;          /* What help calls the value. */
    const char *help;
};

/* In the order of --help; behind the last one is one without a name. */
extern const struct row options_rows[];

/* Returns the row whose name is the 'length' bytes at 'name', or NULL. */
const struct row *options_find_row(const char *name, size_t length);

/* Returns 0 if there is no role 'name'. */
enum role options_find_role(const char *name);

#endif /* trainer/process/options-private.h */
