/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/member-health.h"

#include <stdlib.h>

#include "controller/model/instant.h"
#include "controller/ovsdb/answers.h"
#include "controller/ovsdb/database.h"
#include "controller/ovsdb/rpc-poll.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "sset.h"
#include "timeval.h"
#include "util.h"
#include "wire/alarm.h"
#include "wire/json-get.h"

#define ASK_MS 1000             /* Between two requests. */

/* Time for which a member that answers may be without a leader.  A member that
 * returns waits for up to 8 s until it connects to the others again. */
#define LEADERLESS_MS 10000

struct member {
    struct rpc_poll *poll;
    struct instant answered;    /* Last answer; at first, of the start. */
    struct instant leaderless;  /* Since when the member answers that it has no
                                 * leader while another one has; msec 0 if it
                                 * has one. */
};

struct member_health {
    const struct database *db;
    struct shash members;       /* "struct member", by remote. */
};

struct member_health *
member_health_create(const struct database *db)
{
    struct member_health *mh = xmalloc(sizeof *mh);

    mh->db = db;
    shash_init(&mh->members);
    return mh;
}

/* Returns the request, a query of the server's own database. */
static struct json *
make_query(const struct database *db)
{
    char *text = xasprintf("[\"_Server\", {\"op\": \"select\", "
                           "\"table\": \"Database\", "
                           "\"where\": [[\"name\", \"==\", \"%s\"]], "
                           "\"columns\": [\"connected\"]}]", db->schema);
    struct json *json = json_from_string(text);

    free(text);
    return json;
}

static void
add_member(struct member_health *mh, const char *remote)
{
    struct member *member = xzalloc(sizeof *member);

    member->poll = rpc_poll_create(remote, "transact", make_query(mh->db),
                                   ASK_MS);
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
    SHASH_FOR_EACH_SAFE (node, &mh->members) {
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

/* Returns true if 'reply' is [{"rows": [{"connected": true}]}]. */
static bool
says_connected(const struct jsonrpc_msg *reply)
{
    const struct json *json = reply->result;
    const struct json *rows;

    if (!json || json->type != JSON_ARRAY || json->array.n != 1) {
        return false;
    }
    rows = json_get(json->array.elems[0], "rows", JSON_ARRAY);
    return (rows && rows->array.n == 1
            && json_get(rows->array.elems[0], "connected", JSON_TRUE));
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
        if (says_connected(reply)) {
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
                       : member->leaderless.epoch_ms), alarms);
        }
    }
    free(nodes);
    return n;
}
