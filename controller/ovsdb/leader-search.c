/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/leader-search.h"

#include <stdlib.h>
#include <string.h>

#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"

#define TURN_MS 1000
#define SETTLE_MS 500

void
leader_search_init(struct leader_search *ls, const char *remote)
{
    *ls = (struct leader_search) { .remote = xstrdup(remote) };
}

void
leader_search_uninit(struct leader_search *ls)
{
    free(ls->remote);
}

/* The members are at 'remote' from now on.  Who is connected to the leader
 * stays there: the list is of use when there is another one. */
void
leader_search_set_remote(struct leader_search *ls, const char *remote)
{
    free(ls->remote);
    ls->remote = xstrdup(remote);
}

/* Puts the first of the list behind the last. */
static void
turn(struct leader_search *ls)
{
    char *comma = strchr(ls->remote, ',');
    char *turned = xasprintf("%s,%.*s", comma + 1,
                             (int) (comma - ls->remote), ls->remote);

    free(ls->remote);
    ls->remote = turned;
}

/* A member that is not the leader is only left again after a connection. */
static bool
is_settled(struct leader_search *ls, const struct ovsdb_idl *idl)
{
    if (!ovsdb_idl_is_connected(idl)) {
        ls->connected = 0;
    } else if (!ls->connected) {
        ls->connected = time_msec();
    }
    return ls->connected && time_msec() >= ls->connected + SETTLE_MS;
}

/* Returns true if 'idl' begins a new session. */
bool
leader_search_run(struct leader_search *ls, struct ovsdb_idl *idl)
{
    if (!strchr(ls->remote, ',') || is_settled(ls, idl)) {
        ls->next = 0;
        return false;
    } else if (!ls->next) {
        ls->next = time_msec() + TURN_MS;
        return false;
    } else if (time_msec() < ls->next || ls->connected) {
        return false;
    }
    ls->next = time_msec() + TURN_MS;
    turn(ls);
    ovsdb_idl_set_remote(idl, ls->remote, true);
    return true;
}

void
leader_search_wait(const struct leader_search *ls)
{
    if (ls->next) {
        poll_timer_wait_until(ls->next);
    }
}
