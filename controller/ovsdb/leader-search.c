/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/leader-search.h"

#include <stdlib.h>
#include <string.h>

#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"

#define ROTATE_MS 500

/* Age from which on a connection is stable: an IDL leaves a member that is not
 * the leader only after it has connected. */
#define STABLE_MS 500

static void
set_probe_interval(const struct leader_search *ls)
{
    if (ls->probe_ms) {
        ovsdb_idl_set_probe_interval(ls->idl, ls->probe_ms);
    }
}

void
leader_search_init(struct leader_search *ls, struct ovsdb_idl *idl,
                   const char *remote, int probe_ms)
{
    *ls = (struct leader_search) {
        .idl = idl, .remote = xstrdup(remote), .probe_ms = probe_ms,
    };
    set_probe_interval(ls);
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

void
leader_search_run(struct leader_search *ls)
{
    if (leader_search_rotate(ls, ovsdb_idl_is_connected(ls->idl),
                             time_msec())) {
        ovsdb_idl_set_remote(ls->idl, ls->remote, true);
        set_probe_interval(ls);         /* Of the new session. */
    }
}

void
leader_search_wait(const struct leader_search *ls)
{
    if (ls->next) {
        poll_timer_wait_until(ls->next);
    }
}
