/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_FACTS_H
#define HOST_FACTS_H 1

/* Facts about this host for "stagecoach doctor", which seldom change.
 *
 * report.h writes them to the database, in "health" of Host_Reported:
 *
 *    kernel               Release of the running kernel.
 *    shim_NAME            NAME of shim/about.h, while the shim is connected.
 *    certificate          Common name of the agent's certificate.
 *    certificate_expires  Milliseconds since the epoch.
 *    tc                   Number of interfaces of --tc.
 *    check_NAME           Result of a check of doctor.h, unless it is "ok".
 *    what_NAME            The finding, a sentence.
 *    remedy_NAME          How to correct it.
 *
 * They are collected at the start, when the shim's facts change, and once a
 * minute.  This takes less than a millisecond: the agent must never be late.
 *
 *    host_facts_run(&facts, config, about, now);
 *    ...facts.map...
 *
 * Main thread only. */

#include "smap.h"

struct agent_config;

struct host_facts {
    struct smap map;
    char *about;                /* As of the last collection, or NULL. */
    long long next;             /* time_msec() of the next collection. */
};

void host_facts_init(struct host_facts *);
void host_facts_uninit(struct host_facts *);

/* 'about' has the shim's lines, "" if they are unknown. */
void host_facts_run(struct host_facts *, const struct agent_config *,
                    const char *about, long long now);

#endif /* agent/host-facts.h */
