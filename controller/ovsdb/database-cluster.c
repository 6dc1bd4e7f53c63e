/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/database-cluster.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/instant.h"
#include "controller/ovsdb/answers.h"
#include "controller/ovsdb/database.h"
#include "controller/ovsdb/rpc-call.h"
#include "controller/ovsdb/rpc-poll.h"
#include "jsonrpc.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "sset.h"
#include "timeval.h"
#include "util.h"
#include "wire/alarm.h"

VLOG_DEFINE_THIS_MODULE(database_cluster);

#define ASK_MS 1000 /* Between two requests. */

/* Time for which a member that answers may be without a leader.  A member that
 * returns waits for up to 8 s until it connects to the others again. */
#define LEADERLESS_MS 10000

struct member {
    struct rpc_poll *poll;
    struct instant answered;   /* Last answer; at first, of the start. */
    struct instant leaderless; /* Since when the member answers that it has no
                                * leader while another one has; msec 0 if it
                                * has one. */
};

struct member_health {
    const struct database *db;
    struct shash members; /* "struct member", by remote. */
};

struct member_health *
member_health_create(const struct database *db)
{
    struct member_health *mh = xmalloc(sizeof *mh);

    mh->db = db;
    shash_init(&mh->members);
    return mh;
}

static void
add_member(struct member_health *mh, const char *remote)
{
    struct member *member = xzalloc(sizeof *member);

    member->poll = rpc_poll_create(remote, "transact",
                                   database_state_query(mh->db), ASK_MS);
    member->answered = instant_now();
    shash_add_once(&mh->members, remote, member);
}

static void
remove_member(struct member_health *mh, struct shash_node *node)
{
    struct member *member = node->data;

    shash_delete(&mh->members, node);
    rpc_poll_destroy(member->poll);
    free(member);
}

void
member_health_set_remote(struct member_health *mh, const char *remote)
{
    struct shash_node *node;
    const char *name;
    struct sset names;

    sset_from_delimited_string(&names, remote, ",");
    if (sset_count(&names) == 1) {
        sset_clear(&names);
    }
    SHASH_FOR_EACH_SAFE(node, &mh->members)
    {
        if (!sset_contains(&names, node->name)) {
            remove_member(mh, node);
        }
    }
    SSET_FOR_EACH (name, &names) {
        if (!shash_find(&mh->members, name)) {
            add_member(mh, name);
        }
    }
    sset_destroy(&names);
}

void
member_health_destroy(struct member_health *mh)
{
    if (mh) {
        member_health_set_remote(mh, "");
        shash_destroy(&mh->members);
        free(mh);
    }
}

static bool
is_silent(const struct member *member, long long now)
{
    return now >= member->answered.msec + ANSWERS_MS;
}

static bool
is_leaderless(const struct member *member, long long now)
{
    return (member->leaderless.msec
            && now >= member->leaderless.msec + LEADERLESS_MS);
}

/* 'led' is true if any member has a leader. */
static void
run_member(struct member *member, bool led)
{
    struct jsonrpc_msg *reply = rpc_poll_run(member->poll);
    struct instant now = instant_now();

    if (reply) {
        if (database_state_is_connected(reply)) {
            member->leaderless.msec = 0;
        } else if (!member->leaderless.msec || !led
                   || is_silent(member, now.msec)) {
            member->leaderless = now;
        }
        member->answered = now;
        jsonrpc_msg_destroy(reply);
    }
}

void
member_health_run(struct member_health *mh)
{
    long long now = time_msec();
    struct shash_node *node;
    bool led = false;

    SHASH_FOR_EACH (node, &mh->members) {
        const struct member *member = node->data;

        led |= !member->leaderless.msec && !is_silent(member, now);
    }
    SHASH_FOR_EACH (node, &mh->members) {
        run_member(node->data, led);
    }
}

void
member_health_wait(struct member_health *mh)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &mh->members) {
        const struct member *member = node->data;

        rpc_poll_wait(member->poll);
    }
}

static void
add_alarm(const struct member_health *mh, const char *remote, bool silent,
          int64_t since, struct json *alarms)
{
    struct tm_msec tm;
    char at[32];

    strftime_msec(at, sizeof at, "%F %T", gmtime_msec(since, &tm));
    alarm_add(
        alarms, ALARM_DATABASE_MEMBER,
        "member %s of the %s database has %s since %s UTC: repair its machine "
        "or network, or replace the member; if another one fails, the "
        "database may stop",
        remote, mh->db->name,
        silent ? "not answered" : "been without a leader", at);
}

size_t
member_health_alarms(const struct member_health *mh, long long now,
                     struct json *alarms)
{
    const struct shash_node **nodes = shash_sort(&mh->members);
    size_t n = 0;

    for (size_t i = 0; i < shash_count(&mh->members); i++) {
        const struct member *member = nodes[i]->data;
        bool silent = is_silent(member, now);

        if (!silent && !is_leaderless(member, now)) {
            continue;
        }
        n++;
        if (alarms) {
            add_alarm(mh, nodes[i]->name, silent,
                      (silent ? member->answered.epoch_ms
                              : member->leaderless.epoch_ms),
                      alarms);
        }
    }
    free(nodes);
    return n;
}

#define STATUS_TIMEOUT_MS 2000  /* Timeout of database_cluster_get(). */
#define STATUS_INTERVAL_MS 2000 /* Interval of requests. */

/* If 'line' is "NAME: VALUE", stores VALUE in '*valuep'. */
static void
parse_value(const char *line, const char *name, const char **valuep)
{
    size_t n = strlen(name);

    if (!strncmp(line, name, n) && !strncmp(line + n, ": ", 2)) {
        *valuep = line + n + 2;
    }
}

/* If 'line' is "    NICK (ID at ADDRESS) ...", adds ADDRESS to 'members'. */
static void
parse_member(const char *line, struct svec *members)
{
    const char *at = strncmp(line, "    ", 4) ? NULL : strstr(line, " at ");

    if (at && strchr(at, ')')) {
        svec_add_nocopy(members, xmemdup0(at + 4, strcspn(at + 4, ")")));
    }
}

/* Initializes 'dc' from 'reply', ovsdb-server's reply to "cluster/status". */
void
database_cluster_parse(const char *reply, struct database_cluster *dc)
{
    char *save = NULL;

    *dc = (struct database_cluster) {
        .text = xstrdup(reply), .status = "unknown", .role = "unknown",
        .leader = "unknown", .term = "0", .address = "",
        .members = SVEC_EMPTY_INITIALIZER,
    };
    for (char *line = strtok_r(dc->text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        parse_value(line, "Status", &dc->status);
        parse_value(line, "Role", &dc->role);
        parse_value(line, "Leader", &dc->leader);
        parse_value(line, "Term", &dc->term);
        parse_value(line, "Address", &dc->address);
        parse_member(line, &dc->members);
    }
    svec_sort(&dc->members);
}

/* Initializes 'dc' with the status of the server with sockets in 'rundir'.
 * Returns NULL, or an error message that the caller frees; '*dc' is then
 * empty, but must still be uninitialized. */
char *
database_cluster_get(const struct database *db, const char *rundir,
                     struct database_cluster *dc)
{
    const char *args[] = { db->schema };
    char *ctl = database_ctl(db, rundir);
    char *reply, *error;
    int errnum;

    error = rpc_unixctl(ctl, "cluster/status", 1, args, STATUS_TIMEOUT_MS,
                        &reply, &errnum);
    database_cluster_parse(error ? "" : reply, dc);
    free(reply);
    free(ctl);
    return error;
}

void
database_cluster_uninit(struct database_cluster *dc)
{
    free(dc->text);
    svec_destroy(&dc->members);
}

char *
database_cluster_remote(const struct database *db, const char *rundir,
                        const struct database_cluster *dc)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    ds_put_format(&ds, "unix:%s/%s.sock", rundir, db->name);
    for (size_t i = 0; i < dc->members.n; i++) {
        const char *address = dc->members.names[i];
        const char *port = strrchr(address, ':');

        if (strcmp(address, dc->address) && !strncmp(address, "ssl:", 4)) {
            ds_put_format(&ds, ",%.*s:%d", (int) (port - address), address,
                          db->port);
        }
    }
    return ds_steal_cstr(&ds);
}

struct database_members {
    const struct database *db;
    char *rundir;
    struct rpc_poll *poll;      /* Of the server's control socket. */
    struct member_health *health;       /* Of all members. */
    char *remote;               /* From the last valid reply, or NULL. */
};

struct database_members *
database_members_create(const struct database *db, const char *rundir)
{
    struct database_members *dm = xzalloc(sizeof *dm);
    char *ctl = database_ctl(db, rundir);
    char *name = xasprintf("unix:%s", ctl);

    dm->db = db;
    dm->rundir = xstrdup(rundir);
    dm->poll = rpc_poll_create(name, "cluster/status",
                               json_array_create_1(
                                   json_string_create(db->schema)),
                               STATUS_INTERVAL_MS);
    dm->health = member_health_create(db);
    free(name);
    free(ctl);
    return dm;
}

void
database_members_destroy(struct database_members *dm)
{
    if (dm) {
        rpc_poll_destroy(dm->poll);
        member_health_destroy(dm->health);
        free(dm->remote);
        free(dm->rundir);
        free(dm);
    }
}

/* Returns the addresses of the members from 'reply', or NULL if it is not
 * valid. */
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

/* Takes ownership of 'remote', which may be null.  Returns true if it differs
 * from the last. */
static bool
update_remote(struct database_members *dm, char *remote)
{
    if (!remote || (dm->remote && !strcmp(dm->remote, remote))) {
        free(remote);
        return false;
    }
    VLOG_INFO("%s: members have changed: %s", dm->db->name, remote);
    free(dm->remote);
    dm->remote = remote;
    member_health_set_remote(dm->health, remote);
    return true;
}

/* Returns the remote of the members, which the caller frees, if it has
 * changed; otherwise NULL. */
char *
database_members_run(struct database_members *dm)
{
    struct jsonrpc_msg *reply = rpc_poll_run(dm->poll);
    bool changed = reply && update_remote(dm, read_reply(dm, reply));

    jsonrpc_msg_destroy(reply);
    member_health_run(dm->health);
    return changed ? xstrdup(dm->remote) : NULL;
}

void
database_members_wait(struct database_members *dm)
{
    rpc_poll_wait(dm->poll);
    member_health_wait(dm->health);
}

size_t
database_members_alarms(const struct database_members *dm, struct json *alarms)
{
    return dm ? member_health_alarms(dm->health, time_msec(), alarms) : 0;
}
