/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_ANNOUNCEMENT_H
#define INTENT_ANNOUNCEMENT_H 1

/* What a search announced and hid, by the stages of its cojob in the database.
 *
 * The stage before a stage is the one of the next smaller rung that had ended
 * when the stage began; without one a stage is a first one, and so
 * is an asynchronous one, see stage_trials_announced().
 * Nothing is kept outside of the database, so a restarted controller finds the
 * same.  Pure functions. */

#include "order/problem/announcement.h"

struct intentrec_cojob;
struct intentrec_stage;

struct announcement intent_announcement(const struct intentrec_cojob *,
                                        const struct intentrec_stage *);

/* Stores the rungs that a stage announced to follow in '*rungsp', which the
 * caller frees, and returns their number. */
size_t intent_later_rungs(const struct intentrec_stage *,
                          struct announced_rung **rungsp);

#endif /* controller/intent/intent-announcement.h */
