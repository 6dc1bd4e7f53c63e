/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_OPEN_H
#define WORKLOAD_OPEN_H 1

/* Opens whatever can be simulated: the one place that knows which file is
 * what, for "stagecoach sim" and "stagecoach policy".
 *
 *    char *error = workload_open("trace.txt", &workload, NULL);
 *
 * "generate:SEED,NAME=VALUE..." is made by chance, see workload-generate.h.  A
 * file that begins like JSON is a lab scenario, any other a trace of
 * coflow-benchmark. */

struct scenario;
struct workload;

/* Returns NULL, or a message that the caller frees.  The workload is the
 * caller's; so is the scenario, NULL if 'file' is none.  'scenariop' may be
 * null for those who do not need it. */
char *workload_open(const char *file, struct workload **,
                    struct scenario **scenariop);

#endif /* cli/workload-open.h */
