/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/overrides.h"
#include "controller/model/owners.h"
#include "controller/northbound/views/explain-report.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "order/problem/options.h"
#include "tests/unit/controller/decide/decide-world.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* Decides again, at 'now', and returns the explanation of 'job'. */
static struct json *
explain(struct fixture *f, const struct overrides *o, const char *job,
        long long now)
{
    struct json *json = json_object_create();

    overrides_apply(o, f->c);
    decide_touch(f->d);
    assert_true(decide_run(f->d, now));
    explain_report_put(json, decide_last(f->d), f->stage, o,
                       find_job(f, job));
    return json;
}

static const char *
nth(const struct json *json, size_t i)
{
    const struct json *why = shash_find_data(json_object(json), "why");

    assert_true(i < why->array.n);
    return json_string(why->array.elems[i]);
}

static void
assert_begins(const char *text, const char *beginning)
{
    if (strncmp(text, beginning, strlen(beginning))) {
        fail_msg("\"%s\" does not begin with \"%s\"", text, beginning);
    }
}

/* Checks "what", "where" and the start of "words" of "waits_for". */
static void
assert_waits(const struct json *json, const char *what, const char *where,
             const char *words)
{
    const struct shash *waits
        = json_object(shash_find_data(json_object(json), "waits_for"));

    assert_string_equal(json_string(shash_find_data(waits, "what")), what);
    assert_string_equal(json_string(shash_find_data(waits, "where")), where);
    assert_begins(json_string(shash_find_data(waits, "words")), words);
}

/* An iteration of each job needs 1 ms of both ports of its host. */
FIXTURE_TEST(a_rank_is_explained_by_stages_and_level)
{
    struct overrides o;
    struct json *json, *ends;

    set_order(f, "stage", ", \"aging_slowdown\": 0");
    overrides_init(&o);
    give(f, "000", (int64_t[]) { 100, 200, 400 }, NULL);
    json = explain(f, &o, "c/j", 1000);
    assert_begins(nth(json, 0), "its stage c/0 is number 3 of 3 by "
                  "\"stage\": ");
    assert_begins(nth(json, 1), "the stage still needs 0.4 s of h0:");
    assert_begins(nth(json, 2), "on h0:");
    assert_non_null(strstr(nth(json, 2), " need 0.3 s in all: "
                           "a/0 (0.1 s, weight 1), b/0 (0.2 s, weight 1)"));
    assert_begins(nth(json, 3), "its level is 2 of 0 to 3; jobs with a "
                  "better level: 2; ");
    ends = shash_find_data(json_object(json), "ends");
    assert_float_equal(member(ends, "earliest_s"), 0.4, 1e-3);
    assert_float_equal(member(ends, "estimate_s"), 0.7, 1e-3);
    assert_float_equal(member(ends, "latest_s"), 0.7, 1e-3);
    json_destroy(json);
    overrides_uninit(&o);
}

/* Each kind of override, its words and its effect. */
FIXTURE_TEST(an_override_is_explained_first)
{
    static const struct {
        enum override_kind kind;
        const char *target, *text;
    } cases[] = {
        { OVERRIDE_PIN, "a",
          "it is pinned by eva until it is undone: why not "
          "(override 1): it goes before all other jobs" },
        { OVERRIDE_PAUSE, "a",
          "it is paused by eva until it is undone: why "
          "not (override 1): all other jobs go before it, and it keeps the "
          "min share of its level" },
        { OVERRIDE_EXCLUDE, "a",
          "it is excluded by eva until it is undone: "
          "why not (override 1): its traffic is treated as that of no job" },
        { OVERRIDE_OBSERVE, "",
          "it is not ordered by eva until it is undone: "
          "why not (override 1): the controller only observes the cluster" },
    };

    give(f, "00", (int64_t[]) { 100, 200 }, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct overrides o;
        struct json *json;

        overrides_init(&o);
        overrides_add(&o, cases[i].kind, cases[i].target, "eva", "why not", 0,
                      &(struct instant) { 5000, 5000 });
        json = explain(f, &o, "a/j", 1000 * (i + 1));
        assert_string_equal(nth(json, 0), cases[i].text);
        json_destroy(json);
        overrides_uninit(&o);
    }
}

/* Each defence that refuses something of a job or its owner is named, with the
 * member of the policy that changes it, if there is one. */
FIXTURE_TEST(a_refusal_names_what_changes_it)
{
    static const struct {
        enum membership reason; /* Of processes on h0. */
        const char *sentences[4];
    } cases[] = {
        { MEMBERSHIP_UNREGISTERED,
          { "1 requests of its owner were refused, the last one: /weight: 9, "
            "the policy's /weights/limit",
            "on h0 its owner has 900 entries of tables, more than its share, "
            "and 5 were refused: shares are of all users alike, and no member "
            "of the policy changes them",
            "processes on h0 claim it, or did, without priority: they are "
            "known by their environment only, which the policy's /trust does "
            "not admit",
            "hosts have refused 3 progress reports of processes that may not "
            "report for it: its owner and the policy's /trust decide which "
            "may" } },
        { MEMBERSHIP_OTHER_USER,
          { [2] = "processes on h0 claim it, or did, without priority: they "
                  "are of user 1001, and the owner of a is user 1000; no "
                  "member of the policy changes that: an operator can "
                  "announce the search for them" } },
        { MEMBERSHIP_ELSEWHERE,
          { [2] = "processes on h0 claim it, or did, and do not count: they "
                  "are not announced there, and no other host of the job "
                  "sends to them; no member of the policy changes that: "
                  "announce the job's places" } },
    };
    const struct membership_claim claim = { .has_uid = true, .uid = 1001 };
    struct host *host = cluster_get_host(f->c, "h0");
    struct overrides o;
    struct job *job;

    overrides_init(&o);
    give(f, "0", (int64_t[]){ 100 }, NULL);
    job = find_job(f, "a/j");
    cojob_set_owner(f->c, job->cojob, "ann", 1000);
    owners_refuse(&f->c->owners, "ann", 1000,
                  "/weight: 9, the policy's /weights/limit");
    owners_refuse(&f->c->owners, "bob", 1001, "/weight: 8");
    host->users[0] =
        (struct telemetry_user){ .uid = 1000, .entries = 900, .refused = 5 };
    host->users[1] = (struct telemetry_user){ .uid = 1001 };
    host->n_users = 2;
    job->reports_refused = 3;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *json;

        job_refuse(job, host, cases[i].reason, &claim);
        json = explain(f, &o, "a/j", 1000 * (i + 1));
        for (size_t k = 0; k < 4; k++) {
            if (cases[i].sentences[k]) {
                assert_string_equal(nth(json, k), cases[i].sentences[k]);
            }
        }
        json_destroy(json);
    }
    overrides_uninit(&o);
}

/* Returns true if a sentence of 'json' begins with 'beginning'. */
static bool
has_sentence(const struct json *json, const char *beginning)
{
    const struct json *why = shash_find_data(json_object(json), "why");
    bool found = false;

    for (size_t i = 0; i < why->array.n; i++) {
        found |= !strncmp(json_string(why->array.elems[i]), beginning,
                          strlen(beginning));
    }
    return found;
}

/* Of three trials, one that begins, "z" is expected to be better. */
FIXTURE_TEST(a_trial_is_explained_by_its_chance)
{
    static const struct given given[] = {
        { "a", "x", "h0", 1000 },
        { "a", "y", "h0", 1000 },
        { "a", "z", "h0", 1000 },
    };
    static const int64_t rungs[] = { 36, 1000 };
    struct overrides o;
    struct stage *stage;
    struct json *json;

    overrides_init(&o);
    give_jobs(f, given, ARRAY_SIZE(given));
    stage = find_job(f, "a/x")->stage;
    stage->trials.eta = 3;
    stage_trials_set(&stage->trials, rungs, ARRAY_SIZE(rungs));
    for (int64_t k = 1; k < 20; k++) {
        for (char c = 'y'; c <= 'z'; c++) {
            struct job *job = find_job(f, c == 'y' ? "a/y" : "a/z");

            demand_progress(f->c, job, &job->rest, k, "accuracy",
                            (c - 'x') * (1 - 1. / (1 + k)), k);
        }
    }
    find_job(f, "a/x")->iteration = 1;
    json = explain(f, &o, "a/y", 1000);
    assert_true(has_sentence(json, "its search judges trials one by one, and "
                                   "all that run have one rank: "));
    json_destroy(json);
    stage->trials.order = ORDER_TRIALS_PROMISING;
    json = explain(f, &o, "a/z", 3000);
    assert_true(has_sentence(json, "chance 50 % to pass the rung at iteration "
                                   "36 by its metric and those of the others, "
                                   "first of its search"));
    json_destroy(json);
    json = explain(f, &o, "a/x", 5000);
    assert_true(has_sentence(json, "chance 33 % to pass "));
    json_destroy(json);
    json = explain(f, &o, "a/y", 7000);
    assert_true(has_sentence(json, "chance 25 % to pass the rung at iteration "
                                   "36 by its metric and those of the others, "
                                   "behind trial x, and it keeps "));
    json_destroy(json);
    overrides_uninit(&o);
}

/* Job "a/j" with workers on hosts h1 and h2 and its server on 'server'. */
static void
give_server(struct fixture *f, const char *server)
{
    struct cojob *cojob;
    struct job *job;

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "a", 1, true);
    job = cojob_put_job(f->c, cojob, "j", true, 1000, 125000);
    job_put_worker(f->c, job, "h1", ROLE_WORKER);
    job_put_worker(f->c, job, "h2", ROLE_WORKER);
    job_put_worker(f->c, job, server, ROLE_SERVER);
    stage_put_job(cojob_put_stage(f->c, cojob, 0, f->began, 0, 100), job);
    cluster_intent_end(f->c);
}

FIXTURE_TEST(a_job_waits_for_its_servers_link)
{
    static const char *const servers[] = { "h0", "rack1:h0", "h0:tx" };
    struct overrides o;

    overrides_init(&o);
    for (size_t i = 0; i < ARRAY_SIZE(servers); i++) {
        char *port = xasprintf("%s:tx", servers[i]);
        char *words = xasprintf("its server's link %s, which the job uses ",
                                port);
        struct json *json;

        give_server(f, servers[i]);
        find_job(f, "a/j")->progress.period = 0.002;
        json = explain(f, &o, "a/j", 1000 * (i + 1));
        assert_waits(json, "server", port, words);
        json_destroy(json);
        free(words);
        free(port);
        cluster_intent_begin(f->c);
        cluster_intent_end(f->c);
    }
    overrides_uninit(&o);
}
