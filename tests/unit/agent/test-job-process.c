/* SPDX-License-Identifier: Apache-2.0 */

/* Rights of a process of a job. */

#include <config.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
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

/* Has a child of user 'user' make a namespace of users and, where the test may
 * give it subordinate ones, become one of these.  Returns the child, 0 if it
 * may not make one. */
static pid_t
start_subordinate(uid_t user)
{
    int made[2], mapped[2], map;
    char path[64], c = 0;
    pid_t pid;

    assert_int_equal(pipe(made), 0);
    assert_int_equal(pipe(mapped), 0);
    pid = fork();
    if (!pid) {
        c = (!getuid() && setuid(user)) || unshare(CLONE_NEWUSER);
        ignore(write(made[1], &c, 1));
        ignore(read(mapped[0], &c, 1));
        c = setuid(1);
        ignore(write(made[1], &c, 1));
        pause();
        _exit(0);
    }
    assert_int_equal(read(made[0], &c, 1), 1);
    if (c) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int) pid);
    map = open(path, O_WRONLY);
    assert_true(map >= 0);
    assert_true(dprintf(map, getuid() ? "1 %u 1\n" : "1 200001 100\n",
                        (unsigned int) user)
                > 0);
    close(map);
    ignore(write(mapped[1], &c, 1));
    assert_int_equal(read(made[0], &c, 1), 1);
    return pid;
}

static void
subordinate_users_are_the_one_that_has_them(void **state OVS_UNUSED)
{
    uid_t user = getuid() ? getuid() : 12345, found;
    pid_t pid = start_subordinate(user);
    char status[8192];
    struct job_process p;

    if (!pid) {
        skip();
    }
    assert_true(process_read_file(pid, "status", status, sizeof status) > 0);
    assert_true(job_process_parse_status(status, &p));
    assert_int_equal(p.uid, getuid() ? user : 200001);
    assert_true(process_user(pid, &found));
    assert_int_equal(found, user);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_false(process_user(pid, &found));
}

RUN_TESTS("job-process", NULL, NULL,
          cmocka_unit_test(rights_are_the_real_ones),
          cmocka_unit_test(too_many_groups_count_as_none),
          cmocka_unit_test(a_process_that_has_ended_is_not_alive),
          cmocka_unit_test(subordinate_users_are_the_one_that_has_them))
