/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "tests/unit/controller/decide/decide-world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

#define POLICY(ORDER)                                                   \
    "{\"name\": \"" ORDER "\", \"order\": \"" ORDER "\","               \
    " \"levels\": {\"dscp\": [48, 40, 32, 24], \"default_dscp\": 0,"    \
    " \"control_dscp\": 56}, \"lease_ms\": 10000, \"coalesce_ms\": 20," \
    " \"retag_ms\": 100, \"refresh_ms\": 500, \"aging_s\": 600}"

void
give(struct fixture *f, const char *hosts, const int64_t *iterations,
     const int64_t *ended)
{
    cluster_intent_begin(f->c);
    for (size_t i = 0; i < strlen(hosts); i++) {
        char cojob_name[] = { 'a' + i, '\0' };
        char host_name[] = { 'h', hosts[i], '\0' };
        struct cojob *cojob = cluster_put_cojob(f->c, cojob_name, 1, true);
        struct job *job = cojob_put_job(f->c, cojob, "j", true, 1000, 125000);
        struct stage *stage;

        job_put_worker(f->c, job, host_name, ROLE_WORKER);
        stage = cojob_put_stage(f->c, cojob, 0, f->began, ended ? ended[i] : 0,
                                iterations[i]);
        if (stage) {
            stage_put_job(stage, job);
        }
    }
    cluster_intent_end(f->c);
}

int
set_up(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);

    f->began = time_wall_msec();
    f->c = cluster_create();
    f->d = decide_create(f->c, NULL);
    assert_null(policy_from_string("stage", POLICY("stage"), &f->stage));
    assert_null(policy_from_string("fair", POLICY("fair"), &f->fair));
    decide_set_policy(f->d, f->stage);
    *state = f;
    return 0;
}

int
tear_down(void **state)
{
    struct fixture *f = *state;

    decide_destroy(f->d);
    cluster_destroy(f->c);
    policy_destroy(f->stage);
    policy_destroy(f->fair);
    for (size_t i = 0; i < f->n_set; i++) {
        policy_destroy(f->set[i]);
    }
    free(f);
    return 0;
}

struct job *
find_job(struct fixture *f, const char *name)
{
    return shash_find_data(&f->c->jobs, name);
}

int
level(struct fixture *f, const char *job)
{
    return find_job(f, job)->level;
}

int
rank(struct fixture *f, const char *job)
{
    return find_job(f, job)->rank;
}

void
decides(struct fixture *f, long long now, const char *places)
{
    char job[32], at_rank[8], at_level[8];
    int n;

    assert_true(decide_run(f->d, now));
    for (; sscanf(places, " %31s %7[-0-9]%n", job, at_rank, &n) == 2;
         places += n) {
        if (*at_rank != '-' && rank(f, job) != atoi(at_rank)) {
            fail_msg("%s: rank %d", places, rank(f, job));
        }
        if (sscanf(places + n, "/%7[0-9]", at_level) == 1) {
            n += 1 + strlen(at_level);
            if (level(f, job) != atoi(at_level)) {
                fail_msg("%s: level %d", places, level(f, job));
            }
        }
    }
    assert_string_equal(places, "");
}

double
member(struct json *json, const char *name)
{
    const struct json *m = shash_find_data(json_object(json), name);

    return m->type == JSON_INTEGER ? m->integer : m->real;
}

void
give_jobs(struct fixture *f, const struct given *given, size_t n)
{
    struct cojob *cojob = NULL;
    struct stage *stage = NULL;

    cluster_intent_begin(f->c);
    for (size_t i = 0; i < n; i++) {
        struct job *job;

        if (!i || strcmp(given[i].cojob, given[i - 1].cojob)) {
            cojob = cluster_put_cojob(f->c, given[i].cojob, 1, true);
            stage = cojob_put_stage(f->c, cojob, 0, f->began, 0, 1000);
        }
        job = cojob_put_job(f->c, cojob, given[i].job, true, f->began,
                            125 * given[i].iterations);
        job_put_worker(f->c, job, given[i].host, ROLE_WORKER);
        stage_put_job(stage, job);
    }
    cluster_intent_end(f->c);
}

struct policy *
set_order(struct fixture *f, const char *order, const char *members)
{
    char *text = xasprintf("{\"name\": \"p\", \"order\": \"%s\"%s}",
                           order, members);
    struct policy *policy;

    assert_null(policy_from_string("p", text, &policy));
    decide_set_policy(f->d, policy);
    assert_true(f->n_set < ARRAY_SIZE(f->set));
    f->set[f->n_set++] = policy;
    free(text);
    return policy;
}
