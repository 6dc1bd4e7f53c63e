/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STATUS_REPORT_H
#define STATUS_REPORT_H 1

/* Health of the cluster: the summary and the alarms of "controller/status".
 *
 * status_report_put() adds the age of the order, how far hosts lag behind it,
 * the share of traffic of known jobs, comparisons with the network without
 * Stagecoach, overrides and "alarms" (wire/alarm.h).  Main thread only. */

#include <stdbool.h>

struct cluster;
struct controllers;
struct database_folder;
struct database_members;
struct decide_rows;
struct json;
struct overrides;
struct plain_comparison;
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
    const struct plain_comparison *plain;
    const struct database_folder *folder;
    const struct database_members *members[2]; /* Of each database, NULL if
                                                * its remote is fixed. */
    const struct controllers *controllers;
    double order_age; /* Seconds, -1 before the first order. */
};

void status_report_put(struct json *, const struct status_facts *);

/* Appends each active alarm to 'alarms'. */
void status_add_alarms(struct json *alarms, const struct status_facts *);

/* Stores the mean completion time of the stages, in seconds, as estimated for
 * the order and without Stagecoach; 0 without stages.
 *
 * The model of a network without Stagecoach: all jobs that need a port share
 * it equally until their demand is served, ports are independent of each
 * other, and no job ends before its isolated time.  A real network is not
 * faster, because a job that waits at one port leaves others idle.  The
 * order's advantage is therefore underestimated. */
void status_estimate_plain(const struct decide_rows *, double *order_s,
                           double *plain_s);

#endif /* controller/northbound/views/status-report.h */
