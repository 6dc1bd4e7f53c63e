/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STAGE_HISTORY_H
#define STAGE_HISTORY_H 1

/* Reports on ended stages: their measured demand.
 *
 * "stagecoach sim" replays the report.  No state; the caller owns the JSON. */

struct cluster;
struct json;
struct stage;

struct json *stage_history_to_json(const struct cluster *);

/* Returns the element of "stages" for one stage. */
struct json *stage_history_row(const struct stage *);

#endif /* controller/decide/stage-history.h */
