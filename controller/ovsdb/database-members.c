/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/database-members.h"

#include <stdlib.h>
#include <string.h>

#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(database_members);

/* Whoever adds a member looks at what becomes of it for longer. */
#define ASK_MS 2000

struct database_members {
    const struct database *db;
    char *rundir;
    struct jsonrpc_session *session;    /* With the server's control socket. */
    unsigned int seqno;         /* Of the connection that was asked last. */
    struct json *id;            /* Of the request on its way, or NULL. */
    long long next;             /* time_msec() of the next request. */
    char *remote;               /* As told last, or NULL. */
};

struct database_members *
database_members_create(const struct database *db, const char *rundir)
{
    struct database_members *dm = xzalloc(sizeof *dm);
    char *ctl = database_ctl(db, rundir);
    char *name = xasprintf("unix:%s", ctl);

    dm->db = db;
    dm->rundir = xstrdup(rundir);
    dm->session = jsonrpc_session_open(name, true);
    free(name);
    free(ctl);
    return dm;
}

void
database_members_destroy(struct database_members *dm)
{
    if (dm) {
        jsonrpc_session_close(dm->session);
        json_destroy(dm->id);
        free(dm->remote);
        free(dm->rundir);
        free(dm);
    }
}

static void
ask(struct database_members *dm)
{
    struct json *params
        = json_array_create_1(json_string_create(dm->db->schema));
    struct jsonrpc_msg *msg = jsonrpc_create_request("cluster/status",
                                                     params, NULL);

    json_destroy(dm->id);
    dm->id = json_clone(msg->id);
    dm->next = time_msec() + ASK_MS;
    jsonrpc_session_send(dm->session, msg);
}

/* Returns where the members are, or NULL if 'reply' does not say so. */
static char *
read_reply(const struct database_members *dm, const struct jsonrpc_msg *reply)
{
    struct database_cluster dc;
    char *remote = NULL;

    if (reply->type == JSONRPC_REPLY && reply->result
        && reply->result->type == JSON_STRING) {
        database_cluster_parse(json_string(reply->result), &dc);
        if (dc.members.n) {
            remote = database_cluster_remote(dm->db, dm->rundir, &dc);
        }
        database_cluster_uninit(&dc);
    }
    return remote;
}

/* Returns true if 'remote', which is taken over, is another than before. */
static bool
take(struct database_members *dm, char *remote)
{
    bool changed = remote && (!dm->remote || strcmp(dm->remote, remote));

    if (changed) {
        VLOG_INFO("%s: the members are at %s", dm->db->name, remote);
        free(dm->remote);
        dm->remote = remote;
    } else {
        free(remote);
    }
    return changed;
}

/* Returns where clients find the members if that has changed, which the caller
 * frees; NULL otherwise. */
char *
database_members_run(struct database_members *dm)
{
    struct jsonrpc_msg *msg;
    bool changed = false;

    jsonrpc_session_run(dm->session);
    while ((msg = jsonrpc_session_recv(dm->session))) {
        if (dm->id && msg->id && json_equal(dm->id, msg->id)) {
            json_destroy(dm->id);
            dm->id = NULL;
            changed |= take(dm, read_reply(dm, msg));
        }
        jsonrpc_msg_destroy(msg);
    }
    if (jsonrpc_session_is_connected(dm->session)
        && (dm->seqno != jsonrpc_session_get_seqno(dm->session)
            || (!dm->id && time_msec() >= dm->next))) {
        dm->seqno = jsonrpc_session_get_seqno(dm->session);
        ask(dm);
    }
    return changed ? xstrdup(dm->remote) : NULL;
}

void
database_members_wait(struct database_members *dm)
{
    jsonrpc_session_wait(dm->session);
    jsonrpc_session_recv_wait(dm->session);
    if (!dm->id && jsonrpc_session_is_connected(dm->session)) {
        poll_timer_wait_until(dm->next);
    }
}
