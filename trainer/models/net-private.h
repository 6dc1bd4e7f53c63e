/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NET_PRIVATE_H
#define NET_PRIVATE_H 1

/* What a net is to its own files: net.c, which builds it, and net-step.c,
 * which computes with it.  See net.h.
 *
 *
 * Motivation
 * ==========
 *
 * Everything that a step reads and writes is decided when the net is finished,
 * and changes only when a batch is larger than any before.
 *
 *
 * Usage
 * =====
 *
 * net-step.c calls net_resize() before a batch that is too large; net.c calls
 * net_forget_step() before memory goes that recordings know.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * As net.h says. */

#include "trainer/backend/backend.h"
#include "trainer/models/layer.h"
#include "trainer/models/net.h"

#define NET_MAX_LAYERS BACKEND_MAX_PARTS

struct net_part {
    int layer;                  /* Final when this has gone backward. */
    size_t first, n;            /* Of the gradient. */
};

/* A step for batches of 'n' samples.  The first is done call by call, because
 * libraries prepare themselves in it; the second is recorded. */
struct net_step {
    int n;                      /* 0: none. */
    bool updates;               /* The weights; sends no gradient. */
    int n_done;
    struct backend_recording *recording;        /* NULL: call by call. */
};

#define NET_N_STEPS 8               /* Sizes of batches that are remembered. */

struct net {
    struct model up;
    struct backend *b;
    struct layer layers[NET_MAX_LAYERS];
    int n_layers;
    struct net_part parts[NET_MAX_LAYERS];      /* As they leave. */
    int n_parts;
    float rate, momentum;       /* Of steps that update. */
    struct net_step steps[NET_N_STEPS];
    int next_step;              /* Which of them is forgotten next. */

    /* Samples on the host, where the backend takes them from while other
     * things go on; NULL if it does not. */
    float *staged_x;
    int32_t *staged_labels;

    /* Of the backend. */
    float *d_weights, *d_gradient;
    float *d_velocity;          /* NULL until a step updates. */
    int32_t *d_labels;
    float *d_columns;
};

static inline struct net *
net_cast(const struct model *model)
{
    return (struct net *) model;
}

/* Makes room for batches of 'max_batch' samples. */
void net_resize(struct net *, int max_batch);
void net_forget_step(struct net *, struct net_step *);

#endif /* trainer/models/net-private.h */
