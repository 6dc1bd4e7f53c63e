/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/leadership.h"

#include "util.h"

enum leadership_action
leadership_run(struct leadership *l, const struct leadership_view *view)
{
    if (l->active) {
        if (l->newest > l->generation) {
            l->active = false;
            return LEADERSHIP_END_FENCED;
        } else if (view->connected && (view->lock_contended
                                       || view->generation > l->generation)) {
            l->active = false;
            return LEADERSHIP_END_REPLACED;
        }
    } else if (view->has_txn && view->has_lock && view->loaded) {
        if (l->requested && view->generation == l->requested
            && view->is_own_row) {
            l->active = true;
            l->generation = l->requested;
            l->requested = 0;
            return LEADERSHIP_BEGIN;
        }
        l->requested = MAX(view->generation, l->newest) + 1;
        return LEADERSHIP_REQUEST;
    }
    return LEADERSHIP_KEEP;
}

bool
leadership_may_write(const struct leadership *l,
                     const struct leadership_view *view)
{
    return l->active && view->connected && view->has_txn;
}
