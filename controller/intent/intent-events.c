/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-events.h"

#include <stdlib.h>

#include "wire/intent-idl.h"
#include "openvswitch/list.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"

#define MAX_EVENTS 1000         /* In the database. */
#define MAX_PENDING 200         /* To be written. */

/* An event that is not in the database yet. */
struct event {
    struct ovs_list node;
    int64_t at;                 /* Epoch ms. */
    char *actor, *what, *why;
};

struct intent_events {
    struct ovs_list waiting;    /* Of struct event, oldest first. */
    size_t n;
};

struct intent_events *
intent_events_create(void)
{
    struct intent_events *events = xzalloc(sizeof *events);

    ovs_list_init(&events->waiting);
    return events;
}

static void
event_destroy(struct intent_events *events, struct event *event)
{
    ovs_list_remove(&event->node);
    events->n--;
    free(event->actor);
    free(event->what);
    free(event->why);
    free(event);
}

void
intent_events_destroy(struct intent_events *events)
{
    struct event *event;

    if (events) {
        LIST_FOR_EACH_SAFE (event, node, &events->waiting) {
            event_destroy(events, event);
        }
        free(events);
    }
}

void
intent_events_add(struct intent_events *events, const char *actor,
                  const char *what, char *why)
{
    struct event *event = xmalloc(sizeof *event);

    if (events->n >= MAX_PENDING) {
        event_destroy(events, CONTAINER_OF(ovs_list_front(&events->waiting),
                                           struct event, node));
    }
    *event = (struct event) {
        .at = time_wall_msec(), .actor = xstrdup(actor), .what = xstrdup(what),
        .why = why,
    };
    ovs_list_push_back(&events->waiting, &event->node);
    events->n++;
}

bool
intent_events_waiting(const struct intent_events *events)
{
    return events->n > 0;
}

static int
compare_events(const void *a_, const void *b_)
{
    const struct intentrec_event *a = *(struct intentrec_event *const *) a_;
    const struct intentrec_event *b = *(struct intentrec_event *const *) b_;

    return a->at < b->at ? -1 : a->at > b->at;
}

/* Deletes down to 90 % of MAX_EVENTS, so that the next events need no
 * deletion. */
void
intent_events_prune(struct ovsdb_idl *idl)
{
    const struct intentrec_event *row, **rows;
    size_t n = 0, i = 0;

    INTENTREC_EVENT_FOR_EACH (row, idl) {
        n++;
    }
    if (n <= MAX_EVENTS) {
        return;
    }
    rows = xcalloc(n, sizeof *rows);
    INTENTREC_EVENT_FOR_EACH (row, idl) {
        rows[i++] = row;
    }
    qsort(rows, n, sizeof *rows, compare_events);
    for (i = 0; i < n - MAX_EVENTS * 9 / 10; i++) {
        intentrec_event_delete(rows[i]);
    }
    free(rows);
}

/* Adds all queued events to 'txn', a transaction of 'idl'. */
void
intent_events_write(struct intent_events *events, struct ovsdb_idl *idl,
                    struct ovsdb_idl_txn *txn)
{
    struct event *event;

    intent_events_prune(idl);
    LIST_FOR_EACH_SAFE (event, node, &events->waiting) {
        const struct intentrec_event *row = intentrec_event_insert(txn);

        intentrec_event_set_at(row, event->at);
        intentrec_event_set_who(row, event->actor);
        intentrec_event_set_what(row, event->what);
        intentrec_event_set_why(row, event->why);
        event_destroy(events, event);
    }
}
