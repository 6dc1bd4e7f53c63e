/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_SETTINGS_H
#define SIM_SETTINGS_H 1

/* Reads the parameters of a workload, "NAME=VALUE,NAME=VALUE".
 *
 *    static const char *const kinds[] = { "ps", "ring", NULL };
 *    const struct setting settings[] = {
 *        { .name = "hosts", .integer = &n_hosts, .min = 2, .max = 64 },
 *        { .name = "load", .number = &load, .min = 0.1, .max = 10 },
 *        { .name = "placement", .integer = &placement, .names = kinds },
 *    };
 *    char *error = settings_read("generate", text, settings, 3);
 *
 * Writes to the members that the table refers to, up to the first error. */

#include <stddef.h>

struct setting {
    const char *name;
    int *integer;               /* Where to store the value, or NULL. */
    double *number;             /* Where to store it if 'integer' is NULL. */
    double min, max;            /* Range, inclusive. */
    const char *const *names;   /* Null-terminated; the integer is the index
                                 * of one of these.  NULL for a number. */
};

/* Returns NULL or a malloc()'d message that begins with 'location'.  Empty
 * text is valid. */
char *settings_read(const char *location, const char *text,
                    const struct setting[], size_t n);

#endif /* sim/workload/settings.h */
