/* SPDX-License-Identifier: Apache-2.0 */

/* Which claims the agent trusts. */

#include <config.h>

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/identify/environ.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "agent/progress/socket.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static const struct claim_what a_cgroup = { CLAIMS_CGROUP, 100 };
static const struct claim_what a_netns = { CLAIMS_NETNS, 100 };
static const struct claim_what a_process = { CLAIMS_PROCESS, 100 };

static void
ignore_job(struct job *job OVS_UNUSED, void *n)
{
    ++*(int *) n;
}

/* Users. */
enum { ANN = 1000, BOB = 1001 };

static struct registry r;

static int
set_up(void **state OVS_UNUSED)
{
    registry_init(&r);
    return 0;
}

static int
tear_down(void **state OVS_UNUSED)
{
    registry_uninit(&r);
    return 0;
}

/* A look at a tree that has nothing. */
static int
scan(void)
{
    int n_gone = 0;

    r.class.end = ignore_job;
    r.aux = &n_gone;
    registry_begin(&r);
    registry_end(&r);
    return n_gone;
}

static void
assert_owner(const struct claim_what *whats, size_t n, const char *name)
{
    const struct claim *claim = NULL;

    for (size_t i = 0; i < n; i++) {
        claim = registry_best_claim(&r, &whats[i], claim);
    }
    assert_string_equal(claim ? claim->job->name : "", name ? name : "");
}

static struct job *
claim(enum claim_source source, const char *name,
      const struct claim_what *what)
{
    return registry_claim(&r, source, name, what, NULL, 0);
}

static bool
unclaim(enum claim_source source, const char *name,
        const struct claim_what *what)
{
    return registry_unclaim(&r, source, name, what);
}

/* The same of a launcher that names the user. */
static struct job *
launch(uint64_t uid, const char *name, const struct claim_what *what)
{
    return registry_claim(&r, CLAIM_LAUNCHER, name, what, &uid, 0);
}

static struct job *
claim_by(uint64_t uid, const char *name, uint64_t pid)
{
    const struct claim_what what = { CLAIMS_PROCESS, pid };

    return registry_claim(&r, CLAIM_ENVIRONMENT, name, &what, &uid, 0);
}

static void
assert_job_of(uint64_t pid, const char *name)
{
    const struct claim_what what = { CLAIMS_PROCESS, pid };

    assert_owner(&what, 1, name);
}

static bool
may_join(const struct job *job, uint64_t uid)
{
    return registry_may_join(&r, job->name, uid, false);
}

/* Returns whether processes have lost their job since the last call. */
static bool
has_lost(void)
{
    bool lost = r.has_lost;

    r.has_lost = false;
    return lost;
}

static void
set_gpus(const struct claim_what *what, unsigned int n)
{
    registry_set_gpus(&r, registry_find_claim(&r, CLAIM_LAUNCHER, what), n);
}

FIXTURE_TEST(more_believed_source_decides)
{
    const struct claim_what whats[] = { a_process, a_cgroup, a_netns };

    assert_owner(whats, 3, NULL);
    claim(CLAIM_ENVIRONMENT, "c/env", &a_process);
    assert_owner(whats, 3, "c/env");
    registry_begin(&r);
    registry_see(&r, "c/tree", 100, 0, 0);
    assert_owner(whats, 3, "c/tree");
    claim(CLAIM_LAUNCHER, "c/launcher", &a_netns);
    assert_owner(whats, 3, "c/launcher");
    claim(CLAIM_REGISTRATION, "c/told", &a_process);
    assert_owner(whats, 3, "c/told");

    /* Each of them is still there behind it. */
    assert_true(unclaim(CLAIM_REGISTRATION, "c/told", &a_process));
    assert_owner(whats, 3, "c/launcher");
    assert_true(unclaim(CLAIM_LAUNCHER, "c/launcher", &a_netns));
    assert_owner(whats, 3, "c/tree");
    assert_int_equal(scan(), 3);
    assert_owner(whats, 3, "c/env");
}

/* Two pods of a job, and one ends; the other gets more. */
FIXTURE_TEST(claims_add_up_their_gpus)
{
    struct job *job;

    job = claim(CLAIM_LAUNCHER, "c/j", &a_cgroup);
    claim(CLAIM_LAUNCHER, "c/j", &a_netns);
    set_gpus(&a_cgroup, 4);
    set_gpus(&a_netns, 2);
    assert_int_equal(job->gpus, 6);
    claim(CLAIM_LAUNCHER, "c/j", &a_cgroup);
    assert_int_equal(job->gpus, 6);
    set_gpus(&a_cgroup, 8);
    assert_int_equal(job->gpus, 10);
    assert_true(unclaim(CLAIM_LAUNCHER, "c/j", &a_netns));
    assert_int_equal(job->gpus, 8);
}

FIXTURE_TEST(first_of_equals_decides)
{
    const struct claim_what whats[] = { a_process, a_cgroup };
    const struct claim_what other_way[] = { a_cgroup, a_process };

    claim(CLAIM_LAUNCHER, "c/a", &a_cgroup);
    claim(CLAIM_LAUNCHER, "c/b", &a_process);
    assert_owner(whats, 2, "c/b");
    assert_owner(other_way, 2, "c/a");

    /* An id means another thing for each kind. */
    assert_owner(&a_netns, 1, NULL);
}

FIXTURE_TEST(source_changes_its_mind)
{
    claim(CLAIM_LAUNCHER, "c/a", &a_process);
    claim(CLAIM_LAUNCHER, "c/b", &a_process);
    assert_owner(&a_process, 1, "c/b");
    assert_false(unclaim(CLAIM_LAUNCHER, "c/a", &a_process));
    assert_false(unclaim(CLAIM_ENVIRONMENT, "c/b", &a_process));
    assert_int_equal(scan(), 1);
    assert_null(registry_find(&r, "c/a"));
    assert_true(unclaim(CLAIM_LAUNCHER, "c/b", &a_process));
    assert_owner(&a_process, 1, NULL);
    assert_int_equal(scan(), 1);
    assert_int_equal(hmap_count(&r.jobs), 0);
}

FIXTURE_TEST(job_lives_as_long_as_anything_claims_it)
{
    struct job *job;

    job = claim(CLAIM_LAUNCHER, "c/a", &a_cgroup);
    assert_int_equal(job->n_claims, 1);
    assert_int_equal(scan(), 0);
    assert_ptr_equal(registry_best_claim(&r, &a_cgroup, NULL)->job, job);

    registry_remove(&r, job);
    assert_int_equal(hmap_count(&r.claims), 0);
    assert_null(registry_best_claim(&r, &a_cgroup, NULL));
}

FIXTURE_TEST(claims_of_too_many_jobs_are_refused)
{
    for (int i = 0; i <= REGISTRY_MAX_JOBS; i++) {
        struct claim_what what = { CLAIMS_PROCESS, i + 1 };
        char *name = xasprintf("c/j%d", i);

        assert_int_equal(
            registry_claim(&r, CLAIM_ENVIRONMENT, name, &what, NULL, 0)
                != NULL,
            i < REGISTRY_MAX_JOBS);
        free(name);
    }
    assert_int_equal(hmap_count(&r.claims), REGISTRY_MAX_JOBS);
    assert_int_equal(r.n_refused, 1);
}

FIXTURE_TEST(nobody_joins_the_job_of_another)
{
    struct job *job;

    job = claim_by(ANN, "asha/t0", 10);
    assert_true(may_join(job, ANN));
    assert_false(may_join(job, BOB));
    /* Root of a container. */
    assert_false(may_join(job, 0));
    assert_true(registry_may_join(&r, job->name, 0, true));

    /* A cgroup that root has made, before its user is known. */
    job = registry_see(&r, "asha/t1", 100, 0, 0);
    assert_false(may_join(job, ANN));
    registry_set_uid(&r, job, CLAIM_CGROUP, ANN);
    assert_true(may_join(job, ANN));
    assert_false(may_join(job, BOB));
}

FIXTURE_TEST(registration_ends_squatting)
{
    const struct claim_what netns = { CLAIMS_NETNS, 7 };
    struct job *job;

    /* By a cgroup of its user. */
    job = claim_by(BOB, "asha/t0", 10);
    assert_false(registry_is_registered(job));
    assert_ptr_equal(registry_see(&r, "asha/t0", 100, ANN, 0), job);
    assert_true(registry_is_registered(job));
    assert_int_equal(job->uid, ANN);
    assert_true(has_lost());
    assert_job_of(10, NULL);

    /* By a cgroup of root's, with a user that is not known yet. */
    job = claim_by(BOB, "asha/t1", 11);
    registry_see(&r, "asha/t1", 101, 0, 0);
    assert_false(job->has_uid);
    assert_true(has_lost());
    assert_job_of(11, NULL);

    /* By a launcher, with and without the user. */
    job = claim_by(BOB, "asha/t2", 12);
    launch(ANN, "asha/t2", &netns);
    assert_int_equal(job->uid, ANN);
    job = claim_by(BOB, "asha/t3", 13);
    claim(CLAIM_LAUNCHER, "asha/t3", &a_cgroup);
    assert_false(job->has_uid);
    assert_true(has_lost());
    assert_int_equal(r.n_refused, 4);

    /* The user of a launcher counts more than the user of a cgroup. */
    job = registry_find(&r, "asha/t2");
    registry_set_uid(&r, job, CLAIM_CGROUP, BOB);
    assert_int_equal(job->uid, ANN);
}

static bool
ann_owns(const char *name, uint64_t *uidp, void *aux OVS_UNUSED)
{
    *uidp = ANN;
    return !strncmp(name, "asha/", 5);
}

FIXTURE_TEST(owner_ends_squatting)
{
    struct job *job;

    job = claim_by(BOB, "asha/t0", 10);
    registry_set_owner(&r, job, ANN);
    assert_int_equal(job->uid, ANN);
    assert_job_of(10, NULL);
    assert_false(may_join(job, BOB));
    assert_true(may_join(job, ANN));

    /* No other user takes a name that has an owner. */
    assert_true(registry_may_join(&r, "asha/t1", BOB, false));
    r.class.owner = ann_owns;
    assert_false(registry_may_join(&r, "asha/t1", BOB, false));
    assert_false(registry_may_join(&r, "asha/t1", 0, false));
    assert_true(registry_may_join(&r, "asha/t1", ANN, false));
    assert_true(registry_may_join(&r, "other/t1", BOB, false));

    /* A registered job has the user that registered it. */
    job = registry_see(&r, "asha/t2", 100, BOB, 0);
    registry_set_owner(&r, job, ANN);
    assert_int_equal(job->uid, BOB);
}

/* As two namespaces with pods that name one job. */
FIXTURE_TEST(registered_job_is_of_its_first_user_or_its_owner)
{
    const uint64_t root = 0;
    struct job *job = launch(BOB, "asha/t0", &a_cgroup);

    assert_null(launch(ANN, "asha/t0", &a_netns));
    assert_int_equal(r.n_refused, 1);
    assert_int_equal(job->uid, BOB);
    assert_non_null(launch(BOB, "asha/t0", &a_process));
    r.class.owner = ann_owns;
    assert_ptr_equal(launch(ANN, "asha/t0", &a_netns), job);
    assert_int_equal(job->uid, ANN);
    assert_int_equal(job->n_claims, 1);
    assert_null(launch(BOB, "asha/t0", &a_cgroup));
    assert_non_null(registry_claim(&r, CLAIM_REGISTRATION, "asha/t0",
                                   &a_cgroup, &root, 0));
}

FIXTURE_TEST(user_cannot_fill_the_registry)
{
    int n = 0;

    for (int i = 0; i < 1030; i++) {
        char *name = xasprintf("slurm-u%d/%d", BOB, i);

        n += claim_by(BOB, name, i + 2) != NULL;
        free(name);
    }
    assert_int_equal(n, REGISTRY_MAX_UID_JOBS);
    assert_int_equal(r.n_refused, 1030 - REGISTRY_MAX_UID_JOBS);

    /* The other users, and the user's own registered jobs. */
    assert_non_null(claim_by(ANN, "asha/t0", 2000));
    assert_non_null(registry_see(&r, "bob/t0", 100, BOB, 0));
    assert_int_equal(hmap_count(&r.jobs), REGISTRY_MAX_UID_JOBS + 1);
}

/* Claims of a user's processes beyond its share, when there are too many. */
FIXTURE_TEST(user_cannot_take_all_claims)
{
    struct shares *table = &r.users.claims;
    int pid = 2;

    while (!shares_full(table)) {
        assert_non_null(claim_by(BOB, "bob/t0", pid++));
    }
    assert_null(claim_by(BOB, "bob/t0", pid++));
    assert_int_equal(users_find(&r.users, BOB, 0)->claims.n_refused, 1);
    for (uint32_t i = 0; i < table->size / 2; i++) {
        assert_non_null(claim_by(ANN, "asha/t0", pid++));
    }
    assert_null(claim_by(ANN, "asha/t0", pid));
    registry_remove(&r, registry_find(&r, "bob/t0"));
    assert_int_equal(users_find(&r.users, BOB, 0)->claims.n, 0);
    assert_non_null(claim_by(ANN, "asha/t0", pid));

    /* An alarm names the refused user, for a minute. */
    for (int minute = 0; minute < 3; minute++) {
        struct json *json;

        users_run(&r.users, 1 + minute * 60001);
        json = users_to_json(&r.users);
        assert_int_equal(json->array.n, minute ? 0 : 2);
        json_destroy(json);
    }
    assert_int_equal(hmap_count(&r.users.all), 1);
}

FIXTURE_TEST(registered_jobs_displace_others)
{
    static int n_gone;
    int n = 0;

    r.class.end = ignore_job;
    r.aux = &n_gone;
    for (uid_t uid = 1; hmap_count(&r.jobs) < REGISTRY_MAX_JOBS; uid++) {
        for (int i = 0; i < REGISTRY_MAX_UID_JOBS; i++) {
            char *name = xasprintf("u%d/%d", (int) uid, i);

            claim_by(uid, name, ++n + 1);
            free(name);
        }
    }
    assert_non_null(claim_by(ANN, "asha/t0", 5000));
    assert_int_equal(n_gone, 2); /* The last user took one too. */
    assert_null(claim_by(1, "u1/more", 5001));
    for (int i = 0; i < 3; i++) {
        char *name = xasprintf("asha/r%d", i);

        assert_non_null(registry_see(&r, name, 100 + i, ANN, 0));
        free(name);
    }
    assert_int_equal(n_gone, 5);
    assert_int_equal(hmap_count(&r.jobs), REGISTRY_MAX_JOBS);
    assert_non_null(registry_find(&r, "asha/r0"));
}

/* Senders of progress are processes of this test. */
FIXTURE_TEST(progress_is_the_jobs_own_or_its_users)
{
    pid_t pid = fork();
    struct ucred sender = { .pid = pid, .uid = ANN };
    struct job *job, *sibling, *other;

    if (!pid) {
        pause();
        _exit(0);
    }
    job = claim_by(getuid(), "asha/t0", pid);
    sibling = claim_by(getuid(), "asha/t1", 2);
    other = claim_by(getuid(), "bert/t0", 2);
    assert_true(progress_may_report(&r, NULL, &sender, job));
    assert_true(progress_may_report(&r, NULL, &sender, sibling));
    assert_false(progress_may_report(&r, NULL, &sender, other));

    /* A job of another user that names itself after the cojob. */
    sibling->uid = BOB;
    assert_false(progress_may_report(&r, NULL, &sender, sibling));
    sibling->has_uid = false;
    assert_false(progress_may_report(&r, NULL, &sender, sibling));
    sender.uid = BOB;
    assert_false(progress_may_report(&r, NULL, &sender, sibling));

    /* Root of the host, and a process that has exited. */
    sender.uid = 0;
    assert_true(progress_may_report(&r, NULL, &sender, other));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_false(progress_may_report(&r, NULL, &sender, other));
}

static char *
on_h0(pid_t pid OVS_UNUSED)
{
    return xstrdup("h0");
}

/* In a namespace of its own a process has a name of its own. */
UNIT_TEST(host_names_are_of_the_process)
{
    char own[256] = "", c;
    int told[2];
    pid_t pid;

    gethostname(own, sizeof own - 1);
    assert_is(process_host_name(getpid()), own);
    assert_int_equal(pipe(told), 0);
    pid = fork();
    if (!pid) {
        c = !unshare(CLONE_NEWUTS) && !sethostname("myjob-0", 7) ? 'y' : 'n';
        ignore(write(told[1], &c, 1));
        pause();
        _exit(0);
    }
    assert_int_equal(read(told[0], &c, 1), 1);
    assert_is(process_host_name(pid), c == 'y' ? "myjob-0" : own);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_is(process_host_name(getpid()), own);
    assert_null(process_host_name(pid));
    close(told[0]);
    close(told[1]);
}

UNIT_TEST(cojobs_of_frameworks_are_of_one_user)
{
    static const char text[] = "MASTER_ADDR=a\0MASTER_PORT=1";
    char *anns = environ_job(text, sizeof text, ANN, on_h0, 0);
    char *bobs = environ_job(text, sizeof text, BOB, on_h0, 0);

    assert_is(anns, "torch-u1000/a-1");
    assert_is(bobs, "torch-u1001/a-1");
}

UNIT_TEST(jobs_meet_at_ports)
{
    static const struct {
        char environ[64];
        int port;
    } cases[] = {
        { "MASTER_ADDR=a\0MASTER_PORT=29500", 29500 },
        { "SLURM_JOB_ID=7\0MASTER_PORT=65535", 65535 },
        { "DMLC_PS_ROOT_PORT=9091", 9091 },
        { "HOROVOD_GLOO_RENDEZVOUS_PORT=77", 77 },
        { "MASTER_PORT=65536", 0 },
        { "MASTER_PORT=0", 0 },
        { "MASTER_PORT=-1", 0 },
        { "MASTER_PORT=80a", 0 },
        { "MASTER_PORT=", 0 },
        { "XMASTER_PORT=1", 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(
            environ_rendezvous(cases[i].environ, sizeof cases[i].environ),
            cases[i].port);
    }
}

UNIT_TEST(what_is_claimed_is_checked)
{
    static const struct {
        const char *kind, *text, *mount, *message;
    } cases[] = {
        { "socket", "7", "/tmp", "expected cgroup, netns or pid" },
        { "pid", "x", "/tmp", "expected 2 and more" },
        { "pid", "1", "/tmp", "expected 2 and more" },
        { "pid", "-3", "/tmp", "expected 2 and more" },
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

        assert_says(error, cases[i].message);
        assert_null(path);
    }
}

UNIT_TEST(what_is_claimed_is_found)
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
    assert_is(path, "/proc/self");
    assert_null(claim_what_parse("cgroup", "/proc/self", "/proc", &what,
                                 &path));
    assert_is(path, "/proc/self");
    free(self);
}

UNIT_TEST(process_is_told_from_its_successor)
{
    struct process self, child;
    pid_t pid = fork();

    if (!pid) {
        pause();
        _exit(0);
    }
    assert_true(process_read(getpid(), &self));
    assert_true(process_read(pid, &child));
    assert_int_equal(child.parent, getpid());
    assert_true(child.born >= self.born && self.born > 0);
    kill(pid, SIGKILL);

    /* A zombie works for no job. */
    waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
    assert_false(process_read(pid, &child));
    waitpid(pid, NULL, 0);
    assert_false(process_read(pid, &child));
}

/* Environments: strings that each end in a null byte. */

UNIT_TEST(environment_names_the_job)
{
#define E(TEXT) TEXT, sizeof TEXT
    static const struct {
        const char *environ;
        size_t size;
        const char *job;
    } cases[] = {
        { E("PATH=/bin\0STAGECOACH_COJOB=asha\0STAGECOACH_JOB=t0"),
          "asha/t0" },
        { E("SLURM_JOB_ID=4711\0SLURM_PROCID=0"), "slurm-u7/4711" },
        { E("SLURM_JOB_ID=9\0SLURM_ARRAY_JOB_ID=4711\0"
            "SLURM_ARRAY_TASK_ID=7"),
          "slurm-4711-u7/7" },
        { E("SLURM_JOB_ID=4711\0STAGECOACH_COJOB=asha"), "asha/4711" },
        { E("SLURM_JOB_ID=4711\0MASTER_ADDR=a\0MASTER_PORT=1"),
          "slurm-u7/4711" },
        { E("MASTER_ADDR=10.0.0.1\0MASTER_PORT=29500\0RANK=0"),
          "torch-u7/10.0.0.1-29500" },
        { E("MASTER_ADDR=10.0.0.1"), NULL },
        { E("TORCHELASTIC_RUN_ID=run7\0MASTER_ADDR=a\0MASTER_PORT=1"),
          "torch-u7/run7" },
        { E("TORCHELASTIC_RUN_ID=none\0MASTER_ADDR=a\0MASTER_PORT=1"),
          "torch-u7/a-1" },
        { E("DMLC_ROLE=worker\0DMLC_PS_ROOT_URI=fe80::1\0"
            "DMLC_PS_ROOT_PORT=9091"),
          "ps-lite-u7/fe80--1-9091" },
        { E("HOROVOD_GLOO_RENDEZVOUS_ADDR=h1\0"
            "HOROVOD_GLOO_RENDEZVOUS_PORT=77"),
          "horovod-u7/h1-77" },
        { E("NNI_EXP_ID=Ab3\0NNI_TRIAL_JOB_ID=xyz"), "nni-Ab3-u7/xyz" },
        { E("KATIB_TRIAL_NAME=random-x7k"), "katib-u7/random-x7k" },
        { E("PMIX_NAMESPACE=prterun-h1-88@1"), "mpi-u7/prterun-h1-88-1" },
        { E("RAY_JOB_ID=01000000"), "ray-u7/01000000" },
        { E("HOSTNAME=bert-3\0JOB_COMPLETION_INDEX=3"), "kubernetes-u7/bert" },
        { E("HOSTNAME=bert-3\0JOB_COMPLETION_INDEX=4"), NULL },
        { E("HOSTNAME=bert-3"), NULL },
        { E("TF_CONFIG={\"cluster\": {\"worker\": [\"w0:2222\", \"w1:2222\"],"
            " \"ps\": [\"p0:2222\"]}, \"task\": {}}"),
          "tensorflow-u7/w0-2222" },
        { E("TF_CONFIG={\"cluster\": {\"chief\": \"c\", \"ps\": [\"p:1\"]}}"),
          "tensorflow-u7/p-1" },
        { E("TF_CONFIG={\"cluster\": []}"), NULL },
        { E("MASTER_ADDR=localhost\0MASTER_PORT=23456"), "torch-u7/h0-23456" },
        { E("MASTER_ADDR=127.0.0.1\0MASTER_PORT=1"), "torch-u7/h0-1" },
        { E("MASTER_ADDR=127.3.0.9\0MASTER_PORT=1"), "torch-u7/h0-1" },
        { E("MASTER_ADDR=::1\0MASTER_PORT=1"), "torch-u7/h0-1" },
        { E("MASTER_ADDR=[::1]\0MASTER_PORT=1"), "torch-u7/h0-1" },
        { E("MASTER_ADDR=::ffff:127.0.0.1\0MASTER_PORT=1"), "torch-u7/h0-1" },
        { E("MASTER_ADDR=0.0.0.0\0MASTER_PORT=1"), "torch-u7/h0-1" },
        { E("MASTER_ADDR=LocalHost\0MASTER_PORT=1"), "torch-u7/h0-1" },
        { E("MASTER_ADDR=localhost7\0MASTER_PORT=1"),
          "torch-u7/localhost7-1" },
        { E("MASTER_ADDR=128.0.0.1\0MASTER_PORT=1"), "torch-u7/128.0.0.1-1" },
        { E("DMLC_PS_ROOT_URI=localhost\0DMLC_PS_ROOT_PORT=9000"),
          "ps-lite-u7/h0-9000" },
        { E("HOROVOD_GLOO_RENDEZVOUS_ADDR=127.0.0.1\0"
            "HOROVOD_GLOO_RENDEZVOUS_PORT=9000"),
          "horovod-u7/h0-9000" },
        { E("TF_CONFIG={\"cluster\": {\"worker\": [\"localhost:2222\","
            " \"localhost:2223\"]}}"),
          "tensorflow-u7/h0-2222" },
        { E("TF_CONFIG={\"cluster\": {\"worker\": [\"[::1]:2222\"]}}"),
          "tensorflow-u7/h0-2222" },
        { E("KATIB_TRIAL_NAME=localhost"), "katib-u7/localhost" },
        { E("TF_CONFIG={\"cluster\": {\"worker\": [7]}}"), NULL },
        { E("TF_CONFIG={\"clus"), NULL },
        { E("SLURM_JOB_ID="), NULL },
        { E("XSLURM_JOB_ID=1\0SLURM_JOB_IDX=1\0SLURM_JOB_ID"), NULL },
        { E("SLURM_JOB_ID=../../etc"), "slurm-u7/x.-..-etc" },
        { E("SLURM_JOB_ID=\xc3\xa4"), "slurm-u7/x-" },
        { E(""), NULL },
    };
#undef E

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *job = environ_job(cases[i].environ, cases[i].size, 7, on_h0, 0);

        assert_string_equal(job ? job : "", cases[i].job ? cases[i].job : "");
        free(job);
    }

    /* Without its last byte, the last string is not one. */
    assert_null(environ_job("RAY_JOB_ID=1", 12, 7, on_h0, 0));
    assert_null(environ_job(NULL, 0, 7, on_h0, 0));
}

UNIT_TEST(long_names_stay_whole)
{
    static const char a[] =
        "KATIB_TRIAL_NAME=a-long-name-of-a-certain-trial-1";

    assert_is(environ_job(a, sizeof a, 7, on_h0, 0),
              "katib-u7/a-long-name-of-a-certain-trial-1");
}

UNIT_TEST(path_in_the_tree_names_the_job)
{
    static const struct {
        const char *path, *job;
    } cases[] = {
        { "/cg/sc/asha/t0", "asha/t0" },
        { "/cg/sc/asha/t0/step/x y", "asha/t0" },
        { "/cg/sc/asha", NULL },
        { "/cg/sc", NULL },
        { "/cg/scx/asha/t0", NULL },
        { "/cg/sc/as ha/t0", NULL },
        { "/cg/sc/asha/-t0", NULL },
        { "/cg/sc/asha/", NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *job = cgroup_job_at("/cg/sc", cases[i].path);

        assert_string_equal(job ? job : "", cases[i].job ? cases[i].job : "");
        free(job);
    }
}

UNIT_TEST(environment_of_a_process_is_read)
{
    size_t size;
    char *text = process_environ(getpid(), &size);

    if (text) {                 /* It may be empty. */
        assert_int_equal(text[size - 1], '\0');
        free(text);
    }
    assert_null(process_environ(2147483646, &size));
}
