/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_PLAN_H
#define LAB_PLAN_H 1

/* Names and paths of everything that a lab creates.
 *
 * If a lab is killed, the next lab of its name must find its leftovers.
 * Therefore all names derive from the name of the lab: namespaces begin with
 * "scl-NAME-", the processes are in the cgroup "stagecoach/lab-NAME", and the
 * files are in one run directory.
 *
 *    scl-NAME-h0    host 0: eth0 10.77.0.1/24, trainers and an agent
 *    scl-NAME-n0    its node: interfaces "host" and "uplink", a shim between
 *    scl-NAME-fab   the fabric: port p0 for host 0, and so on, on one bridge
 *                   or several (leaf-spine.h)
 *
 * Hosts without a shim have no nodes: eth0 is the uplink.
 * The agents keep their BPF objects below /sys/fs/bpf/stagecoach-lab-NAME.
 *
 * The plan owns its strings.  The caller must free strings that functions
 * return. */

#include <stdbool.h>
#include <stdint.h>

#include "scenario/scenario.h"

struct database;

#define BPF_ROOT "/sys/fs/bpf" /* Where a BPF file system is mounted. */

/* Names and paths of a host. */
struct plan_host {
    char *name;                 /* "h0". */
    char *address;              /* "10.77.0.1". */
    char *port;                 /* "p0": interface of the fabric. */
    char *ns;                   /* Namespace of its jobs and its agent. */
    char *node_ns;              /* Namespace of its shim, if it has one. */
    char *dir;                  /* Run directory, absolute. */
    char *shim;                 /* Control socket of its shim, in 'dir'. */
    char *cgroup;               /* Cgroup of its jobs. */
    char *pins;                 /* Folder of its agent's BPF objects, in the
                                 * plan's 'pins'. */
    enum host_actuator actuator; /* Of the scenario. */
};

struct plan {
    char *name;                 /* 1 to 8 letters and digits. */
    char *rundir;               /* Absolute. */
    char *lock;                 /* Lock file, absolute. */
    char *cgroup;               /* Relative to the cgroup v2 mount, as all
                                 * cgroups of the plan are. */
    char *daemons_cgroup;       /* Cgroup of daemons and searches. */
    char *pins;                 /* Folder in the BPF file system. */
    char *fabric_ns;            /* Name of the fabric's namespace. */
    char *bridge;               /* OpenFlow target of the switch, or of the
                                 * first leaf. */
    char *bin_dir;              /* Folder that is searched for programs first,
                                 * or NULL. */
    int n_hosts;                /* 0 without a scenario. */
    struct plan_host hosts[SCENARIO_MAX_HOSTS];         /* All are set. */
    int slots;
    int64_t rate_bps;
    int mtu;
    bool cc;                    /* The shims control congestion. */
    const char *congestion;     /* TCP's congestion control of the hosts, NULL
                                 * for the kernel's own. */
    bool plain;                 /* No agents, and kernel bridges in place of
                                 * the shims: the network without
                                 * Stagecoach. */
    bool ha;                    /* Start several members and controllers, and
                                 * kill leaders (lab/run/faults.h). */
    bool blind;                 /* The controller does not know the capacity
                                 * of the links between switches. */
    enum fabric_kind fabric;
    struct leaf_spine leaf_spine;        /* Of plan_has_topology(). */
    enum ovs_datapath datapath;
    enum port_queues queues;     /* Of the ports of the fabric. */
};

/* 'rundir' may be null for the default.  Returns NULL or a message. */
char *plan_create(const char *name, const char *rundir, const char *bin_dir,
                  struct plan **planp);
void plan_set_scenario(struct plan *, const struct scenario *);
void plan_destroy(struct plan *);

char *plan_log(const struct plan *, const char *program);

/* Returns true if the agent of 'host' orders with 'actuator'. */
static inline bool
plan_orders_with(const struct plan *plan, int host,
                 enum host_actuator actuator)
{
    return !plan->plain && plan->hosts[host].actuator == actuator;
}

static inline bool
plan_has_agent(const struct plan *plan, int host)
{
    return !plan->plain && plan->hosts[host].actuator != ACTUATOR_NONE;
}

int plan_n_agents(const struct plan *);

/* Returns true if the switches are bridges of Open vSwitch. */
static inline bool
plan_uses_ovs(const struct plan *plan)
{
    return plan->fabric != FABRIC_BRIDGE;
}

/* Returns true if the controller has a topology file of the switches. */
static inline bool
plan_has_topology(const struct plan *plan)
{
    return (plan->fabric == FABRIC_LEAF_SPINE
            || plan->datapath == DATAPATH_KERNEL);
}

/* Returns true if the controller creates the queues of the ports and its flows
 * select them.  Otherwise the lab creates them. */
static inline bool
plan_has_controller_queues(const struct plan *plan)
{
    return (plan->datapath == DATAPATH_KERNEL
            && plan->queues == QUEUES_STRICT);
}

/* Returns true if 'ns' is the name of a namespace of this lab. */
bool plan_owns_ns(const struct plan *, const char *ns);

/* Returns the path of program 'name': in 'bin_dir', beside the running
 * program, or in the build folder; otherwise just 'name'. */
char *plan_program(const struct plan *, const char *name);

/* Writes 'text' to 'file'.  Returns NULL or a message. */
char *plan_write_text(const char *file, const char *text);

/* Writes CLUSTER.json (stagecoach-scenario(5)).  Returns NULL or a message. */
char *plan_write_cluster(const struct plan *, const char *file);

/* Database members and controllers
 * --------------------------------
 *
 * A lab has one member of each database and one controller, or three and two
 * if plan->ha is set.  The names of the first ones do not depend on
 * plan->ha. */

int plan_n_members(const struct plan *);
int plan_n_controllers(const struct plan *);

/* Run directory of member 'i', and the name of its daemon. */
char *plan_member_rundir(const struct plan *, int i);
char *plan_member_daemon(const struct database *, int i);

/* Remote for clients of 'db': all members. */
char *plan_remote(const struct plan *, const struct database *);

/* "RUNDIR/NAME.SUFFIX" of controller 'i', and the name of its daemon. */
char *plan_controller_file(const struct plan *, int i, const char *name,
                           const char *suffix);
char *plan_controller_daemon(int i);

#endif /* lab/cluster/plan.h */
