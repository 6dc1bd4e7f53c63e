/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PRIVILEGES_H
#define PRIVILEGES_H 1

/* What the agent may do.
 *
 *
 * Motivation
 * ==========
 *
 * The agent reads what tenants write and is usually started by root.  It needs
 * few of root's capabilities, a reason for each; the others go before it reads
 * anything, for good: also from what it could start.
 *
 *
 * Usage
 * =====
 *
 *    error = privileges_drop();          // Once everything is open.
 *    for (size_t i = 0; i < N_PRIVILEGES; i++) {
 *        if (!privilege_is_held(&privileges[i])) {
 *            ...privileges[i].purpose will not work...
 *        }
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Capabilities are a thread's: to be called before others are started. */

#include <stdbool.h>
#include <stddef.h>

struct privilege {
    int capability;             /* CAP_*. */
    const char *name;           /* As capabilities(7) calls it. */
    const char *purpose;        /* What does not work without it. */
};

#define N_PRIVILEGES 5
extern const struct privilege privileges[N_PRIVILEGES];

bool privilege_is_held(const struct privilege *);
int privileges_drop(void);

#endif /* agent/privileges.h */
