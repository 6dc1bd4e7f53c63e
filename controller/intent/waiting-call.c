/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/waiting-call.h"

#include <stdlib.h>
#include <string.h>

#include "wire/announce.h"
#include "util.h"

void
waiting_call_push(struct ovs_list *list, const struct intent_edit *edit)
{
    struct waiting_call *w = xmalloc(sizeof *w);

    w->edit = *edit;
    w->edit.cojob = nullable_xstrdup(edit->cojob);
    w->edit.job = nullable_xstrdup(edit->job);
    w->edit.owner = nullable_xstrdup(edit->owner);
    w->edit.outcome = nullable_xstrdup(edit->outcome);
    if (edit->jobs) {
        const char **jobs = xcalloc(edit->n + 1, sizeof *jobs);

        for (size_t i = 0; i < edit->n; i++) {
            jobs[i] = xstrdup(edit->jobs[i]);
        }
        w->edit.jobs = jobs;
    } else if (edit->workers) {
        struct announce_worker *workers = xcalloc(edit->n + 1,
                                                  sizeof *workers);

        for (size_t i = 0; i < edit->n; i++) {
            workers[i] = edit->workers[i];
            workers[i].host = xstrdup(edit->workers[i].host);
            workers[i].role = xstrdup(edit->workers[i].role);
        }
        w->edit.workers = workers;
    }
    ovs_list_push_back(list, &w->node);
}

void
waiting_call_destroy(struct waiting_call *w)
{
    for (size_t i = 0; i < w->edit.n; i++) {
        if (w->edit.jobs) {
            free(CONST_CAST(char *, w->edit.jobs[i]));
        } else {
            free(CONST_CAST(char *, w->edit.workers[i].host));
            free(CONST_CAST(char *, w->edit.workers[i].role));
        }
    }
    free(CONST_CAST(void *, (const void *) w->edit.jobs));
    free(CONST_CAST(struct announce_worker *, w->edit.workers));
    free(CONST_CAST(char *, w->edit.cojob));
    free(CONST_CAST(char *, w->edit.job));
    free(CONST_CAST(char *, w->edit.owner));
    free(CONST_CAST(char *, w->edit.outcome));
    ovs_list_remove(&w->node);
    free(w);
}
