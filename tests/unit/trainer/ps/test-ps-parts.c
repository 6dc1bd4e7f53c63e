/* SPDX-License-Identifier: Apache-2.0 */

/* Gradients that leave in parts: ranges are sent when they are final and not
 * before, come back when all workers have sent them, and count once, whatever
 * is cut or killed meanwhile.
 *
 * Workers count: each iteration adds 1 to each weight, so that the weights say
 * how many updates were made of each.  What is not final is no number. */

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/trainer/ps/ps-processes.h"
#include "tests/unit/unit-test.h"
#include "trainer/net/frame.h"
#include "trainer/net/link.h"
#include "trainer/ps/client.h"
#include "trainer/schemes/sync.h"

#define N 300000                /* Parameters: several parts of a gradient. */
#define LAYER 41000             /* Parameters that become final together. */
#define HELLO 156               /* Bytes of a hello's frame, */
#define WELCOME 60              /* and of the answer's. */
#define LAST 60                 /* Iterations of a whole training. */

static float weights[N], gradient[N];

static char *
connect_worker(const struct server servers[], int n_servers, int rank,
               int n_workers, struct ps_client **clientp)
{
    return try_client(servers, n_servers, (struct ps_client_config) {
        .rank = rank, .n_workers = n_workers, .n_parameters = N,
        .reconnect_timeout_us = 10000000,
    }, clientp);
}

static bool
counts_are(uint64_t iteration)
{
    for (int i = 0; i < N; i++) {
        if (weights[i] != iteration) {
            return false;
        }
    }
    return true;
}

/* Offers a gradient and makes it final from its end to 'first'. */
static void
compute(struct ps_client *client, uint64_t iteration, size_t first)
{
    for (int i = 0; i < N; i++) {
        gradient[i] = NAN;
    }
    ps_client_offer(client, iteration, gradient, 1, weights);
    for (size_t end = N; end > first;) {
        size_t begin = end > LAYER ? end - LAYER : 0;

        for (size_t i = begin; i < end; i++) {
            gradient[i] = 1;
        }
        ps_client_part(client, begin, end - begin);
        end = begin;
    }
}

static bool
exchange(struct ps_client *client, uint64_t *iteration)
{
    double loss = 0.5;
    char *error;

    for (int i = 0; i < N; i++) {
        gradient[i] = 1;
    }
    if (ps_client_exchange(client, iteration, gradient, 1, &loss, weights,
                           &error) != PS_OK) {
        print_error("%s\n", error ? error : "ended");
        free(error);
        return false;
    }
    return counts_are(*iteration);
}

static bool
step(struct ps_client *client, uint64_t *iteration)
{
    compute(client, *iteration, 0);
    return exchange(client, iteration);
}

/* Makes the first weights, which leave meanwhile; what is not final is no
 * number. */
static void
make_weights(struct ps_client *client)
{
    for (size_t i = 0; i < N; i++) {
        weights[i] = NAN;
    }
    for (size_t i = 0; i < N && ps_client_lacks_weights(client); i += LAYER) {
        size_t n = N - i < LAYER ? N - i : LAYER;

        memset(weights + i, 0, n * sizeof *weights);
        ps_client_first_part(client, weights, i, n);
    }
}

static bool
begin(struct ps_client *client, uint64_t *iteration)
{
    char *error;

    make_weights(client);
    return ps_client_begin(client, weights, iteration, &error) == PS_OK
           && counts_are(*iteration);
}

/* A worker that trains to the end, going wherever the job goes. */
static pid_t
start_worker(const struct server servers[], int n_servers, int rank,
             int n_workers)
{
    pid_t pid = start_process();

    if (!pid) {
        struct ps_client *client;
        uint64_t iteration;
        bool ok = !connect_worker(servers, n_servers, rank, n_workers,
                                  &client)
                  && begin(client, &iteration);

        while (ok && iteration < LAST) {
            ok = step(client, &iteration);
        }
        ps_client_destroy(client);
        _exit(!ok);
    }
    return pid;
}

static void
train_through(const char *scheme, const struct cut cuts[], int n_cuts)
{
    struct sync_spec spec;
    char *wrong = sync_spec_parse(scheme, &spec);
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 1, .reconnect_timeout_us = 5000000, .sync = &spec,
    });
    struct server proxy = start_proxy(&server, cuts, n_cuts);

    assert_null(wrong);
    assert_int_equal(await_end(start_worker(&proxy, 1, 0, 1)), 0);
    assert_int_equal(await_end(server.pid), 0);
    kill_process(proxy.pid);
}

/* In every part, its header, and between two; the first connections do not
 * even carry the first weights. */
UNIT_TEST(cut_parts_count_nothing_twice)
{
    static const char *const schemes[] = {
        "bsp", "asp", "ssp,staleness=0", "backup,backups=0",
    };
    struct cut up[28], down[28];

    for (int i = 0; i < 28; i++) {
        up[i] = (struct cut) { .to_server = HELLO + 1 + i * 49999 };
        down[i] = (struct cut) { .to_client = WELCOME + 1 + i * 49999 };
    }
    up[20].to_server = HELLO + 48 + 4 * LAYER;
    train_through("bsp", up, 28);
    train_through("bsp", down, 28);
    for (int i = 0; i < 28; i += 2) {
        up[i] = down[i];
    }
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        train_through(schemes[i], up, 12);
    }
}

/* All that the two kinds of death have in common: two servers with
 * checkpoints, and another worker. */
struct job {
    char folder[64];
    struct ps_server_config config;
    struct server servers[2];
    pid_t other;
};

static void
start_job(struct job *job)
{
    strcpy(job->folder, "/tmp/test-ps-parts.XXXXXX");
    assert_non_null(mkdtemp(job->folder));
    job->config = (struct ps_server_config) {
        .n_workers = 2, .reconnect_timeout_us = 10000000,
        .checkpoint = job->folder,
        .checkpoint_every = 10, .resume = true,
    };
    for (int i = 0; i < 2; i++) {
        job->servers[i] = start_server(job->config);
    }
    job->other = start_worker(job->servers, 2, 1, 2);
}

static void
finish_job(struct job *job)
{
    char path[128];

    assert_int_equal(await_end(job->other), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(await_end(job->servers[i].pid), 0);
        for (int iteration = 0; iteration <= LAST; iteration++) {
            snprintf(path, sizeof path, "%s/shard-%d-of-2.%d", job->folder, i,
                     iteration);
            unlink(path);
        }
    }
    assert_int_equal(rmdir(job->folder), 0);
}

/* The first parts of the last shard, all of it, and some of the first one,
 * have left when the server of each dies; the gradient is of no use then. */
UNIT_TEST(a_server_may_die_between_parts)
{
    static const size_t sent[] = { N - LAYER, N / 2 - LAYER };
    struct ps_client *client;
    uint64_t iteration;
    struct job job;

    start_job(&job);
    assert_null(connect_worker(job.servers, 2, 0, 2, &client));
    assert_true(begin(client, &iteration));
    for (int i = 0; i < 4; i++) {
        struct server *server = &job.servers[i / 2];
        uint64_t until = iteration + 12;

        while (iteration < until) {
            assert_true(step(client, &iteration));
        }
        compute(client, iteration, sent[i % 2]);
        kill_process(server->pid);
        job.config.port = server->port;
        *server = start_server(job.config);
        ps_client_part(client, 0, 1);   /* Not where the last one ended. */
        assert_true(exchange(client, &iteration));
        assert_int_equal(iteration, until / 10 * 10);
    }
    while (iteration < LAST) {
        assert_true(step(client, &iteration));
    }
    ps_client_destroy(client);
    finish_job(&job);
}

UNIT_TEST(a_worker_may_die_between_parts)
{
    struct job job;

    start_job(&job);
    for (int i = 0; i < 3; i++) {
        pid_t pid = start_process();

        if (!pid) {
            struct ps_client *client;
            uint64_t iteration;

            if (connect_worker(job.servers, 2, 0, 2, &client)
                || !begin(client, &iteration)) {
                _exit(1);
            }
            for (int j = 0; j < 12; j++) {
                if (!step(client, &iteration)) {
                    _exit(1);
                }
            }
            compute(client, iteration, N - (2 * i + 1) * LAYER);
            raise(SIGKILL);
        }
        assert_int_equal(await_end(pid), 128 + SIGKILL);
    }
    assert_int_equal(await_end(start_worker(job.servers, 2, 0, 2)),
                     0);
    finish_job(&job);
}

/* Frames by hand. */

#define FEW 10                  /* Parameters. */

static void
send_frame(struct link *link, struct frame frame, const void *body)
{
    link_send_copy(link, &frame, body);
    assert_int_equal(link_flush(link), 0);
}

/* Receives one frame, or returns false at the end. */
static bool
receive_frame(struct link *link, void *body)
{
    for (;;) {
        char *error;

        switch (link_receive(link, &error)) {
        case LINK_HEAD:
            assert_true(link->frame.payload_length <= FRAME_MAX_TEXT);
            link_set_payload(link, body);
            break;
        case LINK_FRAME:
            return true;
        case LINK_AGAIN:
            break;
        case LINK_END:
            free(error);
            return false;
        }
    }
}

static void
say_hello(struct link *link, const struct server *server, int rank,
          int n_workers)
{
    struct frame hello = {
        .type = FRAME_HELLO,
        .hello = {
            .rank = rank, .n_workers = n_workers, .n_shards = 1,
            .n_parameters = FEW, .channel = FRAME_TRAINING,
            .epoch = FRAME_NONE, .rewind = FRAME_NONE,
        },
    };
    uint8_t body[FRAME_MAX_TEXT];

    link_init(link, connect_blocking(server));
    send_frame(link, hello, NULL);
    assert_true(receive_frame(link, body));
    assert_int_equal(link->frame.type, FRAME_WELCOME);
}

static void
join(struct link *link, const struct server *server, int rank,
     int n_workers)
{
    static const float zeros[FEW];

    say_hello(link, server, rank, n_workers);
    if (!rank) {
        send_frame(link, (struct frame) {
            .type = FRAME_INIT, .range.n = FEW,
        }, zeros);
    }
}

static void
assert_weights(struct link *link, uint64_t iteration, size_t first, size_t n,
               float value)
{
    float body[FRAME_MAX_TEXT / sizeof(float)];

    assert_true(receive_frame(link, body));
    assert_int_equal(link->frame.type, FRAME_WEIGHTS);
    assert_int_equal(link->frame.weights.iteration, iteration);
    assert_int_equal(link->frame.weights.first, first);
    assert_int_equal(link->frame.weights.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(body[i] == value);
    }
}

static const float ones[FEW] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

static struct frame
part(uint64_t first, uint32_t n, uint32_t samples)
{
    return (struct frame) {
        .type = FRAME_PART, .sequence = 1,
        .gradient = { .first = first, .n = n, .n_samples = samples },
    };
}

static struct frame
last_part(uint32_t n, uint32_t samples)
{
    struct frame frame = part(0, n, samples);

    frame.type = FRAME_PUSH;
    return frame;
}

/* Two workers: a range comes back when both have sent it, weighted by their
 * samples, before either gradient is whole. */
UNIT_TEST(ranges_come_back_when_all_have_sent_them)
{
    static const float fives[FEW] = { 5, 5, 5, 5, 5, 5, 5, 5, 5, 5 };
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 2, .reconnect_timeout_us = 100000,
    });
    struct link a, b;

    join(&a, &server, 0, 2);
    join(&b, &server, 1, 2);
    assert_weights(&a, 0, 0, FEW, 0);
    assert_weights(&b, 0, 0, FEW, 0);
    send_frame(&a, part(7, 3, 3), ones);
    send_frame(&a, part(2, 5, 3), ones);
    send_frame(&b, part(8, 2, 1), fives);
    assert_weights(&a, 1, 8, 2, 2);     /* (3 * 1 + 1 * 5) / 4. */
    assert_weights(&b, 1, 8, 2, 2);
    send_frame(&b, part(1, 7, 1), fives);
    assert_weights(&a, 1, 2, 6, 2);
    assert_weights(&b, 1, 2, 6, 2);
    send_frame(&a, last_part(2, 3), ones);
    assert_weights(&a, 1, 1, 1, 2);
    assert_weights(&b, 1, 1, 1, 2);
    send_frame(&b, last_part(1, 1), fives);
    assert_weights(&a, 1, 0, 1, 2);
    assert_weights(&b, 1, 0, 1, 2);
    send_frame(&a, (struct frame) { .type = FRAME_BYE }, NULL);
    send_frame(&b, (struct frame) { .type = FRAME_BYE }, NULL);
    link_close(&a);
    link_close(&b);
    assert_int_equal(await_end(server.pid), 0);
}

/* The first of two frames is right. */
UNIT_TEST(parts_that_do_not_fit_are_refused)
{
    const struct frame first = part(6, 4, 3);
    const struct frame wrong[] = {
        part(6, 4, 3),                  /* Again. */
        part(5, 2, 3),                  /* Reaches into what is there. */
        part(2, 3, 3),                  /* Leaves a gap. */
        part(6, 0, 3), part(5, 0, 3), part(UINT64_MAX - 1, 8, 3),
        part(11, 1, 3),
        part(0, 6, 3),                  /* All, but not the last. */
        last_part(5, 3), last_part(FEW, 3), last_part(0, 3),
        part(5, 1, 4), last_part(6, 4),         /* Of other samples. */
        { .type = FRAME_PART, .sequence = 2,
          .gradient = { .first = 5, .n = 1, .n_samples = 3 } },
        { .type = FRAME_PART, .sequence = 1,
          .gradient = { .first = 5, .n = 1, .n_samples = 3,
                        .iteration = 1 } },
        { .type = FRAME_INIT, .range.n = FEW },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct server server = start_server((struct ps_server_config) {
            .n_workers = 1, .reconnect_timeout_us = 100000,
        });
        float body[FRAME_MAX_TEXT];
        struct link link;

        join(&link, &server, 0, 1);
        assert_weights(&link, 0, 0, FEW, 0);
        send_frame(&link, first, ones);
        assert_weights(&link, 1, 6, 4, 1);
        send_frame(&link, wrong[i], ones);
        assert_true(receive_frame(&link, body));
        assert_int_equal(link.frame.type, FRAME_ABORT);
        link_close(&link);
        assert_int_equal(await_end(server.pid), 1);
    }
}

/* First weights begin at the first one, go on where the part before ended, or
 * begin again. */
UNIT_TEST(first_weights_come_in_order)
{
    static const struct frame_range wrong[] = {
        { .first = 4, .n = 0 }, { .first = 5, .n = 1 }, { .first = 3, .n = 1 },
        { .first = 4, .n = FEW - 3 }, { .first = FEW, .n = 1 },
        { .first = UINT64_MAX, .n = 1 }, { .first = 0, .n = FEW + 1 },
    };
    /* One more than there are, for a range that is too long. */
    static const float values[FEW + 1] = {
        5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    };
    const size_t n_wrong = sizeof wrong / sizeof wrong[0];

    for (size_t i = 0; i <= n_wrong; i++) {
        struct server server = start_server((struct ps_server_config) {
            .n_workers = 1, .reconnect_timeout_us = 100000,
        });
        float body[FRAME_MAX_TEXT];
        struct link link;

        say_hello(&link, &server, 0, 1);
        for (int j = 0; j < 2; j++) {
            send_frame(&link, (struct frame) {
                .type = FRAME_INIT, .range.n = 4,
            }, values);
        }
        if (i < n_wrong) {
            send_frame(&link, (struct frame) {
                .type = FRAME_INIT, .range = wrong[i],
            }, values);
            assert_true(receive_frame(&link, body));
            assert_int_equal(link.frame.type, FRAME_ABORT);
        } else {
            send_frame(&link, (struct frame) {
                .type = FRAME_INIT, .range = { .first = 4, .n = FEW - 4 },
            }, values + 4);
            assert_true(receive_frame(&link, body));
            assert_int_equal(link.frame.type, FRAME_WEIGHTS);
            assert_memory_equal(body, values, FEW * sizeof *values);
        }
        link_close(&link);
        assert_int_equal(await_end(server.pid), 1);
    }
}

int
unit_test_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(TIMEOUT_S);
    return 0;
}
