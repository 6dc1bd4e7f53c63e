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
 * Lists of names are Slurm's: "login,node[01-16,20]", where a number keeps the
 * width of the first one of its range, a name may have several brackets, and
 * empty elements do not count.
 *
 * topology.conf (slurm.c) has the grammar of Slurm's own parser.  From each
 * line the comment is cut, from a "#" on before which there is no odd number
 * of backslashes; if it then ends in an odd number of backslashes, with white
 * space behind them or not, the next line is appended in place of the last
 * one.  A carriage return is white space.  In what results, a backslash makes
 * the character behind it an ordinary one.  A line has parameters KEY=VALUE or
 * KEY="VALUE", with or without blanks around "=", or is "Include FILE", where
 * FILE is relative to the folder of the file that includes it.  SwitchName has
 * no ranges.
 *
 * topology.yaml and HyperNodes (yaml.c) are YAML 1.1, with its booleans.
 * Members of a HyperNode are selected by an exact name, by a regular
 * expression that fits a part of the name, or, nodes only, by labels; for the
 * last two the nodes of the cluster are in a second file.
 *
 * Readers report errors by import_fail().  Only the first error counts; after
 * it, all functions do nothing. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;
struct import;

/* Where something stands. */
struct import_place {
    const char *file; /* Lives as long as the importer. */
    int line;         /* From 1. */
};

/* Creates an importer, which is at 'file'. */
struct import *import_create(const char *file);

/* Frees the importer and returns its error, which the caller frees, or
 * NULL. */
char *import_destroy(struct import *);

bool import_ok(const struct import *);

/* Goes to the begin of 'file'; copies the name. */
void import_enter(struct import *, const char *file);

/* Reports "FILE:LINE: MESSAGE". */
void import_fail(struct import *, struct import_place, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Adds a switch that stands where the importer is, and returns its index for
 * import_child(), -1 after an error. */
int import_switch(struct import *, const char *name);

/* Adds host or switch 'name' below switch 'parent'.  A switch may be added by
 * import_switch() later. */
void import_child(struct import *, int parent, const char *name, bool is_host);

/* Adds all names of a list, which may be NULL. */
void import_children(struct import *, int parent, const char *list,
                     bool is_host);

/* Checks that all switches were added. */
void import_finish(struct import *);

/* Readers of a whole file.  'tree' is the name of the topology to read, NULL
 * for the only tree or the default one.  'nodes' is the text of "kubectl get
 * nodes -o json", or NULL. */
void import_slurm(struct import *, const char *text);
void import_topograph(struct import *, const char *text, const char *tree);
void import_volcano(struct import *, const char *text, const char *nodes);

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

struct import_node {
    char *name;
    bool is_host;               /* Otherwise a switch. */
    bool added;                 /* By import_switch(). */
    struct import_place at;     /* Where it was added or first named. */
    int parent;                 /* Index of the switch above it, or -1. */
};

struct import {
    struct import_place at; /* Where the reader is; it sets the line. */
    char **files;           /* Names of files. */
    size_t n_files;
    char *error;                /* The first error, or NULL. */
    struct import_node *nodes;
    size_t n, n_hosts; /* Nodes; hosts among them. */
};

/* Returns the index of a host or a switch, or -1. */
int import_find(const struct import *, const char *name, bool is_host);

#endif /* cli/topology/import.h */
