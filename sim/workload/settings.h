/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_SETTINGS_H
#define SIM_SETTINGS_H 1

/* Reads "NAME=VALUE,NAME=VALUE", how a workload shall be made.
 *
 *
 * Usage
 * =====
 *
 *    static const char *const kinds[] = { "ps", "ring", NULL };
 *    const struct setting settings[] = {
 *        { .name = "hosts", .integer = &n_hosts, .min = 2, .max = 64 },
 *        { .name = "load", .number = &load, .min = 0.1, .max = 10 },
 *        { .name = "place", .integer = &place, .names = kinds },
 *    };
 *    char *error = settings_read("generate", text, settings, 3);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Writes where the table points, as far as the text was right. */

#include <stddef.h>

struct setting {
    const char *name;
    int *integer;               /* Where it goes: one of these two. */
    double *number;
    double min, max;            /* Allowed, both included. */
    const char *const *names;   /* Null-terminated: the integer is the index
                                 * of one of these.  NULL if it is a number. */
};

/* Returns NULL or a malloc()'d message that begins with 'place'.  Empty text
 * is fine. */
char *settings_read(const char *place, const char *text,
                    const struct setting[], size_t n);

#endif /* sim/workload/settings.h */
