/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TOPOLOGY_H
#define TOPOLOGY_H 1

/* Which switches there are, how they are wired and where the hosts are.
 *
 *
 * Motivation
 * ==========
 *
 * Who may say what a network looks like decides who gets its traffic.  What
 * switches and hosts say of it can be forged, so the wiring is what an
 * operator wrote: a file, topology.schema.json.
 *
 *
 * Usage
 * =====
 *
 *    error = topology_read("fabric.json", &t);
 *    for (size_t i = 0; i < t->n_switches; i++) {
 *        ...t->switches[i].target...
 *    }
 *    topology_destroy(t);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Nothing changes after topology_read(); indexes into the arrays are names
 * that stay. */

#include <stddef.h>
#include <stdint.h>

#include "controller/southbound/topology/queue-plan.h"

#define TOPOLOGY_MAX_SWITCHES 256
#define TOPOLOGY_MAX_LINKS 4096
#define TOPOLOGY_MAX_HOSTS 4096
#define TOPOLOGY_MAX_IDENTITY 64        /* As X.509 has it. */
#define TOPOLOGY_MAX_PORT 0xfeff        /* Physical ports of OpenFlow 1.0 and
                                         * what Open vSwitch has. */

struct topology_switch {
    char *name;
    char *target;               /* Of its OpenFlow listener. */
    uint64_t datapath;          /* Its datapath id, never 0. */
    char *identity;             /* The name in its certificate, with ssl:. */
    char *database;             /* In which its queues are made, or NULL, */
    enum queue_kind queues;     /* and how. */
};

/* A port of a switch. */
struct topology_port {
    int sw;                     /* Index of the switch. */
    uint32_t port;              /* As OpenFlow numbers it. */
};

/* A cable between two switches. */
struct topology_link {
    struct topology_port ends[2];
    int64_t capacity;           /* Bits per second, each direction. */
};

struct topology_host {
    char *name;                 /* As its agent's. */
    uint32_t ip;                /* IPv4, host byte order. */
    struct topology_port at;
    int64_t capacity;           /* Bits per second, each direction. */
};

struct topology {
    struct topology_switch *switches;
    size_t n_switches;
    struct topology_link *links;
    size_t n_links;
    struct topology_host *hosts;
    size_t n_hosts;
};

/* Both return NULL and a topology, or a message "FILE: /place: what is wrong
 * and what is allowed" that the caller frees, and a null topology. */
char *topology_read(const char *file, struct topology **);
char *topology_parse(const char *name, const char *text, struct topology **);
void topology_destroy(struct topology *);

/* Index of the host 'name', or -1. */
int topology_find_host(const struct topology *, const char *name);

#endif /* controller/southbound/topology/topology.h */
