/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TAIL_PROCESS_H
#define TAIL_PROCESS_H 1

/* One stagecoach-tail, as the agent sees it.
 *
 * The agent must never wait for a tail: its file system may not answer, and
 * its tenant can stop or kill it.  So starting, reading reports and killing do
 * not block, and the agent judges by its own clock: a tail without a report
 * for TAIL_LATE_MS is killed.  A process that waits for a dead file system may
 * not even end then; it stays in state TAIL_STOPPING, until the kernel
 * reports its end.
 *
 *    error = tail_program_open(&program);        // Once, at the start.
 *    error = tail_process_start(program, &start, pidfd, now, &t);
 *    for (;;) {
 *        if (!tail_process_run(t, now)) {
 *            ...it has ended, t->end says how...
 *            tail_process_destroy(t);
 *        }
 *        tail_process_wait(t);
 *        poll_block();
 *    }
 *
 * Main thread only.  Members are read-only outside this module. */

#include <stdbool.h>
#include <sys/types.h>

#include "agent/tail/tail-protocol.h"
#include "openvswitch/list.h"

#define TAIL_LATE_MS 10000

struct tail_process {
    struct ovs_list node; /* In a list of the owner, or unused. */
    pid_t pid;
    uid_t uid;                  /* User of the job. */
    int pidfd;                  /* Of the tail. */
    int control;                /* TAIL_CONTROL's other end, -1 after it was
                                 * closed. */
    long long started;          /* time_msec(). */
    long long last_rx;          /* time_msec() of the last report. */
    bool stopping;              /* SIGKILL was sent. */
    bool late;                  /* It was sent because of TAIL_LATE_MS. */
    struct tail_report report;  /* The last one, 'words' printable and
                                 * terminated. */
    char end[64];               /* How it ended. */
};

/* Opens the program beside this one and stores a descriptor, -1 on error.  A
 * later version that replaces the file is not used.  Returns 0 or a positive
 * errno value. */
int tail_program_open(int *fdp);

/* Starts a tail with the rights of 'start'.  'pidfd' becomes TAIL_PROCESS; the
 * caller still owns it.  Returns 0 or a positive errno value. */
int tail_process_start(int program, const struct tail_start *start, int pidfd,
                       long long now, struct tail_process **);

/* Kills a tail that has not ended, without waiting for its end. */
void tail_process_stop(struct tail_process *);

/* Frees 't' after its end.  A tail that has not ended is killed, and the
 * kernel keeps its exit status until this process exits. */
void tail_process_destroy(struct tail_process *);

/* Stores the progress of the last report.  Returns false if that has none, or
 * none that is valid. */
bool tail_process_progress(const struct tail_process *, struct progress *);

/* Receives reports, kills a late tail, and returns false once it has ended. */
bool tail_process_run(struct tail_process *, long long now);
void tail_process_wait(const struct tail_process *);

#endif /* agent/progress/tail-process.h */
