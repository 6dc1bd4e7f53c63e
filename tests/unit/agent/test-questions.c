/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/identify/process.h"
#include "agent/identify/questions.h"
#include "agent/identify/registry.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/cgroup-path.h"

#define N 200

struct fixture {
    struct registry registry;
    struct questions *questions;
    pid_t pids[N];
};

/* Starts a process with this variable in its environment. */
static pid_t
start(const char *variable)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (!pid) {
        char *env[] = { CONST_CAST(char *, variable), NULL };

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execle("/bin/sleep", "sleep", "60", NULL, env);
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0); /* It executes. */
    close(ready[0]);
    return pid;
}

FIXTURE_SET_UP
{
    registry_init(&f->registry);
    f->questions = questions_create(&f->registry);
}

FIXTURE_TEAR_DOWN
{
    for (size_t i = 0; i < N; i++) {
        if (f->pids[i]) {
            kill(f->pids[i], SIGKILL);
            waitpid(f->pids[i], NULL, 0);
        }
    }
    questions_destroy(f->questions);
    registry_uninit(&f->registry);
}

static const struct claim *
claim_of(const struct fixture *f, pid_t pid)
{
    const struct claim_what what = { CLAIMS_PROCESS, pid };

    return registry_best_claim(&f->registry, &what, NULL);
}

FIXTURE_TEST(an_answer_is_a_claim)
{
    f->pids[0] = start("SLURM_JOB_ID=7");
    f->pids[1] = start("HOME=/");
    questions_add(f->questions, f->pids[0], getuid());
    questions_add(f->questions, f->pids[1], getuid());
    assert_true(questions_run(f->questions, 1000));
    assert_non_null(claim_of(f, f->pids[0]));
    assert_int_equal(claim_of(f, f->pids[0])->source, CLAIM_ENVIRONMENT);
    assert_null(claim_of(f, f->pids[1]));
    assert_false(questions_run(f->questions, 1000));
}

/* Many processes of one user take one turn each, as the one of another. */
FIXTURE_TEST(users_are_answered_in_turn)
{
    for (size_t i = 0; i < N - 1; i++) {
        f->pids[i] = start("HOME=/");
        questions_add(f->questions, f->pids[i], 1);
    }
    f->pids[N - 1] = start("SLURM_JOB_ID=7");
    questions_add(f->questions, f->pids[N - 1], 2);
    assert_true(questions_run(f->questions, 1000));
    assert_non_null(claim_of(f, f->pids[N - 1]));
}

/* A process that belonged to no job does when its parent is claimed. */
FIXTURE_TEST(descendants_are_asked_about_again)
{
    struct claim_what what = { CLAIMS_PROCESS, getpid() };

    f->pids[0] = start("HOME=/");
    questions_add(f->questions, f->pids[0], getuid());
    assert_false(questions_run(f->questions, 1000));
    assert_non_null(registry_claim(&f->registry, CLAIM_REGISTRATION, "asha/t0",
                                   &what, NULL, 1000));
    questions_again(f->questions);
    assert_true(questions_run(f->questions, 1100));
    assert_string_equal(claim_of(f, f->pids[0])->job->name, "asha/t0");
}

/* A user forks more than the table remembers; the process of another is
 * answered, and the first has old ones forgotten. */
FIXTURE_TEST(a_user_cannot_fill_the_table)
{
    struct users *users = &f->registry.users;
    struct shares *table = &users->questions;
    long long now = 1000;

    for (pid_t pid = 1 << 23; !shares_full(table); pid++) {
        questions_add(f->questions, pid, 1);
    }
    questions_add(f->questions, 1 << 24, 1);
    assert_int_equal(users_find(users, 1, 0)->questions.n_refused, 1);
    f->pids[0] = start("SLURM_JOB_ID=7");
    questions_add(f->questions, f->pids[0], 2);
    assert_true(questions_run(f->questions, now));
    assert_non_null(claim_of(f, f->pids[0]));
    assert_int_equal(users_find(users, 2, 0)->questions.n_refused, 0);

    /* None of these processes is there. */
    for (; table->n; now += 100) {
        assert_true(now < 1000000);
        questions_run(f->questions, now);
    }
}

/* Whatever uid they take.  In a tree of a user the name of a pod means
 * nothing. */
FIXTURE_TEST(processes_of_a_pod_are_one_user)
{
    struct users *users = &f->registry.users;
    char *mount = cgroup_mount_from("/proc/mounts");
    char *outer = xasprintf("%s/sct-%d", mount, (int) getpid());
    char *kubelet = xasprintf("%s/kubepods", outer);
    char *dir = xasprintf("%s/pod%032x", kubelet, (unsigned int) getpid());
    char *procs = xasprintf("%s/cgroup.procs", dir);
    const char *const owners[] = { dir, kubelet, outer };
    const struct user *user;
    FILE *stream;

    if (mkdir(outer, 0755) || mkdir(kubelet, 0755) || mkdir(dir, 0755)
        || !(stream = fopen(procs, "w"))) {
        skip();
    }
    f->pids[0] = start("HOME=/");
    fprintf(stream, "%d", (int) f->pids[0]);
    assert_int_equal(fclose(stream), 0);
    users->cgroup_mount = mount;
    user = users_find(users, 1, f->pids[0]);
    assert_string_equal(user->pod, strstr(dir, "pod0") + 3);
    assert_ptr_equal(users_find(users, 2, f->pids[0]), user);
    for (size_t i = 0; i < N_ELEMENTS(owners); i++) {
        assert_int_equal(chown(owners[i], 1, 1), 0);
        user = users_find(users, 1, f->pids[0]);
        assert_string_equal(user->pod, "");
        assert_int_equal(user->uid, 1);
        assert_int_equal(chown(owners[i], 0, 0), 0);
    }

    kill(f->pids[0], SIGKILL);
    waitpid(f->pids[0], NULL, 0);
    f->pids[0] = 0;
    for (size_t i = 0; i < N_ELEMENTS(owners); i++) {
        assert_int_equal(rmdir(owners[i]), 0);
    }
    free(procs);
    free(dir);
    free(kubelet);
    free(outer);
    free(mount);
}
