/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TAIL_PROTOCOL_H
#define TAIL_PROTOCOL_H 1

/* What the agent and a stagecoach-tail send each other.
 *
 * The agent starts one stagecoach-tail for each job with a log, with these
 * descriptors:
 *
 *    TAIL_CONTROL   SOCK_SEQPACKET pair: the agent sends one struct
 *                   tail_start, the tail a struct tail_report with each
 *                   progress, and once a second
 *    TAIL_PROCESS   pidfd of a process of the job
 *    TAIL_SELF      its own program, which it closes
 *
 * Both are of the same build, so the structs have no version; the agent starts
 * the program that it found beside itself when it started.
 *
 * The agent does not rely on a report: its text is made printable, its
 * progress must be valid, and the other numbers are only shown. */

#include <stdint.h>

#include "base/name.h"
#include "wire/progress-datagram.h"

#define TAIL_CONTROL 3
#define TAIL_PROCESS 4
#define TAIL_SELF 5

#define TAIL_PROGRAM "stagecoach-tail"
#define TAIL_MAX_GROUPS 64
#define TAIL_MAX_SPEC 4096      /* Bytes of a specification, with its null
                                 * byte. */
#define TAIL_REPORT_MS 1000     /* Time between reports. */

struct tail_start {
    uint32_t uid, gid;          /* Of the process of the job. */
    uint32_t n_groups;          /* Number of its supplementary groups. */
    uint32_t groups[TAIL_MAX_GROUPS];
    char job[PROGRESS_NAME_SIZE];       /* "COJOB/JOB". */
    char spec[TAIL_MAX_SPEC];   /* Text for log_spec_parse(). */
};

enum tail_state {
    TAIL_READING,
    TAIL_REFUSED,               /* The specification or an expression is not
                                 * valid, or an expression has reached a
                                 * limit.  The tail exits, and a new one with
                                 * this specification would, too. */
    TAIL_FAILED,                /* The tail could not take the rights of the
                                 * job and exits. */
};

struct tail_report {
    uint32_t state;             /* enum tail_state. */
    uint32_t n_files;           /* Files that are read. */
    uint32_t bad;               /* Files that cannot be read. */
    uint32_t refused;           /* Files that the job may not read. */
    uint64_t records, malformed, no_value; /* Of all files. */
    uint64_t skipped_bytes;

    /* Last progress, as in struct progress. */
    int64_t iteration; /* -1 before the first one. */
    int64_t stage;
    double value;             /* NAN if unknown. */
    char metric[METRIC_SIZE]; /* Empty if 'value' is unknown. */

    char words[256];            /* What an operator should know, one line;
                                 * empty if there is nothing. */
};

#endif /* agent/tail/tail-protocol.h */
