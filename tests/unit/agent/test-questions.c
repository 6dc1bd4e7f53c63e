/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/identify/claim.h"
#include "agent/identify/process.h"
#include "agent/identify/questions.h"
#include "agent/identify/registry.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define N 200

struct fixture {
    struct registry registry;
    struct questions *questions;
    pid_t pids[N];
};

/* Starts a process whose environment has this variable. */
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

static int
set_up(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);

    registry_init(&f->registry);
    f->questions = questions_create(&f->registry);
    *state = f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < N; i++) {
        if (f->pids[i]) {
            kill(f->pids[i], SIGKILL);
            waitpid(f->pids[i], NULL, 0);
        }
    }
    questions_destroy(f->questions);
    registry_uninit(&f->registry);
    free(f);
    return 0;
}

static const struct claim *
claim_of(const struct fixture *f, pid_t pid)
{
    const struct claim_what what = { CLAIMS_PROCESS, pid };

    return registry_best_claim(&f->registry, &what, NULL);
}

static void
an_answer_is_a_claim(void **state)
{
    struct fixture *f = *state;

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
static void
users_are_answered_in_turn(void **state)
{
    struct fixture *f = *state;

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
static void
descendants_are_asked_about_again(void **state)
{
    struct fixture *f = *state;
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_a_claim),
        TEST(users_are_answered_in_turn),
        TEST(descendants_are_asked_about_again),
    };

    return cmocka_run_group_tests_name("questions", tests, NULL, NULL);
}
