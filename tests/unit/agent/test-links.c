/* SPDX-License-Identifier: Apache-2.0 */

/* What an uplink leaves to a job. */

#include <config.h>

#include <math.h>

#include "agent/actuate/actuator.h"
#include "agent/actuate/shim.h"
#include "agent/agent.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/tracker.h"
#include "agent/links.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static const struct {
    const char *what;
    double before, beside;
    size_t n_beside;
    double left;
} cases[] = {
    { "alone", 0, 0, 0, 100 },
    { "after one who goes first", 30, 0, 0, 70 },
    { "after ones who take all: the floor", 100, 0, 0, 5 },
    { "the counters were late: the floor", 250, 0, 0, 5 },
    { "beside one who takes all: a half", 0, 100, 1, 50 },
    { "beside ones who leave more than their part", 0, 20, 3, 80 },
    { "after one and beside one", 40, 60, 1, 30 },
};

static void
an_uplink_leaves_what_others_do_not_take(void **state OVS_UNUSED)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double left = links_left(100, cases[i].before, 0.05, cases[i].beside,
                                 cases[i].n_beside);

        if (fabs(left - cases[i].left) > 1e-9) {
            fail_msg("%s: %g", cases[i].what, left);
        }
    }
}

static void
ignore_job(struct job *job OVS_UNUSED, void *aux OVS_UNUSED)
{
}

static uint16_t
no_slot(const char *name OVS_UNUSED, void *aux OVS_UNUSED)
{
    return 0;
}

/* The trainer's peers (trainer/gossip/agent-links.c) read these members. */
static void
reply_has_the_members_that_peers_read(void **state OVS_UNUSED)
{
    static const struct actuator_events no_events;
    static const struct tracker_class tracker_class = {
        .job_begin = ignore_job,
        .job_end = ignore_job,
        .job_slot = no_slot,
    };
    const struct tracker_config tracker_config = {
        .identity = identity_open_blind(),
    };
    const struct agent_config config = { .rate_bps = 50000000 };
    struct agent agent = {
        .config = &config,
        .wanted.all.min_share = SHIM_MIN_SHARE_DEFAULT,
        .wanted.jobs = SHASH_INITIALIZER(&agent.wanted.jobs),
        .tracker = tracker_create(&tracker_config, &tracker_class, NULL),
        .actuator = shim_actuator_create("no-shim", NULL, &no_events, NULL),
    };
    struct json *json = links_compose(&agent, "asha/t0");
    const struct shash *members = json_object(json);

    assert_int_equal(json_integer(shash_find_data(members, "capacity_bps")),
                     50000000);
    assert_int_equal(json_integer(shash_find_data(members, "left_bps")),
                     50000000);
    assert_non_null(shash_find_data(members, "links"));
    json_destroy(json);
    tracker_destroy(agent.tracker);
    actuator_destroy(agent.actuator);
    identity_close(tracker_config.identity);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_uplink_leaves_what_others_do_not_take),
        cmocka_unit_test(reply_has_the_members_that_peers_read),
    };

    return cmocka_run_group_tests_name("links", tests, NULL, NULL);
}
