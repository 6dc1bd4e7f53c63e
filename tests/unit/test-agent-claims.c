/* SPDX-License-Identifier: Apache-2.0 */

/* Whom the agent believes. */

#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/identify/claim.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "util.h"

static const struct claim_what a_cgroup = { CLAIMS_CGROUP, 100 };
static const struct claim_what a_netns = { CLAIMS_NETNS, 100 };
static const struct claim_what a_process = { CLAIMS_PROCESS, 100 };

static void
ignore_job(struct job *job OVS_UNUSED, void *n)
{
    ++*(int *) n;
}

/* A look at a tree that has nothing. */
static int
look(struct registry *r)
{
    int n_gone = 0;

    registry_begin(r);
    registry_end(r, ignore_job, &n_gone);
    return n_gone;
}

static void
assert_owner(const struct registry *r, const struct claim_what *whats,
             size_t n, const char *name)
{
    const struct job *job = registry_owner(r, whats, n);

    if (!name) {
        assert_null(job);
    } else {
        assert_non_null(job);
        assert_string_equal(job->name, name);
    }
}

static void
more_believed_source_decides(void **state OVS_UNUSED)
{
    const struct claim_what whats[] = { a_process, a_cgroup, a_netns };
    struct registry r;

    registry_init(&r);
    assert_owner(&r, whats, 3, NULL);
    registry_claim(&r, CLAIM_PORT, "c/port", &a_process, 0);
    assert_owner(&r, whats, 3, "c/port");
    registry_claim(&r, CLAIM_ENVIRONMENT, "c/env", &a_process, 0);
    assert_owner(&r, whats, 3, "c/env");
    registry_begin(&r);
    registry_see(&r, "c/tree", 100, false, 0);
    assert_owner(&r, whats, 3, "c/tree");
    registry_claim(&r, CLAIM_LAUNCHER, "c/launcher", &a_netns, 0);
    assert_owner(&r, whats, 3, "c/launcher");
    registry_claim(&r, CLAIM_REGISTRATION, "c/told", &a_process, 0);
    assert_owner(&r, whats, 3, "c/told");

    /* Each of them is still there behind it. */
    assert_true(registry_unclaim(&r, CLAIM_REGISTRATION, "c/told",
                                 &a_process));
    assert_owner(&r, whats, 3, "c/launcher");
    assert_true(registry_unclaim(&r, CLAIM_LAUNCHER, "c/launcher", &a_netns));
    assert_owner(&r, whats, 3, "c/tree");
    assert_int_equal(look(&r), 3);
    assert_owner(&r, whats, 3, "c/env");
    registry_uninit(&r);
}

static void
first_of_equals_decides(void **state OVS_UNUSED)
{
    const struct claim_what whats[] = { a_process, a_cgroup };
    const struct claim_what other_way[] = { a_cgroup, a_process };
    struct registry r;

    registry_init(&r);
    registry_claim(&r, CLAIM_LAUNCHER, "c/a", &a_cgroup, 0);
    registry_claim(&r, CLAIM_LAUNCHER, "c/b", &a_process, 0);
    assert_owner(&r, whats, 2, "c/b");
    assert_owner(&r, other_way, 2, "c/a");

    /* An id means another thing for each kind. */
    assert_owner(&r, &a_netns, 1, NULL);
    registry_uninit(&r);
}

static void
source_changes_its_mind(void **state OVS_UNUSED)
{
    struct registry r;

    registry_init(&r);
    registry_claim(&r, CLAIM_LAUNCHER, "c/a", &a_process, 0);
    registry_claim(&r, CLAIM_LAUNCHER, "c/b", &a_process, 0);
    assert_owner(&r, &a_process, 1, "c/b");
    assert_false(registry_unclaim(&r, CLAIM_LAUNCHER, "c/a", &a_process));
    assert_false(registry_unclaim(&r, CLAIM_PORT, "c/b", &a_process));
    assert_int_equal(look(&r), 1);
    assert_null(registry_find(&r, "c/a"));
    assert_true(registry_unclaim(&r, CLAIM_LAUNCHER, "c/b", &a_process));
    assert_owner(&r, &a_process, 1, NULL);
    assert_int_equal(look(&r), 1);
    assert_int_equal(hmap_count(&r.jobs), 0);
    registry_uninit(&r);
}

static void
job_lives_as_long_as_anything_claims_it(void **state OVS_UNUSED)
{
    struct registry r;
    struct job *job;

    registry_init(&r);
    job = registry_claim(&r, CLAIM_LAUNCHER, "c/a", &a_cgroup, 0);
    assert_int_equal(job->n_claims, 1);
    assert_int_equal(look(&r), 0);
    assert_ptr_equal(registry_job_of_cgroup(&r, 100), job);

    /* What is below a claimed cgroup is forgotten unless seen again. */
    registry_begin(&r);
    registry_see_claimed(&r, registry_find_claim(&r, CLAIM_LAUNCHER,
                                                 &a_cgroup), 101);
    registry_end(&r, ignore_job, &(int) { 0 });
    assert_ptr_equal(registry_job_of_cgroup(&r, 101), job);
    assert_int_equal(look(&r), 0);
    assert_null(registry_job_of_cgroup(&r, 101));

    registry_remove(&r, job);
    assert_int_equal(hmap_count(&r.claims), 0);
    assert_null(registry_job_of_cgroup(&r, 100));
    registry_uninit(&r);
}

static void
claims_of_too_many_jobs_are_refused(void **state OVS_UNUSED)
{
    struct registry r;

    registry_init(&r);
    for (int i = 0; i <= REGISTRY_MAX_JOBS; i++) {
        struct claim_what what = { CLAIMS_PROCESS, i + 1 };
        char *name = xasprintf("c/j%d", i);

        assert_int_equal(registry_claim(&r, CLAIM_PORT, name, &what, 0)
                         != NULL, i < REGISTRY_MAX_JOBS);
        free(name);
    }
    assert_int_equal(hmap_count(&r.claims), REGISTRY_MAX_JOBS);
    assert_int_equal(r.n_refused, 1);
    registry_uninit(&r);
}

static void
names_of_sources_are_read_back(void **state OVS_UNUSED)
{
    for (int i = 0; i < N_CLAIM_SOURCES; i++) {
        assert_int_equal(claim_source_from_name(claim_source_name(i)), i);
    }
    assert_int_equal(claim_source_from_name("nobody"), N_CLAIM_SOURCES);
}

static void
what_is_claimed_is_checked(void **state OVS_UNUSED)
{
    static const struct {
        const char *kind, *text, *mount, *message;
    } cases[] = {
        { "socket", "7", "/tmp", "cgroup, netns and pid are allowed" },
        { "pid", "x", "/tmp", "2 and more are allowed" },
        { "pid", "1", "/tmp", "2 and more are allowed" },
        { "pid", "-3", "/tmp", "2 and more are allowed" },
        { "pid", "2147483646", "/tmp", "there is no process" },
        { "cgroup", "a/b", "/tmp", "absolute ones" },
        { "cgroup", "/../etc", "/tmp", "absolute ones" },
        { "cgroup", "/sct-none", "/tmp", "/tmp/sct-none" },
        { "cgroup", "/sct-none", NULL, "no cgroup v2" },
        { "netns", "/tmp", "/tmp", "is not a netns" },
        { "netns", "/run/netns/sct-none", "/tmp", "No such file" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct claim_what what;
        char *path;
        char *error = claim_what_parse(cases[i].kind, cases[i].text,
                                       cases[i].mount, &what, &path);

        assert_non_null(error);
        assert_non_null(strstr(error, cases[i].message));
        assert_null(path);
        free(error);
    }
}

static void
what_is_claimed_is_found(void **state OVS_UNUSED)
{
    char *self = xasprintf("%d", (int) getpid());
    struct claim_what what;
    struct stat s;
    char *path;

    assert_null(claim_what_parse("pid", self, NULL, &what, &path));
    assert_int_equal(what.kind, CLAIMS_PROCESS);
    assert_int_equal(what.id, getpid());
    assert_null(path);

    assert_int_equal(stat("/proc/self/ns/net", &s), 0);
    assert_null(claim_what_parse("netns", "/proc/self/ns/net", NULL, &what,
                                 &path));
    assert_int_equal(what.kind, CLAIMS_NETNS);
    assert_int_equal(what.id, s.st_ino);
    free(path);

    /* Below the mount, with and without it. */
    assert_int_equal(stat("/proc/self", &s), 0);
    assert_null(claim_what_parse("cgroup", "/self", "/proc", &what, &path));
    assert_int_equal(what.kind, CLAIMS_CGROUP);
    assert_int_equal(what.id, s.st_ino);
    assert_string_equal(path, "/proc/self");
    free(path);
    assert_null(claim_what_parse("cgroup", "/proc/self", "/proc", &what,
                                 &path));
    assert_string_equal(path, "/proc/self");
    free(path);
    free(self);
}

static void
process_is_told_from_its_successor(void **state OVS_UNUSED)
{
    struct process self, child;
    pid_t pid = fork();

    if (!pid) {
        pause();
        _exit(0);
    }
    assert_true(process_look(getpid(), &self));
    assert_true(process_look(pid, &child));
    assert_int_equal(child.parent, getpid());
    assert_true(child.born >= self.born && self.born > 0);
    kill(pid, SIGKILL);

    /* A zombie works for nobody. */
    waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
    assert_false(process_look(pid, &child));
    waitpid(pid, NULL, 0);
    assert_false(process_look(pid, &child));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_believed_source_decides),
        cmocka_unit_test(first_of_equals_decides),
        cmocka_unit_test(source_changes_its_mind),
        cmocka_unit_test(job_lives_as_long_as_anything_claims_it),
        cmocka_unit_test(claims_of_too_many_jobs_are_refused),
        cmocka_unit_test(names_of_sources_are_read_back),
        cmocka_unit_test(what_is_claimed_is_checked),
        cmocka_unit_test(what_is_claimed_is_found),
        cmocka_unit_test(process_is_told_from_its_successor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
