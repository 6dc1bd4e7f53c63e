/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROL_H
#define CONTROL_H 1

/* What the controller answers on its control socket.
 *
 * docs/interfaces.md, "Controller's unixctl", has the commands; all answers
 * are JSON.  What can only be read is a table of views, for which others
 * answer too: northbound/rest/rest.h.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/model/overrides.h"

struct decision_log;
struct fair_comparison;
struct history;
struct json;

/* The rooms of a controller. */
struct controller {
    struct cluster *cluster;
    struct decision_log *log;
    struct history *history;    /* NULL: none is kept. */
    struct overrides overrides;
    bool observe;               /* For as long as the program runs. */
    struct decide *decide;
    struct fair_comparison *fair;
    struct intent_db *intent;
    struct hosts_db *hosts;
    struct telemetry *telemetry;
    struct switches *switches;
    struct policy_file *policy;
    bool policy_changed;        /* By "policy/reload". */
    bool exiting;               /* By "exit". */
};

/* Something to read of a controller. */
struct control_view {
    const char *name;           /* A word, unique. */
    const char *command;        /* Of the control socket. */
    struct json *(*build)(const struct controller *);
};

extern const struct control_view control_views[];
extern const size_t n_control_views;

/* Stores why 'job', "COJOB/JOB", has its place in '*json' and returns NULL, or
 * returns an error message that the caller frees. */
char *control_explain(const struct controller *, const char *job,
                      struct json **json);

/* True while an order is computed and hosts are told of none. */
bool control_observes(const struct controller *);

/* A person, 'who', overrides the order, see overrides.h; 'target' is "" for
 * OVERRIDE_OBSERVE, 'for_ms' 0 for no end.  Stores what was added and returns
 * NULL, or returns an error message that the caller frees. */
char *control_override(struct controller *, enum override_kind,
                       const char *target, int64_t for_ms, const char *who,
                       const char *reason, struct json **json);

/* The same person, or another, takes override 'id' back, 0 for the last. */
char *control_undo(struct controller *, int64_t id, const char *who,
                   struct json **json);

/* The same for rows of the history; 'limit' may be NULL. */
char *control_history(const struct controller *, const char *kind,
                      const char *since, const char *limit,
                      struct json **json);

/* 'ctl' must live as long as the program answers. */
void control_register(struct controller *ctl);

#endif /* controller/northbound/views/control.h */
