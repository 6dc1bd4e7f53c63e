/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTERLEAVE_REPORT_H
#define INTERLEAVE_REPORT_H 1

/* Which of the running jobs could take turns on their ports.
 *
 * Jobs whose pace has been measured, and who communicate for a part of each
 * iteration only, are compared with those that they meet, see
 * order/interleave.h.  It is advice for whoever places jobs or lets
 * them begin: nothing here delays anybody.  No state; the caller owns the
 * JSON. */

#include <stdint.h>

struct cluster;
struct json;
struct policy;

struct json *interleave_report_to_json(const struct cluster *,
                                       const struct policy *, int64_t now);

#endif /* controller/northbound/views/interleave-report.h */
