/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PRINT_ENV_H
#define PRINT_ENV_H 1

/* What a job that the shim cannot see should have in its environment.
 *
 *
 * Motivation
 * ==========
 *
 * RDMA goes past the host's stack and past the shim, so nobody can tag its
 * packets but the job itself.  NCCL takes the traffic class from its
 * environment, once, when it starts.  "stagecoach run --print-env" says what
 * it should be: see docs/integrations/rdma.md for what that cannot do.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Part of the command "run". */

struct print_env {
    const char *rundir;
    const char *cojob, *job;
    const char *level;          /* Of --level, for a job that has none. */
    const char *interface;      /* Of --interface, NULL to look for it. */
};

int print_env(const struct print_env *);

#endif /* cli/edge/print-env.h */
