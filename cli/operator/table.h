/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TABLE_H
#define TABLE_H 1

/* Prints rows of text in columns of the necessary width.
 *
 *    struct table *t = table_create("host\tstate");
 *    table_add(t, "%s\t%s", host, state);        // Or cell by cell.
 *    table_finish(t);
 *
 * Cells are separated by tabs.  Cells with numbers are right-aligned. */

struct ds;
struct table;

struct table *table_create(const char *headings);
void table_add(struct table *, const char *format, ...)
    __attribute__((__format__(printf, 2, 3)));

/* Prints the table to standard output, or appends it to 'out', and destroys
 * it. */
void table_finish(struct table *);
void table_put(struct table *, struct ds *out);

#endif /* cli/operator/table.h */
