/* SPDX-License-Identifier: Apache-2.0 */

/* What hostile clients of the HTTP server try, each refused.  Searches of
 * others are refused by the database's writer: test-intent-client.c. */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/controller.h"
#include "controller/model/cluster.h"
#include "controller/model/owners.h"
#include "controller/northbound/rest/peer.h"
#include "controller/northbound/rest/rest-listen.h"
#include "controller/northbound/rest/rest-routes.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/membership.h"

#define COJOB "/v1/cojobs/asha"

static char eva[] = "eva";
static const struct policy policy = { .weight_limit = 1, .weight_total = 4 };

static const char *
no_query(const void *aux OVS_UNUSED, const char *name OVS_UNUSED)
{
    return NULL;
}

/* Replies to 'r' by a client 'eva' of 'role' with user 'uid'.  What is
 * forbidden is noted for views. */
static struct rest_reply
ask(enum peer_role role, uint32_t uid, const char *method, const char *path,
    const char *body, struct rest_request *r)
{
    static struct controller ctl;
    struct peer peer = { .role = role, .actor = eva, .uid = uid };
    struct rest_reply reply;

    *r = (struct rest_request){ .ctl = &ctl,
                                .peer = &peer,
                                .policy = &policy,
                                .method = method,
                                .path = path,
                                .body = body,
                                .body_size = strlen(body),
                                .query = no_query };
    ctl.cluster = cluster_create();
    cluster_intent_begin(ctl.cluster);
    cojob_put_job(ctl.cluster, cluster_put_cojob(ctl.cluster, "asha", 1, true),
                  "t0", true, 1, 1000);
    cluster_intent_end(ctl.cluster);
    cojob_set_owner(ctl.cluster, shash_find_data(&ctl.cluster->cojobs, "asha"),
                    "ann", 0);
    reply = rest_route(r);
    assert_int_equal(reply.status == 403,
                     owner_refusal(owners_get(&ctl.cluster->owners, eva, uid))
                         != NULL);
    cluster_destroy(ctl.cluster);
    r->peer = NULL;
    return reply;
}

static void
assert_forbidden(struct rest_reply reply, const char *error)
{
    assert_int_equal(reply.status, 403);
    assert_string_equal(
        json_string(shash_find_data(json_object(reply.json), "error")), error);
    rest_reply_uninit(&reply);
}

UNIT_TEST(who_only_reads_changes_nothing)
{
    static const struct {
        const char *method, *path;
    } changes[] = {
        { "PUT", COJOB },
        { "DELETE", COJOB },
        { "PUT", COJOB "/jobs/t0" },
        { "DELETE", COJOB "/jobs/t0" },
        { "POST", COJOB "/jobs/t0/progress" },
        { "PUT", COJOB "/stages/0" },
        { "DELETE", COJOB "/stages/0" },
    };
    struct rest_reply reply;
    struct rest_request r;

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        char *error = xasprintf("%s: %s by a client of role read; expected "
                                "role user",
                                changes[i].path, changes[i].method);

        assert_forbidden(
            ask(PEER_READ, 0, changes[i].method, changes[i].path, "", &r),
            error);
        free(error);
    }
    reply = ask(PEER_READ, 0, "GET", COJOB, "", &r);
    assert_int_equal(reply.status, 200);
    rest_reply_uninit(&reply);
}

UNIT_TEST(a_user_chooses_no_number_and_no_large_weight)
{
    struct rest_request r;

    assert_forbidden(ask(PEER_USER, 1000, "PUT", COJOB, "{\"uid\": 1001}", &r),
                     "/uid: 1001 from a client of role user; expected a body "
                     "without it, or role operator");
    assert_forbidden(
        ask(PEER_USER, 1000, "PUT", COJOB, "{\"weight\": 1.5}", &r),
        "/weight: 1.5 from a client of role user; expected at "
        "most 1, the policy's /weights/limit");

    assert_int_equal(
        ask(PEER_USER, 1000, "PUT", COJOB, "{\"weight\": 1}", &r).status, 0);
    assert_true(r.edit.as_user);
    assert_string_equal(r.edit.owner, "eva");
    assert_int_equal(r.edit.uid, 1000);
    assert_float_equal(r.edit.total, 4, 0);
    intent_edit_uninit(&r.edit);

    assert_int_equal(
        ask(PEER_USER, 1000, "DELETE", COJOB "/jobs/t0", "", &r).status, 0);
    assert_true(r.edit.as_user && r.edit.uid == 1000);
    intent_edit_uninit(&r.edit);
}

UNIT_TEST(progress_of_a_job_is_its_owners)
{
    struct peer ann = { .role = PEER_USER, .actor = eva, .uid = 1000 };
    struct rest_request r;

    assert_forbidden(ask(PEER_USER, 1000, "POST", COJOB "/jobs/t0/progress",
                         "{\"iteration\": 7}", &r),
                     COJOB "/jobs/t0/progress: the job is not of eva; "
                           "expected its owner or an operator");
    assert_true(peer_may_change(&ann, "other", 1000));
    assert_false(peer_may_change(&ann, "eva", 1001));
    assert_true(peer_may_change(&ann, "eva", 0));
    assert_false(peer_may_change(&ann, NULL, 0));
}

UNIT_TEST(the_kernel_and_the_certificate_tell_the_role)
{
    static const struct {
        const char *unit;
        enum peer_role role;
    } subjects[] = {
        { "read", PEER_READ },
        { "user", PEER_USER },
        { "operator", PEER_OPERATOR },
        { NULL, PEER_NONE }, /* A certificate of a host. */
        { "", PEER_NONE },
        { "none", PEER_NONE },
        { "root", PEER_NONE },
    };
    static const struct {
        uid_t uid;
        enum peer_role role;
    } users[] = {
        { 0, PEER_OPERATOR },
        { 4242, PEER_USER },
        { 65534, PEER_NONE },
    };
    static const char *const strangers[] = { "eva", "system:serviceaccount:ml",
                                             "system:serviceaccount::x",
                                             "system:node:h1" };
    struct peer peer;

    for (size_t i = 0; i < ARRAY_SIZE(strangers); i++) {
        peer = peer_of_account(strangers[i]);
        assert_int_equal(peer.role, PEER_NONE);
        assert_null(peer.actor);
    }
    peer = peer_of_account("system:serviceaccount:ml:trainer");
    assert_int_equal(peer.role, PEER_USER);
    assert_string_equal(peer.actor, "system:serviceaccount:ml:trainer");
    assert_string_equal(peer.owner, "namespace:ml");
    assert_true(peer.uid == membership_namespace("ml"));
    peer_uninit(&peer);
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
        peer = peer_of_subject("eva", subjects[i].unit);
        assert_int_equal(peer.role, subjects[i].role);
        assert_int_equal(peer.uid, 0);
        assert_int_equal(!peer.actor, !peer.role);
        peer_uninit(&peer);
    }
    for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
        peer = peer_of_user(users[i].uid);
        assert_int_equal(peer.role, users[i].role);
        assert_int_equal(!peer.actor, !peer.role);
        peer_uninit(&peer);
    }
    peer = peer_of_user(geteuid());
    assert_int_equal(peer.role, PEER_OPERATOR);
    peer_uninit(&peer);
}

/* A page with a name that has become an address of this server (DNS rebinding)
 * has a Host of its own; other pages and scripts say so. */
UNIT_TEST(pages_of_other_sites_are_refused)
{
    static const struct {
        enum peer_role role;
        const char *method, *host, *site, *dest, *origin;
        unsigned long long length;
        unsigned int status;
    } cases[] = {
        { PEER_READ, "GET", NULL, NULL, NULL, NULL, 0, 0 },
        { PEER_READ, "GET", "localhost", NULL, NULL, NULL, 0, 0 },
        { PEER_READ, "GET", "localhost:8080", "none", NULL, NULL, 0, 0 },
        { PEER_READ, "GET", "127.0.0.1:8080", "same-origin", NULL, NULL, 0,
          0 },
        { PEER_READ, "GET", "[::1]:8080", NULL, NULL, NULL, 0, 0 },
        { PEER_READ, "GET", "localhost", NULL, NULL, "http://localhost", 0,
          0 },
        { PEER_USER, "PUT", NULL, NULL, NULL, NULL, REST_MAX_BODY, 0 },
        { PEER_NONE, "GET", "localhost", NULL, NULL, NULL, 0, 403 },
        { PEER_READ, "GET", "rebound.example:8080", NULL, NULL, NULL, 0, 403 },
        { PEER_READ, "HEAD", "localhost.example", NULL, NULL, NULL, 0, 403 },
        { PEER_READ, "GET", "127.0.0.1.example", NULL, NULL, NULL, 0, 403 },
        { PEER_READ, "GET", "[example]", NULL, NULL, NULL, 0, 403 },
        { PEER_READ, "GET", "", NULL, NULL, NULL, 0, 403 },
        { PEER_READ, "GET", "[", NULL, NULL, NULL, 0, 403 },
        { PEER_READ, "GET", "localhost", "cross-site", NULL, NULL, 0, 403 },
        { PEER_READ, "GET", "localhost", "cross-site", "iframe", NULL, 0,
          403 },
        { PEER_READ, "GET", "localhost", "cross-site", "document", NULL, 0,
          0 },
        { PEER_OPERATOR, "PUT", "localhost", NULL, NULL, "null", 0, 403 },
        { PEER_OPERATOR, "POST", "localhost", NULL, NULL, "", 0, 403 },
        { PEER_OPERATOR, "PUT", NULL, NULL, NULL, NULL, REST_MAX_BODY + 1,
          413 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct peer peer = { .role = cases[i].role };
        struct rest_reply reply = rest_authorize(
            &(struct rest_head){ .peer = &peer,
                                 .method = cases[i].method,
                                 .host = cases[i].host,
                                 .site = cases[i].site,
                                 .dest = cases[i].dest,
                                 .origin = cases[i].origin,
                                 .content_length = cases[i].length });

        if (reply.status != cases[i].status) {
            fail_msg("case %" PRIuSIZE ": %u", i, reply.status);
        }
        rest_reply_uninit(&reply);
    }
    assert_false(rest_listen_has_name("c1", "no certificate"));
}
