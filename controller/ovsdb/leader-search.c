/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/leader-search.h"

#include <stdlib.h>
#include <string.h>

#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"

#define ROTATE_MS 1000

/* Age from which on a connection is stable: an IDL leaves a member that is not
 * the leader only after it has connected. */
#define STABLE_MS 500

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

/* Sets the list of members to 'remote'.  A current connection is kept. */
void
leader_search_set_remote(struct leader_search *ls, const char *remote)
{
    free(ls->remote);
    ls->remote = xstrdup(remote);
}

bool
leader_search_rotate(struct leader_search *ls, bool connected, long long now)
{
    const char *comma = strchr(ls->remote, ',');
    char *rotated;

    ls->connected = !connected ? 0 : ls->connected ? ls->connected : now;
    if (!comma || (connected && now >= ls->connected + STABLE_MS)) {
        ls->next = 0;
        return false;
    } else if (!ls->next) {
        ls->next = now + ROTATE_MS;
        return false;
    } else if (now < ls->next || connected) {
        return false;
    }
    ls->next = now + ROTATE_MS;
    rotated = xasprintf("%s,%.*s", comma + 1, (int) (comma - ls->remote),
                        ls->remote);
    free(ls->remote);
    ls->remote = rotated;
    return true;
}

/* Returns true if 'idl' starts a new session. */
bool
leader_search_run(struct leader_search *ls, struct ovsdb_idl *idl)
{
    if (!leader_search_rotate(ls, ovsdb_idl_is_connected(idl),
                              time_msec())) {
        return false;
    }
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
