/* SPDX-License-Identifier: Apache-2.0 */

/* What the agent knows of jobs and cgroups. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/cgroup-path.h"

UNIT_TEST(roots_are_checked)
{
    static const char *const roots[] = { "a", "a/b", "a.b/..c/d" };
    static const char *const no_roots[] = {
        "", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b",
    };
#define CHECK(TEXTS, IS_VALID, WANTED)                  \
    for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {    \
        assert_int_equal(IS_VALID((TEXTS)[i]), WANTED); \
    }

    CHECK(roots, cgroup_root_is_valid, true)
    CHECK(no_roots, cgroup_root_is_valid, false)
}

/* Files. */

/* A test works in a directory of its own. */
static char dir[32];

static int
set_up(void **state OVS_UNUSED)
{
    strcpy(dir, "/tmp/sct-identify-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return chdir(dir);
}

static int
tear_down(void **state OVS_UNUSED)
{
    char *command = xasprintf("rm -rf %s", dir);
    int failed = chdir("/") || system(command);

    free(command);
    return failed;
}

static void
make_dir(const char *name)
{
    assert_int_equal(mkdir(name, 0755), 0);
}

static void
write_file(const char *name, const char *text)
{
    FILE *stream = fopen(name, "w");

    assert_non_null(stream);
    fputs(text, stream);
    assert_int_equal(fclose(stream), 0);
}

static void
remove_file(const char *name)
{
    assert_int_equal(remove(name), 0);
}

FIXTURE_TEST(finds_the_mount_of_a_hybrid_host)
{
    write_file("mounts", "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
                         "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
                         "cgroup2 /mnt/a\\040b/unified cgroup2 rw 0 0\n");
    assert_is(cgroup_mount_from("mounts"), "/mnt/a b/unified");
    write_file("mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n");
    assert_null(cgroup_mount_from("mounts"));
    remove_file("mounts");
    assert_null(cgroup_mount_from("mounts"));
}

static void
see(const char *job, uint64_t id, uid_t uid OVS_UNUSED, void *r_)
{
    registry_see(r_, job, id, 0, 1000);
}

static void
count_gone(struct job *job, void *text_)
{
    strcat(text_, job->name);
    strcat(text_, " ");
}

static uint64_t
inode_of(const char *name)
{
    struct stat s;

    assert_int_equal(stat(name, &s), 0);
    return s.st_ino;
}

static struct job *
job_of_cgroup(const struct registry *r, uint64_t id)
{
    struct claim_what what = { CLAIMS_CGROUP, id };
    const struct claim *claim = registry_best_claim(r, &what, NULL);

    return claim ? claim->job : NULL;
}

static void
scan(struct registry *r, char *gone)
{
    gone[0] = '\0';
    r->class.end = count_gone;
    r->aux = gone;
    registry_begin(r);
    assert_int_equal(cgroup_scan(dir, see, r), 0);
    registry_end(r);
}

FIXTURE_TEST(scan_finds_jobs)
{
    struct registry r;
    struct job *t0, *t1;
    char gone[256];

    registry_init(&r);
    make_dir("asha");
    make_dir("asha/t0");
    make_dir("asha/t0/step.1");
    make_dir("asha/t0/step.1/x y");
    make_dir("asha/t1");
    make_dir("asha/not a name");
    make_dir("-bad");
    make_dir("-bad/t0");
    write_file("asha/cgroup.procs", "");

    /* One that is asked for, and nothing but it. */
    cgroup_see_job(dir, "asha/t9", see, &r);
    cgroup_see_job(dir, "asha/t0", see, &r);
    assert_int_equal(hmap_count(&r.jobs), 1);
    t0 = registry_find(&r, "asha/t0");
    assert_non_null(t0);
    scan(&r, gone);
    assert_string_equal(gone, "");

    assert_int_equal(hmap_count(&r.jobs), 2);
    assert_ptr_equal(registry_find(&r, "asha/t0"), t0);
    t1 = registry_find(&r, "asha/t1");
    assert_non_null(t1);
    assert_int_equal(t0->cgroup, inode_of("asha/t0"));
    assert_ptr_equal(job_of_cgroup(&r, t0->cgroup), t0);
    assert_ptr_equal(job_of_cgroup(&r, t1->cgroup), t1);
    assert_null(job_of_cgroup(&r, inode_of("asha")));
    assert_null(job_of_cgroup(&r, 0));

    /* A job keeps its place over scans, and a removed job is reported once. */
    remove_file("asha/t0/step.1/x y");
    remove_file("asha/t1");
    scan(&r, gone);
    assert_string_equal(gone, "asha/t1 ");
    assert_ptr_equal(registry_find(&r, "asha/t0"), t0);
    assert_null(registry_find(&r, "asha/t1"));
    scan(&r, gone);
    assert_string_equal(gone, "");

    /* Populated or not, and the removal of the last one out. */
    assert_false(cgroup_is_populated(dir, "asha/gone"));
    write_file("asha/t0/cgroup.events", "populated 1\nfrozen 0\n");
    assert_true(cgroup_is_populated(dir, "asha/t0"));
    write_file("asha/t0/cgroup.events", "populated 0\nfrozen 0\n");
    assert_false(cgroup_is_populated(dir, "asha/t0"));
    assert_int_equal(cgroup_remove(dir, "asha/t0"), EBUSY);
    assert_false(!access("asha/t0/step.1", F_OK));
    remove_file("asha/t0/cgroup.events");
    remove_file("asha/cgroup.procs");
    remove_file("asha/not a name");
    assert_int_equal(cgroup_remove(dir, "asha/t0"), 0);
    assert_false(!access("asha", F_OK));

    assert_int_equal(cgroup_scan("/tmp/sct-none", see, &r), 0);
    registry_uninit(&r);
}

static void
count_hogs(const char *job, uint64_t id OVS_UNUSED, uid_t uid OVS_UNUSED,
           void *n_)
{
    int *n = n_;

    n[strncmp(job, "hog/", 4) != 0]++;
}

/* A directory with very many jobs is not read to its end. */
FIXTURE_TEST(a_cojob_hides_no_other)
{
    char name[32];
    int n[2] = { 0, 0 };

    for (int i = 0; i < 1100; i++) {
        snprintf(name, sizeof name, i < 8 ? "c%d" : "hog", i);
        if (i <= 8) {
            make_dir(name);
        }
        snprintf(name, sizeof name, i < 8 ? "c%d/t0" : "hog/t%d", i);
        make_dir(name);
    }
    assert_int_equal(cgroup_scan(dir, count_hogs, n), 0);
    assert_in_range(n[0], REGISTRY_MAX_JOBS, 1024);
    assert_int_equal(n[1], 8);
}

FIXTURE_TEST(registry_is_bounded)
{
    struct registry r;

    registry_init(&r);
    registry_begin(&r);
    for (int i = 0; i < REGISTRY_MAX_JOBS + 10; i++) {
        char *name = xasprintf("c/j%d", i);

        assert_int_equal(registry_see(&r, name, 100 + i, 0, 0) != NULL,
                         i < REGISTRY_MAX_JOBS);
        free(name);
    }
    assert_int_equal(hmap_count(&r.jobs), REGISTRY_MAX_JOBS);
    assert_int_equal(r.n_refused, 10);
    registry_uninit(&r);
}

/* Rights of a process of a job. */

UNIT_TEST(rights_are_the_real_ones)
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
    assert_true(
        job_process_parse_status("\nUid:\t1\nGid:\t2\nGroups:\t \n", &p));
    assert_int_equal(p.n_groups, 0);
    assert_false(job_process_parse_status("\nUid:\t1\nGid:\t2\n", &p));
    assert_false(
        job_process_parse_status("\nUid:\tx\nGid:\t2\nGroups:\t\n", &p));
}

UNIT_TEST(too_many_groups_count_as_none)
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

UNIT_TEST(a_process_that_has_ended_is_not_alive)
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

UNIT_TEST(subordinate_users_are_the_one_that_has_them)
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
