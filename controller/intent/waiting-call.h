/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WAITING_CALL_H
#define WAITING_CALL_H 1

/* Edits of the intent database that wait until it answers.
 *
 *    ovs_list_init(&list);
 *    waiting_call_push(&list, &edit);
 *    LIST_FOR_EACH_SAFE (w, node, &list) {
 *        ...w->edit...
 *        waiting_call_destroy(w);
 *    }
 *
 * Ownership: strings are copied.  One thread. */

#include "controller/intent/intent-edit.h"
#include "openvswitch/list.h"

/* A call whose strings are its own. */
struct waiting_call {
    struct ovs_list node;       /* In the list that it was pushed to. */
    struct intent_edit edit;
};

void waiting_call_push(struct ovs_list *, const struct intent_edit *);
void waiting_call_destroy(struct waiting_call *);

#endif /* controller/intent/waiting-call.h */
