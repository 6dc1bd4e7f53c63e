/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TOPOLOGY_IMPORT_H
#define TOPOLOGY_IMPORT_H 1

/* Topologies of other systems as a topology file of the controller.
 *
 * Slurm, Topograph and Volcano already have the tree of a cluster's switches
 * and the hosts at each switch.  The importer adds what they lack: rates,
 * addresses of hosts, and the OpenFlow address, datapath id and ports of each
 * switch.
 *
 * A switch has one link to its parent.  Several cables between two switches,
 * or several switches that the source describes as one, are one link with the
 * sum of their rates.
 *
 *    struct import *im = import_create("topology.conf");
 *
 *    import_slurm(im, text);
 *    import_finish(im);
 *    if (import_ok(im)) {
 *        top = import_to_json(im, &extra);
 *    }
 *    error = import_destroy(im);
 *
 * Readers report errors by import_fail().  Only the first error counts; after
 * it, all functions do nothing. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;
struct import;

/* Creates an importer.  Messages begin with 'file', which it copies. */
struct import *import_create(const char *file);

/* Frees the importer and returns its error, which the caller frees, or
 * NULL. */
char *import_destroy(struct import *);

bool import_ok(const struct import *);

/* Reports "FILE:LINE: MESSAGE". */
void import_fail(struct import *, int line, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Adds a switch, and returns its index for import_child(), -1 after an
 * error. */
int import_switch(struct import *, const char *name, int line);

/* Adds host or switch 'name' below switch 'parent'.  A switch may be added by
 * import_switch() later. */
void import_child(struct import *, int parent, const char *name, bool is_host,
                  int line);

/* Adds all names of a host list. */
void import_children(struct import *, int parent, const char *list,
                     bool is_host, int line);

/* Checks that all switches were added and that the tree has no circle. */
void import_finish(struct import *);

/* Readers of a whole file. */
void import_slurm(struct import *, const char *text);

/* 'tree' is the name of the topology in the file to read, NULL for the only
 * tree or the default one. */
void import_topograph(struct import *, const char *text, const char *tree);
void import_volcano(struct import *, const char *text);

/* What the source does not have. */
struct import_extra {
    int64_t rate;               /* Of hosts' links, bits per second. */
    int64_t uplink_rate;        /* Of links to a parent, bits per second, or
                                 * 0. */
    char **uplink_rates;        /* "SWITCH=RATE" for single switches. */
    size_t n_uplink_rates;
    const char *addresses;      /* File: lines "ADDRESS NAME..." of hosts. */
    const char *switches;       /* File: lines "NAME TARGET DATAPATH". */
    const char *ports;          /* File: lines "SWITCH NEIGHBOUR PORT", or NULL
                                 * to number the ports of each switch: its
                                 * hosts, its children, its parent. */
};

/* Returns the topology, which the caller deletes, or NULL after an error. */
struct cJSON *import_to_json(struct import *, const struct import_extra *);

/* The tree, for import-json.c. */
struct import_switch {
    char *name;
    int line;                   /* Where it was added or first named. */
    bool added;                 /* By import_switch(). */
    int parent;                 /* Index of its parent, or -1. */
};

struct import_host {
    char *name;
    int line;
    int parent;                 /* Index of its switch. */
};

struct import {
    char *file;
    char *error;                /* The first error, or NULL. */
    struct import_switch *switches;
    size_t n_switches;
    struct import_host *hosts;
    size_t n_hosts;
};

/* Returns the index of a switch, or -1. */
int import_find_switch(const struct import *, const char *name);

#endif /* cli/topology/import.h */
