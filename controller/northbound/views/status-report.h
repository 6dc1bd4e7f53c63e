/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STATUS_REPORT_H
#define STATUS_REPORT_H 1

/* Health of the cluster: the summary and the alarms of "controller/status".
 *
 * status_report_put() adds the age of the order, how far hosts lag behind it,
 * the share of traffic of known jobs, comparisons with the network without
 * Stagecoach, overrides and "alarms" (wire/alarm.h).  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct controllers;
struct database_folder;
struct database_members;
struct decide_rows;
struct json;
struct overrides;
struct pair_keys;
struct switches;

/* What the summary and the alarms depend on. */
struct status_facts {
    const struct cluster *cluster;      /* Its hosts. */
    const struct switches *switches;    /* NULL: there are none. */
    bool intent_connected, hosts_connected;     /* To the databases. */
    const char *policy_error;   /* Error in the policy file, or NULL. */
    bool observes;              /* Hosts get no order by request. */

    /* Not for status_add_alarms(). */
    const struct overrides *overrides;
    const struct decide_rows *rows; /* Of the last order. */
    const struct database_folder *folder;
    const struct database_members *members[2]; /* Of each database, NULL if
                                                * its remote is fixed. */
    const struct controllers *controllers;
    const struct pair_keys *keys; /* Between shims. */
    double order_age;             /* Seconds, -1 before the first order. */
};

void status_report_put(struct json *, const struct status_facts *);

/* Appends each active alarm to 'alarms'. */
void status_add_alarms(struct json *alarms, const struct status_facts *);

/* These return the mean completion time of stages, that in the simulated
 * network without an order that follows them (decide-ahead.h), and their
 * ratio; without members if that is not known of any.  That network is ideal,
 * and is known for what has arrived, so the advantage of the order is
 * underestimated. */

/* Of the running stages, to their predicted ends. */
struct json *status_predicted(const struct decide_rows *);

/* Of the last STATUS_GAIN_STAGES that have ended, as measured. */
#define STATUS_GAIN_STAGES 200
struct json *status_gain(const struct cluster *);

/* Hosts and switches that have seen a newer generation than the leader's.
 *
 * They refuse its orders, as they must if another controller leads.  If none
 * does, the databases were lost and the clock went back, or a host lies.  So
 * only an operator raises the generation, and at most NEWER_MAX_RAISE above
 * the leader's: a host that claims the largest number does not use them up.
 *
 *    newer = newer_find(cluster, switches, &n);
 *    generation = newer_to_raise(newer, n, cluster->generation);
 *    free(newer);
 *
 * Main thread only. */

/* A century of milliseconds. */
#define NEWER_MAX_RAISE (INT64_C(100) * 366 * 24 * 3600 * 1000)

struct newer {
    const char *name; /* Of a host or switch, which owns it. */
    int64_t generation;
};

/* Returns what the caller frees; none if this controller does not lead.
 * 'switches' may be null. */
struct newer *newer_find(const struct cluster *, const struct switches *,
                         size_t *n);

/* Returns the newest generation of 'newer' that a leader of 'generation' may
 * go above, or 'generation' without one. */
int64_t newer_to_raise(const struct newer *, size_t n, int64_t generation);

#endif /* controller/northbound/views/status-report.h */
