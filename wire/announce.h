/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ANNOUNCE_H
#define ANNOUNCE_H 1

/* Changes of the intent: what searches announce and operators request.
 *
 * A search begins, has jobs that run on hosts, goes through stages and ends.
 * Each of these steps is one edit of the intent database.  Edits are
 * idempotent: an edit that is repeated changes nothing.
 *
 * A search runs the same with or without a controller.  It passes its edits to
 * a function and gets no result.  The command line passes
 * intent_client_announce(), which writes to the intent database; tests pass a
 * function that records. */

#include <stdbool.h>
#include <stddef.h>

#include "wire/rungs.h"

/* One process of a job. */
struct intent_worker {
    const char *host;           /* Name of the host in the cluster. */
    const char *role;           /* "worker", "server" or "peer". */
    int index;                  /* Among the processes of this role. */
};

enum intent_kind {
    INTENT_COJOB_BEGIN, /* 'weight', 'owner', 'uid'. */
    INTENT_COJOB_END,   /* Ends its jobs and stages, too. */
    INTENT_JOB_BEGIN,   /* 'job', 'workers', 'model_bytes'. */
    INTENT_JOB_END,     /* 'job', 'outcome'. */
    INTENT_STAGE_BEGIN, /* 'rung', 'rungs', 'jobs', 'eta', 'to_come',
                         * 'trials', 'bytes_per_iteration', 'compute_s'. */
    INTENT_STAGE_END,   /* 'rung'. */
    N_INTENT_KINDS,
};

/* One edit.  Besides 'cojob', only the members that are listed at the kind are
 * used. */
struct intent_edit {
    enum intent_kind kind;
    const char *cojob;
    const char *job;
    const char *owner;          /* NULL: the user of this process. */
    long long uid;              /* User of the processes of the jobs, with
                                 * 'owner'; 0: of any user. */
    bool as_user;               /* Refused unless the cojob is one of 'owner'
                                 * with 'uid', ended or new. */
    double total;               /* With 'as_user', largest sum of the weights
                                 * of the running cojobs of 'owner'. */
    const char *outcome;        /* "stopped" (by the search), "done" or
                                 * "failed". */
    double weight;              /* Of the cojob, 1 is the default. */
    const struct intent_worker *workers;        /* Processes of 'job'. */
    const char *const *jobs;    /* Jobs of the stage; unknown ones begin. */
    double eta;                 /* The search judges trials one by one, and
                                 * one in so many, at least 2, passes a rung;
                                 * 0: all jobs of a stage together. */
    long long to_come;          /* With 'eta', trials that have not begun. */
    const char *trials;         /* With 'eta', "neutral" or "promising"; NULL:
                                 * as the policy has it. */
    size_t n;                   /* Number of 'workers' or 'jobs'. */
    long long model_bytes;      /* Bytes that a worker pushes, and pulls, in an
                                 * iteration: used until the traffic has been
                                 * measured.  0 if unknown. */
    int rung;
    const struct search_rung *rungs; /* The stage's, and those after it, as
                                      * far as they are known; with 'eta',
                                      * all, without 'keep'. */
    size_t n_rungs;                  /* At least 1. */
    long long bytes_per_iteration;   /* That all processes of a job send
                                      * together, the mean of the stage's jobs;
                                      * 0 if unknown. */
    double compute_s; /* Seconds of an iteration in which a job does
                       * not transfer; 0 if unknown. */
};

typedef void announce_func(void *aux, const struct intent_edit *);

#endif /* wire/announce.h */
