/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SCENARIO_H
#define LAB_SCENARIO_H 1

/* Scenarios of the lab, read from JSON.
 *
 *
 * Motivation
 * ==========
 *
 * A scenario has the number of hosts, the rate of their links, and the start
 * times of searches and of cojobs that run arbitrary commands
 * (scenario-cojob.h).  All of it is checked before anything starts.
 *
 *    {"name": "smoke", "hosts": 3, "rate": "50Mbit", "mtu": 9000,
 *     "fabric": "ovs", "policies": ["fair", "stage"], "timeout_s": 60,
 *     "searches": [{"start_s": 0, "search": {...as in a search.json...}}]}
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data, owned by the caller, immutable after it is read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scenario/scenario-cojob.h"

#define SCENARIO_MAX_HOSTS 64

enum fabric_kind {
    FABRIC_OVS,                 /* Open vSwitch, userspace datapath. */
    FABRIC_BRIDGE,              /* A kernel bridge, for comparison. */
};
extern const char *const fabric_names[];

struct search_spec;

/* One search of a scenario. */
struct scenario_search {
    double start_s;             /* Seconds from the beginning of the run. */
    char *cojob;                /* Name of the search. */
    char *text;                 /* Its JSON, as "search run" reads it. */
    struct search_spec *spec;   /* The same, read. */
};

struct scenario {
    char *name;
    char *dir;                  /* Where its file is; "." without a file. */
    char *description;          /* Or NULL. */
    int n_hosts;                /* Named h0, h1... */
    int slots;                  /* Processes that a host takes at most. */
    int64_t rate_bps;           /* Of each link, in each direction. */
    int mtu;                    /* Bytes of IP. */
    bool cc;                    /* The shims' congestion control. */
    enum fabric_kind fabric;
    size_t n_policies;
    char **policies;            /* Names or files, in the order to run. */
    double timeout_s;           /* Of one policy's run. */
    size_t n_searches;
    struct scenario_search *searches;
    size_t n_cojobs;
    struct scenario_cojob *cojobs;
};

/* 'name' is what messages begin with.  Each returns NULL and stores the
 * scenario in '*scenariop' or returns a malloc()'d message and stores NULL. */
char *scenario_from_string(const char *name, const char *text,
                           struct scenario **scenariop);
char *scenario_from_file(const char *file, struct scenario **scenariop);
void scenario_destroy(struct scenario *);

/* Processes on 'host' of the first 'n_searches' searches and the first
 * 'n_cojobs' cojobs. */
int scenario_processes(const struct scenario *, int host, size_t n_searches,
                       size_t n_cojobs);

#endif /* scenario/scenario.h */
