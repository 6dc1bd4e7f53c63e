/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAINER_LIMITS_H
#define TRAINER_LIMITS_H 1

#include "trainer/schemes/sync.h"

/* Sizes of jobs, for the options that set them and the arrays that hold them.
 *
 * Peers, or nodes, of a job: each has a connection to each other one, and
 * messages name ranks by 4 bytes, so that the number of connections, not the
 * protocol, is what a larger limit would cost. */
#define TRAINER_MAX_RANKS SYNC_MAX_PEERS

/* Processes of a job that one command starts on this machine. */
#define TEAM_MAX_SERVERS 8
#define TEAM_MAX_WORKERS 64

#endif /* trainer/process/limits.h */
