/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROLLER_H
#define CONTROLLER_H 1

/* The modules of a controller, which its main loop runs in turn.
 *
 * Only code that shows or changes several of them gets this struct: the main
 * loop, the commands of the control socket, the routes of REST, and the
 * history.  All other code gets the modules that it reads.
 *
 * Main thread only. */

#include <stdbool.h>

#include "controller/model/overrides.h"
#include "controller/model/stage-start.h"

struct cluster;
struct controllers;
struct database_folder;
struct database_members;
struct decide;
struct decision_log;
struct history;
struct hosts_db;
struct intent_db;
struct policy_file;
struct switches;
struct telemetry;

struct controller {
    struct cluster *cluster;
    struct decision_log *log;
    struct history *history; /* NULL if none is kept. */
    struct overrides overrides;
    struct stage_starts starts;
    struct decide *decide;
    struct intent_db *intent;
    struct controllers *controllers; /* Controllers that share the database. */
    struct hosts_db *hosts;
    struct telemetry *telemetry;
    struct switches *switches;
    struct policy_file *policy;
    struct database_folder *folder; /* Watches the databases' files. */

    /* Members of the databases, NULL if the remotes are fixed by options. */
    struct database_members *intent_members, *hosts_members;
    bool policy_changed; /* Set by "policy/reload". */
    bool exiting;        /* Set by "exit". */
};

#endif /* controller/controller.h */
