/* SPDX-License-Identifier: Apache-2.0 */

/* Peers as processes: the same model at all after all-reduce, whatever way it
 * goes; and what becomes of the others when one dies. */

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/unit/trainer/gossip/crew.h"
#include "tests/unit/unit-test.h"
#include "trainer/data/seeded.h"
#include "trainer/gossip/allreduce.h"
#include "trainer/gossip/peer.h"
#include "trainer/net/mesh.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"

#define N 5
#define N_FLOATS 70001          /* Of a vector: no multiple of anything. */
#define FAR_US 20000000

/* All-reduce of vectors that a seed makes, as one peer of several. */
struct reducing {
    struct allreduce *ar;
};

static bool
take(void *r_, int from, const struct frame *frame, const float *body)
{
    struct reducing *r = r_;

    return allreduce_take(r->ar, from, frame, body);
}

static void
room(void *r_, int to)
{
    struct reducing *r = r_;

    allreduce_on_writable(r->ar, to);
}

static void
gone(void *r, int i, bool died)
{
}

static void
fill(float *x, int rank, int round)
{
    struct seeded random;

    seeded_init(&random, 100 + round, rank);
    for (int i = 0; i < N_FLOATS; i++) {
        x[i] = seeded_normal(&random);
    }
}

static void
reduce_main(const struct crew *crew, int rank, int n, int out)
{
    static const struct peer_net_class class = { take, room, gone };
    static float x[N_FLOATS];
    static const int members[N] = { 3, 0, 4, 1, 2 };
    static const int pair[2] = { 0, 1 };
    char *names[N];
    struct reducing r;
    struct peer_net *net;

    for (int i = 0; i < n; i++) {
        names[i] = message("127.0.0.1:%d", crew->ports[i]);
    }
    assert_null(peer_net_create(&(struct peer_net_config) {
        .rank = rank, .n = n, .names = (const char *const *) names,
        .address = "127.0.0.1", .port = crew->ports[rank],
        .hello = {
            .rank = rank, .n_workers = n, .n_shards = n,
            .n_parameters = N_FLOATS, .channel = FRAME_PEERS,
        },
        .connect_us = FAR_US,
    }, &net));
    r.ar = allreduce_create(net, N_FLOATS);
    assert_null(peer_net_start(net, &class, &r));
    for (int round = 0; round < 4; round++) {
        int me = rank;

        fill(x, rank, round);
        for (int i = 0; n == N && i < n; i++) {
            me = members[i] == rank ? i : me;
        }
        peer_net_lock(net);
        allreduce_start(r.ar, &(struct allreduce_round) {
            .round = round, .tree = round % 2,
            .members = n == N ? members : pair, .n_members = n, .me = me,
            .data = x, .n = N_FLOATS, .scale = 0.5f,
        });
        while (!allreduce_done(r.ar)) {
            peer_net_wait(net, INT64_MAX);
        }
        peer_net_unlock(net);
        if (write(out, x, sizeof x) != sizeof x) {
            _exit(1);
        }
    }
    /* A peer that waits for a pipe to be read still serves. */
    peer_net_lock(net);
    peer_net_bye(net, INT64_MAX);
    peer_net_unlock(net);
    peer_net_destroy(net);
    allreduce_destroy(r.ar);
    _exit(0);
}

static void
check_sums(int n)
{
    static float sums[N][N_FLOATS], x[N_FLOATS];
    struct crew crew;

    crew_choose_ports(&crew, n);
    for (int i = 0; i < n; i++) {
        int out = crew_fork(&crew, i);

        if (out >= 0) {
            dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
            reduce_main(&crew, i, n, out);
        }
    }
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < n; i++) {
            assert_int_equal(fread(sums[i], sizeof sums[i], 1, crew.out[i]),
                             1);
            assert_memory_equal(sums[i], sums[0], sizeof sums[i]);
        }
        for (int i = 0; i < n; i++) {
            fill(x, i, round);
            for (int k = 0; k < N_FLOATS; k++) {
                sums[0][k] -= x[k] / 2;
            }
        }
        for (int k = 0; k < N_FLOATS; k++) {
            assert_true(sums[0][k] < 1e-5 && sums[0][k] > -1e-5);
        }
    }
    for (int i = 0; i < n; i++) {
        crew_await(&crew, i, 0);
    }
}

UNIT_TEST(rings_and_trees_give_all_peers_the_same_sum)
{
    check_sums(N);
    check_sums(2);
}

/* A peer as a person starts it, with standard input 'in', or without one if
 * that is -1.  Its samples take their time, so that no peer ends before others
 * have a processor. */
static void
trainer_main(const struct crew *crew, const char *scheme, int rank,
             const char *until, const char *deadline, const char *shards,
             int in, int out)
{
    char *number = message("%d", rank);
    const char *argv[] = {
        "peer", "--scheme", scheme, "--peers", crew->names,
        "--rank", number, "--shape", "32,48,10", "--batch", "100",
        "--samples", "10000", "--validation", "100", "--backend", "cpu",
        "--eval-every", "20", "--sample-cost-us", "100", "--iterations", until,
        "--heartbeat-timeout", deadline, "--policy-every", "0.1",
        "--shards", shards,
    };
    struct options o;
    bool help;
    char *error;

    crew_become(out);
    if (in >= 0) {
        dup2(in, STDIN_FILENO);
    }
    error = options_parse(sizeof argv / sizeof *argv, (char **) argv, &o,
                          &help);
    if (!error) {
        struct control *control = control_create(o.target);

        error = loop_run(&o, control, &exchange_peers);
        control_destroy(control);
    }
    crew_exit(error);
}

/* Starts the first 'n' peers; those of odd ranks have the second scheme and
 * shards. */
static void
start_both(struct crew *crew, int n, const char *const schemes[2],
           const char *const shards[2], const char *until,
           const char *deadline)
{
    for (int i = 0; i < n; i++) {
        int out = crew_fork(crew, i);

        if (out >= 0) {
            trainer_main(crew, schemes[i % 2], i, until, deadline,
                         shards[i % 2], -1, out);
        }
    }
}

static void
start_all(struct crew *crew, const char *scheme, const char *shards,
          const char *until, const char *deadline)
{
    start_both(crew, N, (const char *[]){ scheme, scheme },
               (const char *[]){ shards, shards }, until, deadline);
}

static void
start(struct crew *crew, const char *scheme, const char *until,
      const char *deadline)
{
    crew_choose_ports(crew, N);
    start_all(crew, scheme, "iid", until, deadline);
}

bool __wrap_peer_net_has_space(const struct peer_net *, int, uint32_t);
bool __real_peer_net_has_space(const struct peer_net *, int, uint32_t);

/* Half of the short messages find a full queue, while set. */
static bool crowded;

bool
__wrap_peer_net_has_space(const struct peer_net *net, int i, uint32_t n)
{
    static bool full;

    full = full != (n <= N);
    return !(crowded && full && n <= N)
           && __real_peer_net_has_space(net, i, n);
}

UNIT_TEST(prague_loses_no_message_to_a_full_queue)
{
    struct crew crew;
    char line[CREW_LINE];

    crowded = true;
    start(&crew, "prague", "4", "30");
    for (int i = 0; i < N; i++) {
        assert_true(crew_find_line(&crew, i, "\"done\"", line));
        crew_await(&crew, i, 0);
    }
    crowded = false;
}

UNIT_TEST(all_schemes_train_to_their_targets)
{
    static const char *const schemes[] = { "allreduce", "allreduce-tree",
                                           "adpsgd",    "prague",
                                           "netmax",    "netmax-published" };

    for (size_t k = 0; k < N_ELEMENTS(schemes); k++) {
        struct crew crew;
        char line[CREW_LINE], first[CREW_LINE] = "";

        start(&crew, schemes[k], "250", "30");
        for (int i = 0; i < N; i++) {
            const char *loss;

            assert_true(crew_find_line(&crew, i, "\"done\"", line));
            loss = strstr(line, "\"iteration\": 250, \"loss\": ");
            assert_non_null(loss);
            /* They begin at 2.3. */
            assert_true(atof(loss + 26) < 2.1);
            *strstr(line, ", \"bytes") = '\0';
            if (!i) {
                strcpy(first, loss);
            } else if (k < 2) {
                assert_string_equal(loss, first);
            }
            crew_await(&crew, i, 0);
        }
    }
}

/* One that is killed closes its connections, one that is stopped does not. */
static void
end_one(const char *scheme, int signal, bool survives)
{
    struct crew crew;
    char line[CREW_LINE];

    start(&crew, scheme, "400", signal == SIGSTOP ? "6" : "30");
    assert_true(crew_find_line(&crew, 2, "\"iteration\": 20,", line));
    kill(crew.pids[2], signal);
    for (int i = 0; i < N; i++) {
        if (i != 2) {
            assert_true(crew_find_line(&crew, i, survives ? "\"done\""
                                                          : "failed", line));
            assert_non_null(strstr(line, survives ? "\"iteration\": 400"
                                                  : "died"));
            crew_await(&crew, i, !survives);
        }
    }
    kill_process(crew.pids[2]);
    fclose(crew.out[2]);
}

UNIT_TEST(gossip_continues_after_a_peer_died)
{
    end_one("netmax", SIGKILL, true);
    end_one("netmax-published", SIGKILL, true);
    end_one("adpsgd", SIGKILL, true);
    end_one("netmax", SIGSTOP, true);
    end_one("adpsgd", SIGSTOP, true);
}

UNIT_TEST(schemes_that_need_all_peers_end_with_one_line)
{
    end_one("allreduce", SIGKILL, false);
    end_one("prague", SIGKILL, false);
    end_one("allreduce", SIGSTOP, false);
    end_one("allreduce-tree", SIGSTOP, false);
    end_one("prague", SIGSTOP, false);
}

/* A peer without others to wait for does not train on. */
UNIT_TEST(a_peer_left_alone_ends_under_prague)
{
    struct crew crew;
    char line[CREW_LINE];

    start(&crew, "prague", "400", "30");
    assert_true(crew_find_line(&crew, 0, "\"iteration\": 20,", line));
    for (int i = 1; i < N; i++) {
        kill(crew.pids[i], SIGKILL);
    }
    assert_true(crew_find_line(&crew, 0, "failed", line));
    assert_non_null(strstr(line, "died"));
    crew_await(&crew, 0, 1);
    for (int i = 1; i < N; i++) {
        kill_process(crew.pids[i]);
        fclose(crew.out[i]);
    }
}

static void
refuse_each_other(const char *const schemes[2], const char *const shards[2])
{
    struct crew crew;
    char line[CREW_LINE];

    crew_choose_ports(&crew, 2);
    start_both(&crew, 2, schemes, shards, "10", "30");
    for (int i = 0; i < 2; i++) {
        assert_true(crew_find_line(&crew, i, "trains something else", line));
        crew_await(&crew, i, 1);
    }
}

UNIT_TEST(peers_of_another_training_or_with_other_shards_are_refused)
{
    refuse_each_other((const char *[]){ "netmax", "adpsgd" },
                      (const char *[]){ "iid", "iid" });
    refuse_each_other((const char *[]){ "adpsgd", "adpsgd" },
                      (const char *[]){ "by-label", "iid" });
}

/* All have a loss as with samples of all labels. */
static void
learn_all(struct crew *crew, const char *scheme, const char *shards)
{
    char line[CREW_LINE];

    start_all(crew, scheme, shards, "250", "30");
    for (int i = 0; i < N; i++) {
        assert_true(crew_find_line(crew, i, "\"done\"", line));
        assert_true(atof(strstr(line, "\"loss\": ") + 8) < 2.1);
        crew_await(crew, i, 0);
    }
}

/* Two names of this host are two machines, of three peers and of two. */
UNIT_TEST(smart_groups_take_means_across_machines)
{
    struct crew crew;
    char *at = crew.names;

    crew_choose_ports(&crew, N);
    for (int i = 0; i < N; i++) {
        at += sprintf(at, "%s%s:%d", i ? "," : "",
                      i % 2 ? "127.1" : "127.0.0.1", crew.ports[i]);
    }
    learn_all(&crew, "prague", "iid");
}

/* Each has few labels, and learns the others from its peers. */
UNIT_TEST(peers_with_few_labels_learn_all)
{
    struct crew crew;

    crew_choose_ports(&crew, N);
    learn_all(&crew, "allreduce", "by-label");
}

/* Both have no iterations left when peer 1 gets another target.  The input of
 * peer 0 ends, so it must learn of the target to wait for peer 1. */
UNIT_TEST(a_peer_waits_for_one_that_resumes)
{
    struct crew crew;
    char line[CREW_LINE];
    int input[2] = { -1, -1 };

    crew_choose_ports(&crew, 2);
    for (int i = 0; i < 2; i++) {
        int ends[2], out;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        out = crew_fork(&crew, i);
        if (out >= 0) {
            close(ends[1]);
            close(input[0]);
            trainer_main(&crew, "adpsgd", i, "20", "30", "iid", ends[0], out);
        }
        close(ends[0]);
        input[i] = ends[1];
    }
    for (int i = 0; i < 2; i++) {
        assert_true(crew_find_line(&crew, i, "\"paused\"", line));
    }
    assert_int_equal(write(input[1], "until 600\n", 10), 10);
    assert_true(crew_find_line(&crew, 1, "\"iteration\": 40,", line));
    close(input[0]);
    assert_true(crew_find_line(&crew, 1, "\"iteration\": 200,", line));
    assert_int_equal(waitpid(crew.pids[0], NULL, WNOHANG), 0);
    close(input[1]);
    assert_true(crew_find_line(&crew, 1, "\"iteration\": 600,", line));
    for (int i = 0; i < 2; i++) {
        crew_await(&crew, i, 0);
    }
}

UNIT_TEST(a_job_has_at_most_128_peers)
{
    struct crew crew;
    char line[CREW_LINE];
    int out;

    crew.names[0] = '\0';
    for (int i = 0; i <= 128; i++) {
        strcat(crew.names, i ? ",h:1" : "h:1");
    }
    out = crew_fork(&crew, 0);
    if (out >= 0) {
        trainer_main(&crew, "netmax", 0, "10", "30", "iid", -1, out);
    }
    assert_true(crew_find_line(&crew, 0, "failed", line));
    assert_non_null(strstr(line, "--peers: more than 128"));
    crew_await(&crew, 0, 1);
}
