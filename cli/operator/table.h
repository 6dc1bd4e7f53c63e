/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TABLE_H
#define TABLE_H 1

/* Prints rows of text in columns of the necessary width.
 *
 *    struct table *t = table_create("host", "state", NULL);
 *    table_add(t, "%s", host);             // Cell by cell, row by row.
 *    table_add(t, "%s", state);
 *    table_print(t, stdout);
 *    table_destroy(t);
 *
 * Cells with numbers are right-aligned. */

#include <stdio.h>

struct table;

struct table *table_create(const char *heading, ...)
    __attribute__((__sentinel__));
void table_add(struct table *, const char *format, ...)
    __attribute__((__format__(printf, 2, 3)));
void table_print(const struct table *, FILE *);
void table_destroy(struct table *);

#endif /* cli/operator/table.h */
