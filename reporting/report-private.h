/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPORT_PRIVATE_H
#define REPORT_PRIVATE_H 1

/* What the files that fill a report and show it share, see reporting/report.h. */

#include "reporting/report.h"

/* Returns 'p', unless it is null: then this ends the program. */
void *report_must(void *p);

/* Returns NULL if 'cojob' is not a search of the policy's run. */
struct report_search *report_find_search(const struct report_policy *,
                                         const char *cojob);

/* Returns the times that the stages which ended took, sorted, which the caller
 * frees, and stores their number in '*np'. */
double *report_stage_times(const struct report_policy *, size_t *np);

#endif /* reporting/report-private.h */
