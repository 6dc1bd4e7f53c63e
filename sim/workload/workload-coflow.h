/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_COFLOW_H
#define WORKLOAD_COFLOW_H 1

/* Reads a trace of coflow-benchmark.
 *
 * The one public trace of coflows is what published orders are compared on, so
 * ours must run it too.  Its first line is "PORTS COFLOWS", each other line
 * a coflow:
 *
 *    ID ARRIVAL_MS M MAPPER_1 .. MAPPER_M R REDUCER_1:MB_1 .. REDUCER_R:MB_R
 *
 * There are no comments.  Mappers and reducers are racks from 0 on.  Each
 * reducer gets its MB (2^20 bytes) in equal parts from all mappers, also from
 * one in its own rack. Links have 1 Gbit/s as the literature counts it, 128
 * MB/s.
 *
 * The workload is the caller's. */

#include <stdio.h>

struct workload;

/* Reads at most 'max_coflows', or all if that is 0.  'name' is what messages
 * begin with.  Returns NULL and stores the workload in '*wp', or returns a
 * malloc()'d message, "NAME:LINE: what was found, what is allowed", and stores
 * NULL. */
char *workload_coflow_read(const char *name, FILE *stream, size_t max_coflows,
                           struct workload **wp);
char *workload_coflow_from_file(const char *file, struct workload **wp);

#endif /* sim/workload/workload-coflow.h */
