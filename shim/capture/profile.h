/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CAPTURE_PROFILE_H
#define CAPTURE_PROFILE_H 1

/* Analysis of a capture: flows, their bursts, and which flows belong together.
 *
 * A capture of a port can show, before an agent is installed, whether its
 * traffic suits Stagecoach: which flows send bursts, how often, and how many
 * jobs there are.  All flows of a job burst at the same time, since its
 * workers wait for one another; different jobs do not wait for each other.  So
 * the capture is divided into PROFILE_BINS intervals, and a flow joins the
 * group whose bytes per interval correlate best with its own, by at least
 * PROFILE_JOIN, the largest flows first.  That is a guess; each group has a
 * confidence.
 *
 * The file is read three times (flows, correlations, bursts of the groups),
 * so that memory grows with the flows and not with the packets.
 *
 *    error = profile_read("in.pcap", &p);
 *    for (size_t i = 0; i < p->n_flows; i++) { ...p->flows[i]... }
 *    profile_destroy(p);
 *
 * The profile owns all that it points to.  Immutable once read. */

#include <stddef.h>
#include <stdint.h>

#include "shim/classify/bursts.h"
#include "wire/shim-protocol.h"

#define PROFILE_BINS 4096       /* Intervals, of 1 ms at least. */
#define PROFILE_JOIN 0.6
#define PROFILE_GROUPED 512     /* Flows to group, the largest ones. */
#define PROFILE_MAX_FLOWS 4000000u

/* One direction of a flow. */
struct profile_side {
    uint64_t packets, bytes;    /* Of whole frames. */
    struct burst_train *train;  /* NULL while there are few packets, and after
                                 * profile_read(). */
    struct shim_burst_stats bursts;     /* Zeros if not regular. */
};

struct profile_flow {
    struct shim_flow_key key;   /* "Local" sent the first frame. */
    uint64_t first, last;       /* Times of frames, ns since the epoch. */
    struct profile_side sent, received;         /* By the local end. */
    size_t group;               /* In 'groups'; SIZE_MAX if in none. */
};

struct profile_group {
    size_t n_flows;
    uint64_t bytes;
    struct shim_burst_stats bursts;     /* Of all its flows together. */
    double confidence;          /* 0 to 1: correlation of its flows, or
                                 * regularity of a single flow's bursts. */
};

struct profile {
    uint64_t frames, bytes;
    uint64_t other_frames;      /* Neither TCP nor UDP, or fragments. */
    uint64_t reordered;         /* Frames older than the previous one. */
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
