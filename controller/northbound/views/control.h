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

struct cluster;
struct controller;
struct json;

struct control_view {
    const char *name;           /* In REST paths; unique. */
    const char *command;        /* Command of the control socket. */
    struct json *(*build)(const struct controller *);

    /* In its place, for a view of the cluster alone. */
    struct json *(*of_cluster)(const struct cluster *);
};

struct json *control_build_view(const struct control_view *,
                                const struct controller *);

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

/* Progress of applying the order on hosts and in switches.
 *
 * A command takes effect on a host after two database transactions, the
 * computation of an order, and the agent's work.  A client that needs the
 * effect, such as a script that measures or drains a host, polls the rollout
 * instead of sleeping.
 *
 * "controller/rollout [COJOB RUNG begun|ended]" replies at once.  Its "done"
 * is true when the last order includes all events, each connected host has
 * applied it and each connected switch has its flows.  If a stage is given, it
 * must also have begun or ended, so that a client that has written to the
 * intent database can wait until the controller has read it.  The command line
 * repeats the request until it is done. */
struct json *rollout_report(const struct controller *);

/* Returns {"done", "version", "hosts" (connected), "hosts_applied", "behind"
 * (names), "applied" (share of these hosts, 0 to 1), "switches_applied" (share
 * of desired entries)}.  'settled' is true if no event is pending and the
 * databases have the order 'version'; 'switches' is switches_applied(). */
struct json *rollout_to_json(const struct cluster *, bool settled,
                             int64_t version, double switches);

/* Returns true if stage 'rung' of 'cojob' is running. */
bool rollout_stage_runs(const struct cluster *, const char *cojob, int rung);

/* 'ctl' must outlive the unixctl server. */
void control_register(struct controller *ctl);

#endif /* controller/northbound/views/control.h */
