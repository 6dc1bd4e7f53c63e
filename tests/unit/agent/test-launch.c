/* SPDX-License-Identifier: Apache-2.0 */

/* What launchers share: names of stages, requests to the agent. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/launch.h"
#include "base/stage-name.h"
#include "tests/unit/unit-test.h"
#include "wire/agent-call.h"

UNIT_TEST(reads_names_of_stages)
{
    static const struct {
        const char *text;
        const char *cojob;      /* NULL: not allowed. */
        int rung;
    } cases[] = {
        { "asha7:2", "asha7", 2 },
        { "asha7", "asha7", -1 },
        { "a.b_c-d:1000", "a.b_c-d", 1000 },
        { "a:0", "a", 0 },
        { "", NULL, 0 },
        { ":2", NULL, 0 },
        { "asha7:", NULL, 0 },
        { "asha7:1001", NULL, 0 },
        { "asha7:99999999999999999999", NULL, 0 },
        { "asha7:-1", NULL, 0 },
        { "asha7:2:3", NULL, 0 },
        { "asha7:2 ", NULL, 0 },
        { "../asha7:2", NULL, 0 },
        { "asha/7:2", NULL, 0 },
        { "a234567890123456789012345678901:1",
          "a234567890123456789012345678901", 1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stage_name stage = { "untouched", 77 };
        char *error = stage_name_parse("--stagecoach", cases[i].text, ':',
                                       &stage);

        if (cases[i].cojob) {
            assert_null(error);
            assert_string_equal(stage.cojob, cases[i].cojob);
            assert_int_equal(stage.rung, cases[i].rung);
        } else {
            assert_non_null(error);
            assert_memory_equal(error, "--stagecoach: ", 14);
            assert_non_null(strstr(error, "expected"));
            assert_string_equal(stage.cojob, "untouched");
            assert_int_equal(stage.rung, 77);
        }
        free(error);
    }
}

UNIT_TEST(a_written_stage_name_is_read_as_the_same_stage)
{
    static const struct {
        const char *cojob, *name;
        int rung;
    } cases[] = {
        { "asha7", "asha7/2", 2 },
        { "a", "a/0", 0 },
        { "7", "7/10", 10 },
        { "a.b_c-d", "a.b_c-d/999", 999 },
        { "a234567890123456789012345678901",
          "a234567890123456789012345678901/1000", STAGE_NAME_MAX_RUNG },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stage_name stage;
        char name[64];

        snprintf(name, sizeof name, STAGE_NAME_FMT, cases[i].cojob,
                 cases[i].rung);
        assert_string_equal(name, cases[i].name);
        assert_null(stage_name_parse("annotation", name, '/', &stage));
        assert_string_equal(stage.cojob, cases[i].cojob);
        assert_int_equal(stage.rung, cases[i].rung);
    }
}

UNIT_TEST(escapes_what_json_would_not_take)
{
    const char *words[] = { "agent/claim", "a\"b\\c\n", "" };
    char *request = agent_call_request(words, 3);

    assert_is(request, "{\"id\":0,\"method\":\"agent/claim\",\"params\":["
                       "\"a\\\"b\\\\c\\u000a\",\"\"]}");
    request = agent_call_request(words, 1);
    assert_is(request, "{\"id\":0,\"method\":\"agent/claim\",\"params\":[]}");
}

UNIT_TEST(knows_where_a_reply_ends)
{
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {
        { "{}", 2 },
        { "{\"a\":{}}{\"b\"", 8 },
        { "{\"a\":\"}\"", 0 },
        { "{\"a\":\"}\"}", 9 },
        { "{\"a\":\"\\\"}\"}x", 11 },
        { "{\"a\":\"\\\\\"}x", 10 },
        { "{\"a\":\"\\", 0 },
        { "", 0 },
        { "}", 1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(agent_call_object_length(cases[i].text,
                                                  strlen(cases[i].text)),
                         cases[i].length);
    }
}

UNIT_TEST(tasks_stay_where_a_scheduler_has_put_them)
{
#define UID "12345678-1234-1234-1234-123456789abc"
#define POD "kubepods-burstable-pod12345678_1234_1234_1234_123456789abc.slice"
    static const struct {
        const char *path, *own;
        bool may_leave;
    } cases[] = {
        { "/", NULL, true },
        { "/system.slice/slurmd.service", NULL, true },
        { "/system.slice/n1_slurmd.service", NULL, true },
        { "/user.slice/user-1000.slice/session-3.scope", NULL, true },
        { "/user.slice/user-7.slice/user@7.service/app.slice", NULL, true },
        { "/system.slice/ssh.service", NULL, true },
        { "/system.slice/slurmd.service/x", NULL, false },
        { "/system.slice/docker-0123456789ab.scope", NULL, false },
        { "/machine.slice/session", NULL, false },
        { "/slurmstepd.scope", NULL, false },
        { "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0",
          "/system.slice/slurmstepd.scope/job_7", false },
        { "/system.slice/n1_slurmstepd.scope/s5K1KKYAYG5D00/step_0",
          "/system.slice/n1_slurmstepd.scope/s5K1KKYAYG5D00", false },
        { "/slurmstepd.scope/whatever", "/slurmstepd.scope/whatever", false },
        { "/kubepods/burstable/pod" UID "/c1", "/kubepods/burstable/pod" UID,
          false },
        { "/kubepods.slice/kubepods-burstable.slice/" POD "/cri-1.scope",
          "/kubepods.slice/kubepods-burstable.slice/" POD, false },
        { "/slurmstepd.scope/job_7/kubepods/pod" UID "/c1",
          "/slurmstepd.scope/job_7", false },
        { "/kubepods/pod" UID "/slurmstepd.scope/job_7", "/kubepods/pod" UID,
          false },
        { "/kubepods/burstable", NULL, false },
        { "/kubepods/burstable/pod12345678", NULL, false },
        { "/a/pod" UID, NULL, false },
    };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        char *own = job_cgroup_of_scheduler(cases[i].path);

        if (cases[i].own) {
            assert_is(own, cases[i].own);
        } else {
            assert_null(own);
        }
        assert_int_equal(job_cgroup_may_leave(cases[i].path),
                         cases[i].may_leave);
    }
}
