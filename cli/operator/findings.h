/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FINDINGS_H
#define FINDINGS_H 1

/* What "stagecoach doctor" has found in a cluster, each with its remedy.
 *
 *    struct findings all = FINDINGS_INIT;
 *
 *    findings_add(&all, FINDING_ERROR, "h0", "systemctl start ...",
 *                 "the shim is down");
 *    findings_print(&all);
 *    findings_destroy(&all);
 *
 * A thousand hosts with one finding are one finding: places are collected for
 * the same text. */

#include <stddef.h>

#include "svec.h"

struct json;

enum finding_level {
    FINDING_ERROR,              /* A part of the cluster does not work. */
    FINDING_WARNING,            /* It works worse, or will stop. */
    FINDING_NOTE,               /* It could be better. */
    N_FINDING_LEVELS,
};

struct finding {
    enum finding_level level;
    struct svec places;         /* Names of hosts, or of other things. */
    char *what;
    char *remedy;
};

struct findings {
    struct finding *rows;
    size_t n, allocated;
};

#define FINDINGS_INIT { NULL, 0, 0 }

void findings_add(struct findings *, enum finding_level, const char *place,
                  const char *remedy, const char *what, ...)
    __attribute__((__format__(printf, 5, 6)));
void findings_destroy(struct findings *);

/* Returns the number of findings of the level. */
size_t findings_count(const struct findings *, enum finding_level);

/* Prints the findings, errors first: "LEVEL PLACE: WHAT" and the remedy.
 * Control characters, which a host may have reported, are replaced. */
void findings_print(const struct findings *);

/* Returns an array of {"level", "places", "what", "remedy"}. */
struct json *findings_to_json(const struct findings *);

#endif /* cli/operator/findings.h */
