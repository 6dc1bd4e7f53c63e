/* SPDX-License-Identifier: Apache-2.0 */

/* Rights of a process of a job. */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/identify/process.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static void
rights_are_the_real_ones(void **state OVS_UNUSED)
{
    struct job_process p;

    assert_true(job_process_parse_status(
        "Name:\tx\\nUid: 0\nUmask:\t0022\nUid:\t1000\t0\t0\t0\n"
        "Gid:\t1001\t5\t5\t5\nFDSize:\t64\nGroups:\t4 24 1001 \nNStgid:\t1\n",
        &p));
    assert_int_equal(p.uid, 1000);
    assert_int_equal(p.gid, 1001);
    assert_int_equal(p.n_groups, 3);
    assert_int_equal(p.groups[1], 24);
    assert_true(job_process_parse_status("\nUid:\t1\nGid:\t2\nGroups:\t \n",
                                         &p));
    assert_int_equal(p.n_groups, 0);
    assert_false(job_process_parse_status("\nUid:\t1\nGid:\t2\n", &p));
    assert_false(job_process_parse_status("\nUid:\tx\nGid:\t2\nGroups:\t\n",
                                          &p));
}

static void
too_many_groups_count_as_none(void **state OVS_UNUSED)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    struct job_process p;

    ds_put_cstr(&ds, "\nUid:\t1\nGid:\t2\nGroups:\t");
    for (int i = 0; i <= JOB_PROCESS_MAX_GROUPS; i++) {
        ds_put_format(&ds, "%d ", i);
    }
    ds_put_cstr(&ds, "\n");
    assert_true(job_process_parse_status(ds_cstr(&ds), &p));
    assert_int_equal(p.n_groups, 0);
    ds_destroy(&ds);
}

static void
a_process_that_has_ended_is_not_alive(void **state OVS_UNUSED)
{
    struct job_process p;
    pid_t pid = fork();

    if (!pid) {
        pause();
        _exit(0);
    }
    assert_true(job_process_open(pid, &p));
    assert_int_equal(p.uid, getuid());
    assert_int_equal(p.gid, getgid());
    assert_true(job_process_is_alive(&p));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(job_process_is_alive(&p));
    job_process_close(&p);
    assert_false(job_process_open(pid, &p));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rights_are_the_real_ones),
        cmocka_unit_test(too_many_groups_count_as_none),
        cmocka_unit_test(a_process_that_has_ended_is_not_alive),
    };

    return cmocka_run_group_tests_name("job-process", tests, NULL, NULL);
}
