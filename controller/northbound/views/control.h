/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROL_H
#define CONTROL_H 1

/* The control socket of the controller: views and commands.
 *
 * docs/interfaces.md, "Controller's unixctl", documents the commands; all
 * replies are JSON.  Views only read; northbound/rest offers the same.  Main
 * thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/model/overrides.h"

struct decision_log;
struct fair_comparison;
struct history;
struct json;

/* The modules of a controller. */
struct controller {
    struct cluster *cluster;
    struct decision_log *log;
    struct history *history;    /* NULL if none is kept. */
    struct overrides overrides;
    bool observe;               /* Option --observe: hosts get no order. */
    struct decide *decide;
    struct fair_comparison *fair;
    struct intent_db *intent;
    struct hosts_db *hosts;
    struct telemetry *telemetry;
    struct switches *switches;
    struct policy_file *policy;
    bool policy_changed;        /* Set by "policy/reload". */
    bool exiting;               /* Set by "exit". */
};

struct control_view {
    const char *name;           /* In REST paths; unique. */
    const char *command;        /* Command of the control socket. */
    struct json *(*build)(const struct controller *);
};

extern const struct control_view control_views[];
extern const size_t n_control_views;

/* Returns the view with 'name' or command 'name', or NULL. */
const struct control_view *control_find_view(const char *name);

/* Functions that return "char *" return NULL and store the reply in '*json' if
 * successful, otherwise an error message that the caller frees. */

/* Explains the rank of 'job', "COJOB/JOB". */
char *control_explain(const struct controller *, const char *job,
                      struct json **json);

/* Returns true while orders are computed but not sent to hosts. */
bool control_observes(const struct controller *);

/* Reads rows of 'kind' from the history, from epoch ms 'since' on; 'limit' may
 * be NULL. */
char *control_history(const struct controller *, const char *kind,
                      const char *since, const char *limit,
                      struct json **json);

/* 'ctl' must outlive the unixctl server. */
void control_register(struct controller *ctl);

#endif /* controller/northbound/views/control.h */
