/* SPDX-License-Identifier: Apache-2.0 */

#ifndef IDENTITY_H
#define IDENTITY_H 1

/* The job of each packet, known to the kernel.
 *
 * Programs at the root of the cgroups write into each socket which process
 * made or connected it; a program at the egress of an uplink finds from that
 * the slot of the packet's job, counts, and gives the packet its DSCP and
 * priority.  So there is no table of flows that a user could fill, no first
 * packet in the wrong class, and no system call of the agent for a flow.
 *
 *    socket -> owner     cgroups, namespace, process (struct identity_owner)
 *    owner -> slot       maps of claims, written by claims.h
 *    slot -> packet      rows: DSCP, priority; counters, by actuate/bpf; or a
 *                        tag with the slot, for a shim
 *
 * A pod's packet has lost its socket when it reaches the uplink.  It still has
 * it at the host's end of the pod's interface, where another program writes
 * the slot into bits of the mark; see interfaces.h.  A packet that has no
 * socket there, as from a pod within the pod, is of the slot that has claimed
 * the network namespace of the interface.
 *
 * For a shim, a tag has the bit SLOT_TAG_NO_LEARN, unless the host would route
 * a reply back to the sender of the packet: with it, received packets of the
 * flow are not attributed to the slot.  So a host with pods must forward.
 *
 * All maps, and programs where the kernel has links for them, are pinned: they
 * go on when the agent is dead, until the lease ends, and the next agent finds
 * the records of all sockets.  A kernel older than 6.6 has no links at
 * interfaces; there a filter of clsact stays until another program removes it,
 * so identity_run() checks it.  Other programs at the same hook still run:
 * ours never end a chain.
 *
 *    error = identity_open(&config, &identity);
 *    error = identity_add_uplink(identity, "eth0");
 *    settings = identity_settings(identity);     // And rows, and traffic.
 *    identity_run(identity, time_msec());        // Attaches again.
 *    identity_close(identity);                   // The programs stay.
 *
 *    identity_detach("/sys/fs/bpf/stagecoach");  // And now they do not.
 *
 * One agent has an uplink: a second one gets an error.  Needs CAP_BPF and
 * CAP_NET_ADMIN.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/identify/bpf/identity-maps.h"

#define IDENTITY_PINS "/sys/fs/bpf/stagecoach"
#define IDENTITY_MAX_CONTROL_PORTS 32

struct identity;

struct identity_config {
    const char *pins;        /* Folder for pins, below a mount of bpffs;
                              * made if it is missing. */
    const char *cgroup;      /* Absolute path of the cgroup with the sockets
                              * that are seen. */
    uint32_t mark_shift;     /* See struct identity_settings. */
    enum identity_mode mode; /* IDENTITY_TAGS: it stays IDENTITY_COUNTS
                              * while it is that, and the caller sets it
                              * when there is a shim. */
};

/* Where a program is attached: at an uplink, or at the host's end of an
 * interface of a pod or of a virtual machine, by its kind. */
enum identity_hook {
    IDENTITY_OUT,
    IDENTITY_VETH,
    IDENTITY_NETKIT,
    IDENTITY_TAP,
};

/* Maps of claims. */
enum identity_map {
    IDENTITY_PROCESSES,
    IDENTITY_CGROUPS,
    IDENTITY_NAMESPACES,
};

/* Returns NULL, or a malloc()'d message. */
char *identity_open(const struct identity_config *, struct identity **);

/* For a host without the programs: takes claims, and counts nothing. */
struct identity *identity_open_blind(void);
bool identity_is_blind(const struct identity *);
void identity_close(struct identity *);

char *identity_add_uplink(struct identity *, const char *iface);

/* Calls 'see' for each uplink that has its program. */
typedef void identity_uplink_func(const char *iface, int ifindex, void *aux);
void identity_for_each_uplink(const struct identity *, identity_uplink_func *,
                              void *aux);

/* Sets the priority of the packets of each level at an uplink; NULL leaves
 * priorities alone. */
void identity_set_priorities(struct identity *, int ifindex,
                             const uint32_t priority[IDENTITY_ORDER_LEVELS]);

/* Attaches the program of 'hook' to the host's end of an interface of a pod,
 * in place of one that this agent or a previous one has attached.  It leads to
 * a bridge of this index, 0 for none, and to the namespace of this id, -1 for
 * none.  GRO of a veth is switched off, unless the kernel only counts;
 * identity_detach() switches it on again.  Returns 0 or a positive errno. */
int identity_add_pod(struct identity *, int ifindex, enum identity_hook,
                     int bridge, int netns);

/* Returns true if the kernel merges packets that the interface receives. */
bool identity_has_gro(const char *iface);

/* Forgets the program, and what is known of the interface, which was removed.
 */
void identity_remove_pod(struct identity *, int ifindex);

/* Once a second, and after identity_recheck(): attaches the programs again
 * that another program has removed, and those of interfaces that were created
 * again. */
void identity_run(struct identity *, long long now);
void identity_wait(const struct identity *);

/* Returns false if the interface is no uplink. */
bool identity_recheck(struct identity *, const char *iface);

/* What the maps have.  Writers use whole assignments of a member. */
struct identity_settings *identity_settings(struct identity *);
struct identity_row *identity_rows(struct identity *);
struct identity_traffic *identity_traffic(struct identity *);

/* Set claims, by one system call, or remove one.  They count after
 * identity_raise_epoch(), by which sockets repeat the lookup of their slots.
 * Return 0 or a positive errno, for the claim after the '*setp' that are set.
 */
int identity_set_claims(struct identity *, enum identity_map,
                        const uint64_t ids[], const struct identity_claim[],
                        size_t n, size_t *setp);
int identity_remove_claim(struct identity *, enum identity_map, uint64_t id);
void identity_raise_epoch(struct identity *);

/* 'port' is in network byte order.  A slot has at most
 * IDENTITY_MAX_CONTROL_PORTS, as servers that were started again have others;
 * with a further one the others are forgotten.  Slot 0 has none.
 * identity_run() makes changes valid for sockets, at most each 10 ms. */
void identity_set_control_port(struct identity *, uint16_t slot,
                               uint16_t port);
void identity_clear_control_ports(struct identity *, uint16_t slot);

/* Calls 'take' with what each slot has sent to each address since the last
 * call, while identity_settings(id)->max_pairs is not 0. */
typedef void identity_pair_func(uint16_t slot, const uint8_t remote[16],
                                uint64_t bytes, void *aux);
void identity_take_pairs(struct identity *, identity_pair_func *, void *aux);

/* Calls 'take' for each question since the last call.  The fd is readable
 * while there are some. */
typedef void identity_question_func(const struct identity_question *,
                                    void *aux);
void identity_take_questions(struct identity *, identity_question_func *,
                             void *aux);
int identity_question_fd(const struct identity *);

/* Stores the cookie of the network namespace of the file at 'path'; its claim
 * is also the one of packets without a socket from interfaces that lead to it.
 * Returns 0 or a positive errno. */
int identity_add_netns(struct identity *, const char *path, uint64_t *cookiep);

/* The kernel no longer has a namespace with this id. */
void identity_remove_netns_id(struct identity *, int id);

/* Returns the fd of the map of struct identity_owner, -1 without the
 * programs. */
int identity_owners_fd(const struct identity *);

/* Writes the process into the sockets that it has open, if they were there
 * before the programs. */
void identity_adopt(struct identity *, pid_t pid);

/* Removes all programs and maps with pins in this folder, and the filters at
 * the interfaces of this namespace, and restores their GRO.  Returns NULL, or
 * a malloc()'d message. */
char *identity_detach(const char *pins);

#endif /* agent/identify/bpf/identity.h */
