/* SPDX-License-Identifier: Apache-2.0 */

/* FlexRR: workers and the server's scheme, in every order that chance makes of
 * what may happen next: a worker begins a piece, a message arrives, a worker
 * pushes.  Whatever the order, each sample of each iteration is computed
 * exactly once, and somebody can always go on. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit-test.h"
#include "trainer/backend/backend.h"
#include "trainer/schemes/steal.h"
#include "trainer/schemes/sync.h"

#define MAX_JOB_PROCESSES 5
#define SHARE 10                /* Samples of a worker. */
#define ITERATIONS 4
#define QUEUE 512

/* A connection keeps the order; a push travels as one of them. */
struct queue {
    struct sync_message m[QUEUE];
    int first, n;
};

enum { PUSH = SYNC_N_KINDS };

struct world {
    struct backend *b;
    struct sync_spec spec;
    struct sync *sync;
    int n_workers;
    struct steal steals[MAX_JOB_PROCESSES];
    struct queue to_server[MAX_JOB_PROCESSES], to_worker[MAX_JOB_PROCESSES];
    uint64_t iteration[MAX_JOB_PROCESSES];
    uint32_t n_computed[MAX_JOB_PROCESSES];   /* In its iteration. */
    bool waits[MAX_JOB_PROCESSES];            /* It has pushed. */
    uint8_t times[ITERATIONS][MAX_JOB_PROCESSES * SHARE];
    uint32_t stolen;
    uint64_t random;
};

static uint32_t
chance(struct world *w, uint32_t n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (w->random >> 33) % n;
}

static void
put(struct queue *q, const struct sync_message *m)
{
    assert_true(q->n < QUEUE);
    q->m[(q->first + q->n++) % QUEUE] = *m;
}

static struct sync_message
get(struct queue *q)
{
    struct sync_message m = q->m[q->first];

    q->first = (q->first + 1) % QUEUE;
    q->n--;
    return m;
}

static void
begin(struct world *w, int i)
{
    steal_begin(&w->steals[i], i, w->n_workers, w->iteration[i], i * SHARE,
                SHARE);
    w->n_computed[i] = 0;
    w->waits[i] = false;
}

static void
send_posts(struct world *w, int i)
{
    struct sync_message m;

    while (steal_post(&w->steals[i], &m)) {
        put(&w->to_server[i], &m);
    }
}

/* The server takes the next of worker 'i', and replies where it can. */
static void
run_server(struct world *w, int i)
{
    const struct sync_class *class = w->spec.class;
    struct sync_message m = get(&w->to_server[i]);
    uint64_t iteration;
    float loss;
    int to;

    if (m.kind == PUSH) {
        assert_null(class->push(w->sync, i, m.iteration, m.n, 0));
    } else {
        assert_null(class->message(w->sync, i, &m));
    }
    while (sync_take(w->sync, &to, &m)) {
        put(&w->to_worker[to], &m);
    }
    for (i = 0; i < w->n_workers; i++) {
        if (w->waits[i] && class->ready(w->sync, i, &iteration, &loss)
            && iteration > w->iteration[i]) {
            w->iteration[i] = iteration;
            put(&w->to_worker[i], &(struct sync_message) {
                .kind = PUSH, .iteration = iteration,
            });
        }
    }
}

/* Worker 'i' takes its next message, or its weights. */
static void
run_message(struct world *w, int i)
{
    struct sync_message m = get(&w->to_worker[i]);

    if (m.kind == PUSH) {
        if (m.iteration < ITERATIONS) {
            begin(w, i);
        }
    } else if (m.kind != SYNC_ROLE) {
        steal_take(&w->steals[i], &m);
        send_posts(w, i);
    }
}

/* Worker 'i' begins its next piece, or pushes.  False if it only waits. */
static bool
run_worker(struct world *w, int i)
{
    struct steal *s = &w->steals[i];
    uint32_t first, n;

    if (w->waits[i]) {
        return false;
    }
    if (steal_idle(s)) {
        w->waits[i] = true;
        put(&w->to_server[i], &(struct sync_message) {
            .kind = PUSH, .iteration = w->iteration[i],
            .n = w->n_computed[i],
        });
        return true;
    }
    if (s->state != STEAL_OWN && s->state != STEAL_HELPING) {
        return false;
    }
    if (steal_next(s, 1 + chance(w, 3), &first, &n)) {
        for (uint32_t k = first; k < first + n; k++) {
            w->times[w->iteration[i]][k]++;
        }
        w->n_computed[i] += n;
        w->stolen += s->state == STEAL_HELPING ? n : 0;
    }
    send_posts(w, i);
    return true;
}

static bool
is_over(const struct world *w)
{
    for (int i = 0; i < w->n_workers; i++) {
        if (w->iteration[i] < ITERATIONS) {
            return false;
        }
    }
    return true;
}

/* Does one thing that may happen; 'slow' may do its work seldom. */
static bool
step(struct world *w, int slow)
{
    uint32_t at = chance(w, 3 * w->n_workers);

    for (int k = 0; k < 3 * w->n_workers; k++) {
        int i = (at + k) % w->n_workers;
        int what = (at + k) / w->n_workers % 3;

        if (what == 0 && w->to_server[i].n) {
            run_server(w, i);
            return true;
        } else if (what == 1 && w->to_worker[i].n) {
            run_message(w, i);
            return true;
        } else if (what == 2 && (i != slow || !chance(w, 8))
                   && run_worker(w, i)) {
            return true;
        }
    }
    return slow >= 0;
}

static void
world_init(struct world *w, int n_workers, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->random = seed * 0x9e3779b97f4a7c15u + 1;
    w->n_workers = n_workers;
    assert_int_equal(backend_open(&backend_cpu, 0, 1, &w->b), 0);
    assert_null(sync_spec_parse("flexrr", &w->spec));
    w->sync = sync_create(w->spec.class, &(struct sync_config) {
        .backend = w->b, .n_workers = n_workers, .n = 1,
        .optimiser = optimiser_defaults(optimiser_find("sgd"), 0.1f, 0),
        .spec = &w->spec,
    });
    for (int i = 0; i < n_workers; i++) {
        begin(w, i);
    }
}

UNIT_TEST(every_sample_is_computed_once_in_any_order)
{
    uint64_t n_stolen = 0;

    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct world w;
        int slow = seed % 2 ? (int) (seed / 2 % 2) : -1;
        uint32_t n_steps = 0;

        world_init(&w, 1 + seed % MAX_JOB_PROCESSES, seed);
        while (!is_over(&w)) {
            if (!step(&w, slow) || ++n_steps > 100000) {
                fail_msg("seed %d: nobody can go on", (int) seed);
            }
        }
        for (int k = 0; k < ITERATIONS; k++) {
            for (int i = 0; i < w.n_workers * SHARE; i++) {
                if (w.times[k][i] != 1) {
                    fail_msg("seed %d: sample %d of iteration %d computed "
                             "%d times", (int) seed, i, k, w.times[k][i]);
                }
            }
        }
        n_stolen += w.stolen;
        sync_destroy(w.sync);
        backend_close(w.b);
    }
    assert_true(n_stolen > 10000);      /* It was a test. */
}

/* A claim for what has been begun meanwhile, or of another iteration. */
UNIT_TEST(gives_only_samples_that_were_not_started)
{
    struct steal s = { .n_posts = 0 };
    struct sync_message help = {
        .kind = SYNC_HELP, .worker = 1, .iteration = 7, .first = 3, .n = 7,
    };
    struct sync_message m;
    uint32_t first, n;

    steal_begin(&s, 0, 2, 7, 0, 10);
    assert_true(steal_next(&s, 4, &first, &n));
    steal_take(&s, &help);              /* Sample 3 has been begun. */
    assert_true(steal_post(&s, &m));
    assert_int_equal(m.kind, SYNC_CANCEL);

    help.first = 5;
    help.n = 5;
    help.iteration = 6;
    steal_take(&s, &help);
    assert_true(steal_post(&s, &m));
    assert_int_equal(m.kind, SYNC_CANCEL);

    help.iteration = 7;
    steal_take(&s, &help);
    assert_true(steal_post(&s, &m));
    assert_int_equal(m.kind, SYNC_CONFIRM);
    steal_take(&s, &help);              /* Twice: it is gone. */
    assert_true(steal_post(&s, &m));
    assert_int_equal(m.kind, SYNC_CANCEL);
    assert_true(steal_next(&s, 4, &first, &n));
    assert_int_equal(first, 4);
    assert_int_equal(n, 1);
}

UNIT_TEST(refuses_messages_to_unknown_workers)
{
    struct world w;
    char *error;

    world_init(&w, 2, 1);
    error = w.spec.class->message(w.sync, 0, &(struct sync_message) {
        .kind = SYNC_HELP, .worker = 2,
    });
    assert_is(error, "message to worker 2 of 2");
    error = w.spec.class->message(w.sync, 0, &(struct sync_message) {
        .kind = SYNC_ROLE,
    });
    assert_is(error, "message of kind 1: not for flexrr");
    sync_destroy(w.sync);
    backend_close(w.b);
}
