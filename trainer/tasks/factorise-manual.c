/* SPDX-License-Identifier: Apache-2.0 */

/* Matrix factorisation without a key store, as an expert would write it by
 * hand; a baseline for the store.
 *
 * Each node has its rows in an array, and one block of columns.  After
 * training on the block it sends it to the node that needs it next, in large
 * messages, and continues with the block that it receives.  The steps are the
 * same as those of factorise.c.  One thread and that of the mesh. */

#include "trainer/tasks/node-task.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/models/vector.h"
#include "trainer/net/mesh.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/process/report.h"
#include "trainer/tasks/factorise-data.h"

#define LOOK_US 100000          /* Time between checks for signals. */
#define BYE_US 1000000          /* Time for others to receive the end. */

/* Meaning of a FRAME_PEER. */
enum kind {
    BLOCK,                      /* Part, from float 'first' on, of the block
                                 * that the receiver has in step
                                 * 'round'. */
    SUMS,                       /* Sums of epoch 'round'. */
};

struct sums {
    float updates, loss, n_judged, squares, cpu_s;
};

#define N_SUMS (sizeof(struct sums) / sizeof(float))

struct manual {
    const struct factorise_manual_in *in;
    const struct options *o;
    struct factorise_data *data;
    struct peer_net *net;
    struct bold_driver driver;
    size_t rank;                /* Rank of the factors. */
    int self, n;                /* Own index and number of nodes. */

    float *rows;
    uint32_t *place;            /* Position of each column in its block. */
    float *block;               /* Block of the current step. */

    /* Protected by the lock. */
    uint64_t turn;              /* Current step: parts of rounds in
                                 * sequence.  Round 2 e trains epoch e, and
                                 * round 2 e + 1 validates it, in the same
                                 * order of blocks. */
    float *next;                /* Block of the next step. */
    size_t n_next;              /* Received floats of it. */
    uint64_t epoch;
    struct sums of_node[PEER_NET_MAX];
    int n_sums;                 /* Nodes whose sums have arrived. */
    char *error;
};

static size_t
block_floats(const struct manual *m, int block)
{
    const uint32_t *starts = m->data->columns->starts;

    return (starts[block + 1] - starts[block]) * m->rank;
}

static int
block_of_turn(const struct manual *m, uint64_t turn)
{
    return blocking_block(m->data->columns, turn / m->n / 2, turn % m->n,
                          m->self);
}

/* Returns the next step; unneeded rounds are left out. */
static uint64_t
next_turn(const struct manual *m)
{
    bool last = m->turn % m->n == (uint64_t) m->n - 1;
    bool skips = last && m->turn / m->n % 2 == 0
                 && !node_task_is_judged(m->o, m->turn / m->n / 2);

    return m->turn + 1 + (skips ? m->n : 0);
}

static bool
take(void *m_, int from, const struct frame *frame, const float *body)
{
    struct manual *m = m_;

    if (frame->peer.message == SUMS && frame->peer.n == N_SUMS) {
        if (frame->peer.round != m->epoch || !m->n_sums) {
            return false;       /* A message for a later step. */
        }
        memcpy(&m->of_node[from], body, sizeof m->of_node[from]);
        m->n_sums++;
    } else if (frame->peer.message == BLOCK) {
        size_t size = block_floats(m, block_of_turn(m, next_turn(m)));

        if (frame->peer.round != next_turn(m)) {
            return false;
        }
        if (frame->peer.first > size ||
            frame->peer.n > size - frame->peer.first) {
            m->error = m->error ? m->error
                       : message("node %d (%s) sends too much of a block",
                                 from, m->in->names[from]);
        } else {
            memcpy(m->next + frame->peer.first, body,
                   frame->peer.n * sizeof *body);
            m->n_next += frame->peer.n;
        }
    }
    peer_net_notify(m->net);
    return true;
}

static void
room(void *m_, int to)
{
    struct manual *m = m_;

    (void) to;
    peer_net_notify(m->net);
}

static void
gone(void *m_, int i, bool died)
{
    struct manual *m = m_;

    if (died && !m->error) {
        m->error = message("node %d (%s) died", i, m->in->names[i]);
    }
    peer_net_notify(m->net);
}

/* Returns a message if this node was requested to end. */
static char *
look(struct manual *m)
{
    control_run(m->in->control);
    return control_stopped(m->in->control) ? duplicate("requested to end")
                                           : NULL;
}

/* Waits for a while, with the lock held before and after.  Returns a message
 * at the end. */
static char *
wait(struct manual *m)
{
    char *error = m->error;

    if (!error) {
        peer_net_wait(m->net, clock_monotonic_us() + LOOK_US);
        error = m->error;
    }
    m->error = NULL;
    return error ? error : look(m);
}

/* Sends the block of this step to the node that has it next.  Called with the
 * lock. */
static void
send_block(struct manual *m, int to, uint64_t turn, size_t size)
{
    for (size_t i = 0; i < size; i += PEER_NET_MAX_FLOATS) {
        size_t n = size - i < PEER_NET_MAX_FLOATS ? size - i
                                                  : PEER_NET_MAX_FLOATS;
        struct frame frame = {
            .peer = { .message = BLOCK, .round = turn, .first = i, .n = n },
        };

        peer_net_send(m->net, to, &frame, m->block + i);
    }
}

/* Ends the step and switches to the next block. */
static char *
pass_on(struct manual *m)
{
    int block = block_of_turn(m, m->turn);
    uint64_t next = next_turn(m);
    size_t coming = block_floats(m, block_of_turn(m, next));
    int to = blocking_worker(m->data->columns, next / m->n / 2, next % m->n,
                             block);
    char *error = NULL;

    peer_net_lock(m->net);
    if (to != m->self) {
        float *last = m->block;

        send_block(m, to, next, block_floats(m, block));
        while (!error && (m->n_next < coming || peer_net_busy(m->net, to))) {
            error = wait(m);
        }
        m->block = m->next;
        m->next = last;
        m->n_next = 0;
    }
    m->turn = next;
    peer_net_retry(m->net);
    peer_net_unlock(m->net);
    return error;
}

/* Replaces 'sums' by the sums over all nodes, which are identical on all. */
static char *
add_up(struct manual *m, struct sums *sums)
{
    struct sums all = { .updates = 0 };
    char *error = NULL;

    peer_net_lock(m->net);
    m->of_node[m->self] = *sums;
    m->n_sums = 1;
    for (int i = 0; i < m->n; i++) {
        struct frame frame = {
            .peer = { .message = SUMS, .round = m->epoch, .n = N_SUMS },
        };

        if (i != m->self) {
            peer_net_send_copy(m->net, i, &frame, &sums->updates);
        }
    }
    peer_net_retry(m->net);
    while (!error && m->n_sums < m->n) {
        error = wait(m);
    }
    for (int i = 0; i < m->n; i++) {
        vector_add(N_SUMS, 1, &m->of_node[i].updates, &all.updates);
    }
    *sums = all;
    m->n_sums = 0;
    m->epoch++;
    peer_net_unlock(m->net);
    return error;
}

static float *
row_of(const struct manual *m, const struct rating *x)
{
    return m->rows + x->row * m->rank;
}

static float *
column_of(const struct manual *m, const struct rating *x)
{
    return m->block + m->place[x->column] * m->rank;
}

static void
train_block(struct manual *m, int block, struct sums *sums)
{
    size_t first = factorise_data_first(m->data, m->self, block);
    size_t end = factorise_data_first(m->data, m->self, block + 1);
    double loss = 0;

    for (size_t i = first; i < end; i++) {
        const struct rating *x = &m->data->ratings->all[i];
        struct factorise_step step = factorise_data_step(m->data, m->rank,
                                                         m->driver.rate, x);
        float error = factorise_step(&step, row_of(m, x), column_of(m, x));

        loss += error * error;
    }
    sums->updates += end - first;
    sums->loss += loss;
}

static void
judge_block(const struct manual *m, int block, struct sums *sums)
{
    const struct ratings *r = m->data->ratings;

    for (size_t i = r->n_train; i < r->n; i++) {
        const struct rating *x = &r->all[i];

        if (m->data->rows->home[x->row] == m->self
            && m->data->columns->block_of[x->column] == (uint32_t) block) {
            float e = factorise_data_error(m->rank, x, row_of(m, x),
                                           column_of(m, x));

            sums->squares += e * e;
            sums->n_judged++;
        }
    }
}

/* Processes all blocks once.  'last' is true in the last round. */
static char *
make_round(struct manual *m, bool judge, bool last, struct sums *sums)
{
    char *error = look(m);      /* A single node never waits and so must
                                 * check here. */

    for (int part = 0; part < m->n && !error; part++) {
        int block = block_of_turn(m, m->turn);

        if (judge) {
            judge_block(m, block, sums);
        } else {
            size_t before = sums->updates;

            pace_step(m->in->pace);
            train_block(m, block, sums);
            pace_wait(m->in->pace, sums->updates - before, m->in->control);
        }
        if (!last || part < m->n - 1) {
            error = pass_on(m);
        }
    }
    return error;
}

static char *
make_epoch(struct manual *m, uint64_t epoch)
{
    bool judged = node_task_is_judged(m->o, epoch);
    bool last = epoch + 1 == (uint64_t) m->o->target;
    double cpu_s = clock_cpu_s(), seconds;
    int64_t began_us = clock_monotonic_us();
    struct sums sums = { .updates = 0 };
    char *error = make_round(m, false, false, &sums);

    sums.cpu_s = clock_cpu_s() - cpu_s;
    seconds = (clock_monotonic_us() - began_us) * 1e-6;
    if (judged && !error) {
        error = make_round(m, true, last, &sums);
    }
    error = error ? error : add_up(m, &sums);
    if (!error) {
        struct report_epoch e = {
            .epoch = epoch + 1, .updates = sums.updates, .seconds = seconds,
            .cpu_s = sums.cpu_s, .loss = sums.loss / sums.updates,
            .qualities = { sqrt(sums.squares / sums.n_judged) },
        };

        bold_driver_run(&m->driver, e.loss);
        if (m->in->report) {
            node_task_report(&node_task_factorise, &e, m->in->report);
        }
    }
    return error;
}

static char *
open_net(struct manual *m)
{
    const struct options *o = m->o;
    const struct ratings *r = m->data->ratings;

    return peer_net_create(&(struct peer_net_config) {
        .rank = m->self, .n = m->n, .names = m->in->names,
        .address = o->address, .port = m->in->port,
        .congestion = o->congestion, .connect_us = m->in->connect_us,
        .heartbeat_timeout_us = o->heartbeat_timeout * 1e6,
        .control = m->in->control, .listening = report_listening,
        .hello = {
            .rank = m->self, .n_workers = m->n, .n_shards = m->n,
            .n_parameters = (r->n_rows + (uint64_t) r->n_columns) * m->rank,
            .learning_rate = o->learning_rate, .weight_decay = o->weight_decay,
            .seed = o->seed, .target = o->target,
            .scheme = FRAME_SCHEME_MANUAL,
            .channel = FRAME_PEERS,
        },
    }, &m->net);
}

/* Stores initial values, the same as in a key store. */
static void
init_values(struct manual *m)
{
    const struct ratings *r = m->data->ratings;
    const struct blocking *b = m->data->columns;
    uint32_t most = b->starts[1];       /* No block is longer than the first
                                         * one. */
    int block = block_of_turn(m, 0);

    m->rows = allocate(r->n_rows * m->rank, sizeof *m->rows);
    m->place = allocate(r->n_columns, sizeof *m->place);
    m->block = allocate(most * m->rank, sizeof *m->block);
    m->next = allocate(most * m->rank, sizeof *m->next);
    for (uint32_t i = 0; i < r->n_rows; i++) {
        factorise_first_values(m->o, i, m->rows + i * m->rank);
    }
    for (uint32_t i = 0; i < r->n_columns; i++) {
        uint32_t column = b->items[i];

        m->place[column] = i - b->starts[b->block_of[column]];
        if (b->block_of[column] == (uint32_t) block) {
            factorise_first_values(m->o, r->n_rows + column,
                                   m->block + m->place[column] * m->rank);
        }
    }
}

static void
end(struct manual *m, uint64_t *sent, uint64_t *received)
{
    peer_net_lock(m->net);
    peer_net_bye(m->net, clock_monotonic_us() + BYE_US);
    peer_net_bytes(m->net, sent, received);
    peer_net_unlock(m->net);
}

char *
factorise_manual_run(const struct factorise_manual_in *in)
{
    static const struct peer_net_class class = { take, room, gone };
    struct manual m = {
        .in = in, .o = in->o, .driver.rate = in->o->learning_rate,
        .rank = in->o->dimension, .self = in->o->rank, .n = in->n_nodes,
    };
    uint64_t sent, received;
    char *error = factorise_data_create(in->o, in->n_nodes, &m.data);

    if (!error) {
        init_values(&m);
        error = open_net(&m);
    }
    if (!error) {
        error = peer_net_start(m.net, &class, &m);
    }
    for (int64_t i = 0; i < in->o->target && !error; i++) {
        error = make_epoch(&m, i);
    }
    if (!error) {
        end(&m, &sent, &received);
        report_done(&(struct report_progress){ .iteration = in->o->target,
                                               .accuracy = NAN,
                                               .loss = in->o->target
                                                           ? m.driver.last
                                                           : NAN },
                    sent, received, NAN);
    }
    peer_net_destroy(m.net);
    factorise_data_destroy(m.data);
    free(m.rows);
    free(m.place);
    free(m.block);
    free(m.next);
    free(m.error);
    return error;
}
