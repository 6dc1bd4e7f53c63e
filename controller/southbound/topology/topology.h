/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TOPOLOGY_H
#define TOPOLOGY_H 1

/* The topology file: switches, links and hosts.
 *
 * Paths follow the topology.  Information from switches and hosts can be
 * forged, so the topology comes only from a file that an operator writes
 * (topology.schema.json).  A switch reports only its identity and which of its
 * ports are down.
 *
 *    error = topology_read("fabric.json", &t);
 *    for (size_t i = 0; i < t->n_switches; i++) {
 *        ...t->switches[i].target...
 *    }
 *    topology_destroy(t);
 *
 * A topology does not change after topology_read(), so indexes into its arrays
 * identify switches, links and hosts. */

#include <stddef.h>
#include <stdint.h>

#define TOPOLOGY_MAX_SWITCHES 1024
#define TOPOLOGY_MAX_LINKS 16384
#define TOPOLOGY_MAX_HOSTS 16384
#define TOPOLOGY_MAX_IDENTITY 64        /* Limit of a CN in X.509. */
#define TOPOLOGY_MAX_PORT 0xfeff        /* Limit of Open vSwitch. */

/* Type of a port's QoS, "type" in the topology. */
enum queue_kind {
    QUEUES_HTB,                 /* "linux-htb": one queue per level. */
    QUEUES_NOOP,                /* "linux-noop": keeps qdiscs of others. */
    QUEUES_POLICER,             /* "egress-policer": rate limit of DPDK. */
    QUEUES_NONE,                /* "none": restores the previous QoS. */
    N_QUEUE_KINDS,
};

/* By kind; ends with NULL. */
extern const char *const queue_kind_names[N_QUEUE_KINDS + 1];

struct topology_switch {
    char *name;
    char *target;               /* Address of its OpenFlow listener. */
    uint64_t datapath;          /* Datapath id, not 0. */
    char *identity;             /* CN of its certificate, for "ssl:". */
    char *database;             /* OVSDB remote for its queues, or NULL. */
    enum queue_kind queues;     /* Type of its queues, if 'database'. */
};

/* A port of a switch. */
struct topology_port {
    int sw;                     /* Index of the switch. */
    uint32_t port;              /* OpenFlow port number. */
};

/* A cable between two switches. */
struct topology_link {
    struct topology_port ends[2];
    int64_t capacity;           /* Bits per second, each direction. */
};

struct topology_host {
    char *name;                 /* Name that its agent uses. */
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

/* Return NULL and store a topology, or return an error message "FILE: /place:
 * what is wrong and what is allowed", which the caller frees, and store
 * NULL. */
char *topology_read(const char *file, struct topology **);
char *topology_parse(const char *name, const char *text, struct topology **);
void topology_destroy(struct topology *);

#endif /* controller/southbound/topology/topology.h */
