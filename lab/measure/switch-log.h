/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SWITCH_LOG_H
#define LAB_SWITCH_LOG_H 1

/* Which controller a switch obeyed, from the log of the switch.
 *
 * Two controllers must never change a switch at once.  Only the switch can
 * show that: each controller may believe that it is active.  Open vSwitch can
 * log every message of its connections.  From the log follows which connection
 * was primary at each change, and whether the switch refused it.
 *
 *    free(switch_log_begin(ctl));
 *    ...
 *    error = switch_log_read(file, &counts);
 *
 * Plain data; the caller frees messages. */

#include <stdio.h>

struct switch_log_counts {
    unsigned int roles;         /* Number of times that a connection became
                                 * primary. */
    unsigned int backwards;     /* Part of 'roles': with an older generation
                                 * than the previous primary. */
    unsigned int changes;       /* Messages that change flows, groups or
                                 * meters. */
    unsigned int refused;       /* Refused role requests and changes. */
    unsigned int foreign;       /* Accepted changes of connections that were
                                 * not primary. */
};

/* Enables logging of messages in the switch with control socket 'ctl', until
 * the switch ends. */
char *switch_log_begin(const char *ctl);

/* Reads the log, which is the standard error of the switch. */
char *switch_log_read(const char *file, struct switch_log_counts *);
void switch_log_parse(FILE *, struct switch_log_counts *);

#endif /* lab/measure/switch-log.h */
