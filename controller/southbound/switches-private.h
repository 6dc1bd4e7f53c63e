/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SWITCHES_PRIVATE_H
#define SWITCHES_PRIVATE_H 1

/* What switches.c, which keeps the switches, and switches-report.c, which
 * tells of them, share. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/southbound/driver.h"
#include "controller/southbound/switches.h"
#include "openvswitch/hmap.h"

struct link_check;
struct routes;

struct sw {
    char *name;                 /* The topology's, or its target. */
    char *target;
    int index;                  /* In the topology, or -1. */
    struct driver *driver;
};

/* Whose certificate a switch has. */
struct identity {
    struct hmap_node node;      /* In struct switches's 'identities'. */
    uint64_t datapath;
    char *name;
};

/* What the wanted state was made of. */
struct basis {
    char hash[17];              /* Of the policy. */
    int64_t generation;         /* 0: nothing is wanted. */
    int64_t version;
    unsigned int links;         /* Sum of what the drivers say. */
};

struct switches {
    struct topology *topology;  /* NULL: there is none. */
    struct routes *routes;      /* As there is a topology. */
    struct sw *switches;
    size_t n, allocated;
    struct hmap identities;     /* Of switches that are not the topology's. */
    struct link_check *links;   /* NULL: not to be looked at. */
    struct basis basis;
};

/* Only who leads looks where links go. */
static inline bool
switches_look(const struct switches *ss)
{
    return ss->links && ss->basis.generation;
}

static inline struct driver_status
sw_status(const struct sw *sw)
{
    struct driver_status status;

    sw->driver->class->get_status(sw->driver, &status);
    return status;
}

#endif /* controller/southbound/switches-private.h */
