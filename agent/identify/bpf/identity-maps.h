/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */

#ifndef IDENTITY_MAPS_H
#define IDENTITY_MAPS_H 1

/* Layout of the maps that the agent shares with its programs in the kernel.
 *
 * A socket keeps its maker (struct identity_owner), not its job: cgroups,
 * namespace and process are facts, while jobs come and go.  The agent writes
 * what belongs to which job in the maps of claims, and raises the epoch; with
 * its next packet, a socket gets its job by a new lookup.
 *
 * The arrays are mapped into the agent's memory, which reads counters and
 * writes rows without a system call; their elements have a multiple of 8
 * bytes, as in the kernel.  Included by C of both sides. */

#include <linux/types.h>

#define IDENTITY_SLOTS 1024 /* As SHIM_MAX_SLOTS; 0 is no job. */
#define IDENTITY_MARK_BITS                                                \
    11                      /* A bit that is 1 if replies are of the slot \
                             * too, then the slot. */
#define IDENTITY_NO_MARK 32 /* 'mark_shift' without bits of the mark. */

/* Cgroups kept of a socket: levels 1 to 8 of the tree. */
#define IDENTITY_LEVELS 8

/* Bins kept of a slot and direction, and their duration. */
#define IDENTITY_BINS 128
#define IDENTITY_BIN_NS 10000000ull

/* Least time between questions about a process: it may have executed another
 * program, or another process has its id. */
#define IDENTITY_QUESTION_NS 5000000000ull

/* What a packet gets at an uplink. */
enum identity_mode {
    IDENTITY_COUNTS, /* Nothing. */
    IDENTITY_ORDERS, /* DSCP and priority. */
    IDENTITY_TAGS,   /* A tag of wire/slot-tag.h, for a shim. */
};

/* Map "settings": one element. */
struct identity_settings {
    __u64 lease_until; /* CLOCK_MONOTONIC in ns.  After it, packets of
                        * jobs are as those of no job. */
    __u64 level_dscps; /* Bit N: DSCP N is of a level. */
    __u32 epoch;       /* Raised with each change of a claim. */
    __u32 mark_shift;  /* Of the lowest of the bits of the mark that
                        * carry a slot from a pod to the uplink. */
    __u8 mode;         /* enum identity_mode. */
    __u8 default_dscp, control_dscp;
    __u32 max_pairs; /* Limit of the addresses of a slot in map "sent"; 0
                      * leaves the map empty. */
    __u64 netns;     /* Cookie of the agent's namespace. */
    __u64 n_lost;    /* Questions that did not fit; a counter. */
};

/* Map "rows": by slot.  What a packet of the slot gets. */
struct identity_row {
    __u8 dscp;
    __u8 level;
    __u8 has_control; /* It has a control class. */
    __u8 used;
    char name[68]; /* "COJOB/JOB"; for the next agent. */
};

/* Levels of the order. */
#define IDENTITY_ORDER_LEVELS 8
#define IDENTITY_CONTROL_LEVEL 0
#define IDENTITY_DEFAULT_LEVEL 7

/* Map "priorities": the priority of packets of a level, at an uplink with
 * queues that a priority selects, in the range that these know. */
static inline __u64
identity_queue(__u32 ifindex, __u32 level)
{
    return (__u64) ifindex << 32 | level;
}

/* Map "traffic": by slot.  Bytes of IP frames, as they are on the wire: with
 * the headers of each segment, without FCS.  Sent bytes are those of the
 * uplinks, received ones those of sockets. */
struct identity_traffic {
    __u64 tx_packets, tx_bytes, rx_packets, rx_bytes;
    __u64 default_bytes; /* Part of 'tx_bytes' in the default class. */
    __u64 other_bytes;   /* Slot 0: frames that are not IP. */
    __u64 n_pairs;       /* In map "sent". */

    /* By direction (0: sent).  Bin N is at N % IDENTITY_BINS; the low half of
     * N is in the high half, the bytes are in the low half. */
    __u64 bins[2][IDENTITY_BINS];
};

/* Maps "processes", "cgroups" and "namespaces": by thread group, id of the
 * cgroup, cookie of the network namespace.  The smallest source decides; of
 * equal ones a process before the deepest cgroup before the namespace. */
struct identity_claim {
    __u64 born, ended; /* Of a process, CLOCK_BOOTTIME in ns: sockets
                        * from 'born' on, and before 'ended' unless
                        * that is 0. */
    __u32 slot;
    __u32 source; /* enum claim_source. */
    __u64 uid;    /* Of a process: only sockets that this user or root
                   * has made, since its id may be another's by now. */
};

/* Map "pods": by index of the host's end of an interface of a pod or of a
 * virtual machine. */
struct identity_pod {
    __u32 bridge; /* Index of its bridge, or 0. */
    __u32 netns;  /* Of its other end, in map "netns_ids"; or 0. */
    __u64 had_gro;
};

/* Map "sent": bytes that a slot has sent to an address, for as many addresses
 * as 'max_pairs' of the settings between two scans of the agent. */
#define IDENTITY_PAIRS 16384
struct identity_pair {
    __u8 remote[16]; /* IPv6, an IPv4 address mapped. */
    __u64 slot;
};

/* Map "control": ports of a job's control class, in network byte order. */
static inline __u32
identity_port(__u16 slot, __u16 port)
{
    return (__u32) slot << 16 | port;
}

/* Map "owners": of each socket. */
struct identity_owner {
    __u64 cgroups[IDENTITY_LEVELS];
    __u64 netns;   /* Cookie. */
    __u64 made;    /* CLOCK_BOOTTIME in ns; 0 if the socket was
                    * there before the programs. */
    __u32 tgid;    /* Thread group; 0 if the socket was there before the
                    * programs. */
    __u32 uid;     /* Real user of the process; 0 if the socket was there
                    * before the programs. */
    __u64 slot;    /* Last result: the epoch in the high half. */
    __u64 control; /* Another: ports and epoch of the packet, and
                    * in the lowest bit whether one is of control. */
};

/* Map "questions": a process that no claim is about has made a socket.
 * Questions that do not fit are counted: then the agent inspects all
 * processes. */
struct identity_question {
    __u64 cgroup; /* Id. */
    __u32 tgid;
    __u32 may_copy; /* 1: it is a struct identity_copy; else 0. */
};

/* Map "questions": in another namespace than the agent's, a process connects a
 * socket of TCP that it has bound to an address and a port, which a connection
 * here may have. */
struct identity_copy {
    struct identity_question question;
    __u32 local[4], remote[4]; /* IPv6, IPv4 addresses mapped. */
    __u32 uid;                 /* Real user of the process. */
    __be16 ports[2];           /* Local, remote. */
};

#endif /* agent/identify/bpf/identity-maps.h */
