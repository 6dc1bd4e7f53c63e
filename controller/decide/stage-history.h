/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STAGE_HISTORY_H
#define STAGE_HISTORY_H 1

/* What stages took of the network, and how good that was.
 *
 * A certificate after the fact: stages that have ended took so much of each
 * port by measurement, and no schedule could have had a smaller mean than the
 * bound with the same stages beginning at the same times.  "stagecoach sim"
 * replays it.  No state; the caller owns the JSON. */

#include <stddef.h>

struct cluster;
struct json;
struct stage;

struct json *stage_history_to_json(const struct cluster *);

struct json *stage_history_ended(const struct cluster *, size_t limit);

/* One of its "stages". */
struct json *stage_history_row(const struct stage *);

#endif /* controller/decide/stage-history.h */
