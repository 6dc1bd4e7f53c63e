/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SWITCH_LOG_H
#define LAB_SWITCH_LOG_H 1

/* Whose changes a switch has taken, by the switch's own account.
 *
 *
 * Motivation
 * ==========
 *
 * That two controllers never command a switch is for the switch to say: each
 * of them may believe what it likes.  Open vSwitch logs each message of its
 * connections if it is told to, and from these it follows who was primary when
 * a change came, and whether it was refused.
 *
 *
 * Usage
 * =====
 *
 *    free(switch_log_begin(ctl));
 *    ...
 *    error = switch_log_read(file, &counts);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data; the caller frees messages. */

#include <stdio.h>

struct switch_log_counts {
    unsigned int roles;         /* Times that somebody became primary. */
    unsigned int backwards;     /* Of these, after a newer generation had. */
    unsigned int changes;       /* Messages that changed something. */
    unsigned int refused;       /* Requests for the role, and changes, that the
                                 * switch has refused. */
    unsigned int foreign;       /* Changes that it has taken from somebody who
                                 * was not primary. */
};

/* Lets the switch with control socket 'ctl' log, until it ends. */
char *switch_log_begin(const char *ctl);

/* Reads the log, the program's standard error stream. */
char *switch_log_read(const char *file, struct switch_log_counts *);
void switch_log_parse(FILE *, struct switch_log_counts *);

#endif /* lab/measure/switch-log.h */
