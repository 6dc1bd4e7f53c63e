/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/leader-search.h"

#include <string.h>

#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "ovsdb-session.h"
#include "timeval.h"
#include "util.h"
#include "uuid.h"

/* Turn of a member that does not answer. */
#define SILENT_MS 500

/* Turn of a member that refuses or rejects the IDL.  Without a leader, the IDL
 * tries five members a second. */
#define REJECTED_MS 200

static void
parse_members(const char *remote, struct svec *members)
{
    struct uuid cid;

    svec_init(members);
    ovsdb_session_parse_remote(remote, members, &cid);
}

/* Has the IDL connect to the current member. */
static void
connect_idl(const struct leader_search *ls)
{
    if (ls->idl && ls->members.n) {
        ovsdb_idl_set_remote(ls->idl, ls->members.names[ls->current], true);
        if (ls->probe_ms) {     /* Of the new session. */
            ovsdb_idl_set_probe_interval(ls->idl, ls->probe_ms);
        }
    }
}

void
leader_search_init(struct leader_search *ls, struct ovsdb_idl *idl,
                   const char *remote, int probe_ms)
{
    *ls = (struct leader_search) { .idl = idl, .probe_ms = probe_ms };
    parse_members(remote, &ls->members);
    connect_idl(ls);
}

void
leader_search_uninit(struct leader_search *ls)
{
    svec_destroy(&ls->members);
}

void
leader_search_set_remote(struct leader_search *ls, const char *remote)
{
    struct svec old = ls->members;
    size_t i;

    parse_members(remote, &ls->members);
    for (i = 0; i < ls->members.n; i++) {
        if (old.n && !strcmp(ls->members.names[i], old.names[ls->current])) {
            break;
        }
    }
    /* If the current member has left, the first one has the next turn. */
    ls->current = i < ls->members.n ? i : i ? i - 1 : 0;
    svec_destroy(&old);
}

bool
leader_search_advance(struct leader_search *ls, bool connected, bool refused,
                      long long now)
{
    bool rejected = ls->connected || refused;

    ls->connected = connected;
    if (connected || ls->members.n < 2) {
        ls->next = 0;
        return false;
    } else if (rejected) {
        ls->next = MAX(now, ls->since + REJECTED_MS);
    } else if (!ls->next) {
        ls->next = now + SILENT_MS;
    }
    if (now < ls->next) {
        return false;
    }
    ls->current = (ls->current + 1) % ls->members.n;
    ls->since = now;
    ls->next = now + SILENT_MS;
    return true;
}

void
leader_search_run(struct leader_search *ls)
{
    if (leader_search_advance(ls, ovsdb_idl_is_connected(ls->idl),
                              ovsdb_idl_get_last_error(ls->idl) != 0,
                              time_msec())) {
        connect_idl(ls);
    }
}

void
leader_search_wait(const struct leader_search *ls)
{
    if (ls->next) {
        poll_timer_wait_until(ls->next);
    }
}
