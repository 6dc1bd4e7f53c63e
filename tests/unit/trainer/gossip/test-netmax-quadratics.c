/* SPDX-License-Identifier: Apache-2.0 */

/* NetMax where each peer has samples of one label, and one link is slow, in
 * virtual time: peer i minimises |x - a_i|^2 / 2, so alone it would go to a_i,
 * and all together go to the mean.  The peers are contexts of one thread; this
 * file is the network and the clock of peer-netmax.c. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "base/memory.h"
#include "tests/unit/unit-test.h"
#include "trainer/gossip/peer.h"
#include "trainer/net/frame.h"
#include "trainer/process/options.h"
#include "trainer/process/report.h"

#define N 8 /* Peers, and weights. */
#define GRADIENT_US 40000
#define FAST_US 4000 /* Of a pull. */
#define SLOW_US 400000
#define MAX_FLOATS (2 * N) /* Of a message. */
#define MAX_EVENTS 1024
#define STACK (8 << 20)

/* A message on its way. */
struct event {
    int64_t at_us;
    int from, to;
    struct frame frame;
    float body[MAX_FLOATS];
};

struct node {
    struct sync_peer peer;
    float x[N], gradient[N];
    float goal[N];
    int64_t wakes_us;
    bool waits, notified; /* In sync_peer_wait(); by a message. */
    ucontext_t context;
    char *stack;
};

static struct {
    int64_t now_us;
    struct event events[MAX_EVENTS];
    int n_events;
    struct node nodes[N];
    ucontext_t main;
    uint64_t n_slow; /* Pulls over the slow link. */
} world;

int __wrap_clock_gettime(clockid_t, struct timespec *);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    ts->tv_sec = world.now_us / 1000000;
    ts->tv_nsec = world.now_us % 1000000 * 1000;
    return 0;
}

static struct node *
node_of(const struct peer_net *net)
{
    return (struct node *) net;
}

/* The network. */

bool
peer_net_present(const struct peer_net *net, int i)
{
    return i != node_of(net)->peer.rank;
}

bool
peer_net_busy(const struct peer_net *net, int i)
{
    return false;
}

bool
peer_net_has_space(const struct peer_net *net, int i, uint32_t n)
{
    return true;
}

uint64_t
peer_net_received_from(const struct peer_net *net, int i)
{
    return 0;
}

void
peer_net_address(const struct peer_net *net, int i, char address[],
                 size_t size)
{
    *address = '\0';
}

void
peer_net_notify(struct peer_net *net)
{
    node_of(net)->notified = true;
}

void
peer_net_send_copy(struct peer_net *net, int to, struct frame *frame,
                   const float *body)
{
    struct event *event = &world.events[world.n_events++];
    int from = node_of(net)->peer.rank;
    bool slow = from + to == 1 && frame->peer.message == PEER_PULLED;

    assert_true(world.n_events < MAX_EVENTS && frame->peer.n <= MAX_FLOATS);
    *event = (struct event){ .from = from, .to = to, .frame = *frame };
    event->at_us = world.now_us + (slow ? SLOW_US : FAST_US);
    memcpy(event->body, body, (body ? frame->peer.n : 0) * sizeof *body);
    world.n_slow += slow;
}

/* What peer.c does for schemes. */

void
sync_peer_send(struct sync_peer *peer, int to,
               const struct frame_peer *message)
{
    peer_net_send_copy(peer->net, to, &(struct frame){ .peer = *message },
                       NULL);
}

void
sync_peer_send_floats(struct sync_peer *peer, int to, enum peer_kind kind,
                      uint64_t round, const float *floats, uint32_t n)
{
    struct frame frame = { .peer = {
                               .message = kind, .round = round, .n = n } };

    peer_net_send_copy(peer->net, to, &frame, floats);
}

void
sync_peer_step(struct sync_peer *peer, const float *gradient)
{
    for (int i = 0; i < N; i++) {
        peer->x[i] -= peer->optimiser.rate * gradient[i];
    }
}

static void
wait_until(struct node *node, int64_t until_us)
{
    node->wakes_us = until_us;
    swapcontext(&node->context, &world.main);
}

enum loop_result
sync_peer_wait(struct sync_peer *peer, int64_t until_us)
{
    struct node *node = node_of(peer->net);

    node->waits = true;
    wait_until(node, until_us);
    node->waits = node->notified = false;
    return LOOP_OK;
}

void
report_policy(double lambda2, const int avoided[][2], int n)
{
}

static void
node_main(int rank)
{
    struct node *node = &world.nodes[rank];
    struct sync_peer *peer = &node->peer;

    for (;;) {
        peer->class->begin(peer->scheme);
        for (int i = 0; i < N; i++) {
            node->gradient[i] = node->x[i] - node->goal[i];
        }
        wait_until(node, world.now_us + GRADIENT_US);
        assert_int_equal(peer->class->finish(peer->scheme), LOOP_OK);
    }
}

static void
start_node(int rank, const struct peer_scheme_class *class, float rate,
           const struct options *o)
{
    struct node *node = &world.nodes[rank];

    node->peer = (struct sync_peer){ .o = o,
                                     .net = (struct peer_net *) node,
                                     .rank = rank,
                                     .n = N,
                                     .n_parameters = N,
                                     .x = node->x,
                                     .gradient = node->gradient,
                                     .compute_s = GRADIENT_US * 1e-6,
                                     .class = class,
                                     .optimiser.rate = rate };
    for (int i = 0; i < N; i++) {
        node->goal[i] = 1 + (i == rank);
    }
    seeded_init(&node->peer.random, 1, rank);
    node->peer.scheme = class->create(&node->peer);
    node->stack = allocate(1, STACK);
    getcontext(&node->context);
    node->context.uc_stack.ss_sp = node->stack;
    node->context.uc_stack.ss_size = STACK;
    makecontext(&node->context, (void (*)(void)) node_main, 1, rank);
}

/* Does what is next. */
static void
advance(void)
{
    int64_t next_us = INT64_MAX;
    struct node *runs = NULL;
    int event = -1;

    for (int i = 0; i < N; i++) {
        struct node *node = &world.nodes[i];
        int64_t at_us =
            node->waits && node->notified ? world.now_us : node->wakes_us;

        if (at_us < next_us) {
            next_us = at_us;
            runs = node;
        }
    }
    for (int i = 0; i < world.n_events; i++) {
        if (world.events[i].at_us < next_us) {
            next_us = world.events[i].at_us;
            event = i;
        }
    }
    world.now_us = next_us;
    if (event >= 0) {
        struct event e = world.events[event];
        struct sync_peer *to = &world.nodes[e.to].peer;

        world.events[event] = world.events[--world.n_events];
        to->class->take(to->scheme, e.from, &e.frame, e.body);
    } else {
        swapcontext(&world.main, &runs->context);
    }
}

/* Returns how far a weight is from the mean of all goals, at most. */
static double
train(const struct peer_scheme_class *class, float rate)
{
    struct options o = { .policy_every = 10 };
    double worst = 0;

    memset(&world, 0, sizeof world);
    world.now_us = 1000000; /* 0 is never. */
    for (int i = 0; i < N; i++) {
        start_node(i, class, rate, &o);
    }
    while (world.now_us < 2.5e6 / rate) {
        advance();
    }
    assert_true(world.n_slow > 0);
    for (int i = 0; i < N; i++) {
        struct node *node = &world.nodes[i];

        for (int k = 0; k < N; k++) {
            worst = fmax(worst, fabs(node->x[k] - (1 + 1. / N)));
        }
        class->destroy(node->peer.scheme);
        free(node->stack);
    }
    return worst;
}

/* With a constant rate peers stay around the mean, the nearer the smaller the
 * rate is.  Without pulls the distance would be 1 - 1 / N. */
UNIT_TEST(peers_of_one_label_each_come_to_the_mean_of_all)
{
    static const struct peer_scheme_class *const classes[] = {
        &peer_netmax, &peer_netmax_published
    };

    for (int i = 0; i < 2; i++) {
        double last = 1;

        for (float rate = 0.1f; rate > 0.005f; rate /= 4) {
            double worst = train(classes[i], rate);

            print_message("%s, rate %g: %.3f\n", classes[i]->name, rate,
                          worst);
            assert_true(worst < 6 * rate && worst < last / 2);
            last = worst;
        }
    }
}
