/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CAPTURE_PROFILE_H
#define CAPTURE_PROFILE_H 1

/* What is in a capture: flows, their bursts, and which of them belong
 * together.
 *
 *
 * Motivation
 * ==========
 *
 * Before anybody installs an agent, a capture of a port can show whether its
 * traffic is what Stagecoach is for: which flows come in bursts, how often,
 * and how many jobs that makes.  All flows of a job burst at the same time,
 * since its workers wait for one another, and jobs do not wait for each other.
 * So the capture is cut into PROFILE_BINS pieces of time, and a flow joins the
 * group whose bytes rise and fall with its own (correlation of at least
 * PROFILE_JOIN), the largest flows first.  That is a guess, and each group
 * says how good a one.
 *
 * The file is read three times (flows, correlations, bursts of the groups),
 * so that memory grows with the flows and not with the packets.
 *
 *
 * Usage
 * =====
 *
 *    error = profile_read("in.pcap", &p);
 *    for (size_t i = 0; i < p->n_flows; i++) { ...p->flows[i]... }
 *    profile_destroy(p);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The profile owns all that it points to.  Immutable once read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"
#include "shim/classify/bursts.h"

#define PROFILE_BINS 4096       /* But none shorter than 1 ms. */
#define PROFILE_JOIN 0.6
#define PROFILE_GROUPED 512     /* The largest flows only. */
#define PROFILE_MAX_FLOWS 4000000u

/* One direction of a flow. */
struct profile_side {
    uint64_t packets, bytes;    /* Of whole frames. */
    struct burst_train *train;  /* NULL while there are few packets. */
    struct burst_profile bursts;        /* Zeros if there are none alike. */
};

struct profile_flow {
    struct shim_flow_key key;   /* "Local" sent the first frame. */
    uint64_t first, last;       /* Times of frames, ns since the epoch. */
    struct profile_side sent, received;         /* By "local". */
    size_t group;               /* In 'groups'; SIZE_MAX if in none. */
};

struct profile_group {
    size_t n_flows;
    uint64_t bytes;
    struct burst_profile bursts;        /* Of all its flows together. */
    double confidence;          /* 0 to 1: how much its flows are alike, or,
                                 * of a single flow, its bursts. */
};

struct profile {
    uint64_t frames, bytes;
    uint64_t other_frames;      /* Neither TCP nor UDP, or fragments. */
    uint64_t reordered;         /* Frames older than one before. */
    uint64_t first, last;
    struct profile_flow *flows; /* Most bytes first. */
    size_t n_flows;
    struct profile_group *groups;       /* By their largest flow. */
    size_t n_groups;
};

/* Returns NULL or a message that begins with 'file'. */
char *profile_read(const char *file, struct profile **);
void profile_destroy(struct profile *);

#endif /* shim/capture/profile.h */
