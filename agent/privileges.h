/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PRIVILEGES_H
#define PRIVILEGES_H 1

/* Capabilities of the agent.
 *
 *
 * Motivation
 * ==========
 *
 * The agent reads data of tenants and is usually started by root.  It needs
 * few of root's capabilities, for the purposes in 'privileges'.  It drops the
 * others permanently before it reads anything, also for programs that it could
 * start.
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
 * Capabilities belong to a thread: call privileges_drop() before others are
 * started. */

#include <stdbool.h>
#include <stddef.h>

struct privilege {
    int capability;             /* CAP_*. */
    const char *name;           /* Name as in capabilities(7). */
    const char *purpose;        /* Purpose: what does not work without it. */
};

#define N_PRIVILEGES 5
extern const struct privilege privileges[N_PRIVILEGES];

bool privilege_is_held(const struct privilege *);
int privileges_drop(void);

#endif /* agent/privileges.h */
