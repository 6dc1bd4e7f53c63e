/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATAGRAM_H
#define DATAGRAM_H 1

/* Datagram of a job: its progress, its transfers, or a port of its control
 * class.
 *
 * Any process of the host may send anything to the progress socket, so parsing
 * is separate from the socket and can be tested and fuzzed without it.
 *
 *    char *error = progress_parse(data, size, name, &progress);
 *
 * docs/interfaces.md lists the members; progress-json.h reads those of the
 * progress.  Unknown members are ignored, because an older agent must accept
 * the datagrams of newer jobs.
 *
 * No state.  Thread-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name.h"

#define PROGRESS_MAX_BYTES 4096
#define PROGRESS_NAME_SIZE NAME_PAIR_SIZE /* "COJOB/JOB". */
#define PROGRESS_MAX_INTEGER                       \
    (INT64_C(1) << 53) /* A double holds all up to \
                        * it exactly. */

struct progress {
    int64_t iteration;          /* Completed iterations since the beginning
                                 * of the job, -1 if there are others only. */
    uint16_t control_port;      /* TCP or UDP port whose flows are in the
                                 * control class, or 0. */
    int64_t stage;              /* Rung, -1 if unknown. */
    int64_t time;               /* ms since the epoch by the job's clock, 0
                                 * if unknown. */
    char metric[METRIC_SIZE];   /* Name of 'value', empty without a value. */
    double value;               /* Finite. */
    bool has_value;
    bool left_out; /* A member beside the iteration was none. */

    /* What a process has transferred since its last datagram. */
    int64_t sent, received; /* Bytes, -1 if not reported. */
    int64_t posted;         /* Bytes, of another count than 'sent'. */
    int64_t counted;        /* Iterations by its collectives, -1 if unknown. */
};

char *progress_parse(const char *data, size_t size,
                     char name[PROGRESS_NAME_SIZE], struct progress *);

#endif /* wire/progress-datagram.h */
