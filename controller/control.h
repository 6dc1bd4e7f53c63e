/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROL_H
#define CONTROL_H 1

/* What the controller answers on its control socket.
 *
 * docs/interfaces.md, "Controller's unixctl", has the commands; all answers
 * are JSON.  Main thread only. */

#include <stdbool.h>

/* The rooms of a controller. */
struct controller {
    struct cluster *cluster;
    struct decide *decide;
    struct intent_db *intent;
    struct hosts_db *hosts;
    struct telemetry *telemetry;
    struct switches *switches;
    struct policy_file *policy;
    bool policy_changed;        /* By "policy/reload". */
    bool exiting;               /* By "exit". */
};

/* 'ctl' must live as long as the program answers. */
void control_register(struct controller *ctl);

#endif /* controller/control.h */
