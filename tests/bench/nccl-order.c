/* SPDX-License-Identifier: Apache-2.0 */

/* nccl-order GATE WIRE SWAPS: two jobs of two ranks reduce without end over
 * the same two links, through a plug-in GATE each, around the plug-in WIRE.
 *
 * The main thread is the agent: it reads the datagrams of the jobs, and holds
 * the job that is not first (agent/actuate/holds.h).  Prints
 *
 *    share             Of the first job in the bytes of both.
 *    share_plain       The same without an order.
 *    swap_vs_inflight  After a swap, the time until the link is the new first
 *                      job's / that of the bytes that the other one had under
 *                      way: the median, and the worst as swap_worst.
 *    ungated_vs_lease  After the end of the agent, the time until the held job
 *                      sends / HOLD_MAX_MS: the worst. */

#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/actuate/holds.h"
#include "base/compare.h"
#include "tests/unit/agent/nccl-drive.h"
#include "timeval.h"
#include "util.h"
#include "wire/hold-page.h"
#include "wire/progress-datagram.h"
#include "wire/shim-protocol.h"

#define RATE 200e6 /* Of a link, bit/s. */
#define SHARE_MS 4000
#define QUIET_MS 300 /* Observed after a swap. */
#define MAX_SWAPS 100
#define MAX_ENDS 5

static char dir[] = "/tmp/sct-nccl-XXXXXX";
static struct nccl_net nets[4];
static struct ring_rank ranks[4]; /* Of job 0 on both hosts, then of job 1. */
static _Atomic bool over;
static int agent_socket;
static struct holds holds;
static int first = -1; /* Job at the front, or -1 for none. */

static void *
run_rank(void *rank)
{
    while (!over) {
        struct ring_op op = { .kind = ALL_REDUCE,
                              .n_chunks = 32,
                              .bytes = NCCL_CHUNK };

        while (!over && !ring_progress(rank, &op)) {
            usleep(50);
        }
    }
    return NULL;
}

static void
open_socket(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    snprintf(at.sun_path, sizeof at.sun_path, "%s/progress.sock", dir);
    agent_socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(agent_socket, (struct sockaddr *) &at, sizeof at)) {
        ovs_fatal(errno, "%s", at.sun_path);
    }
}

static uint64_t
place(const char *job, void *aux OVS_UNUSED)
{
    return first < 0 ? HOLD_LAST : job[2] - '0' != first;
}

static void
hold(void)
{
    const struct holds_order order = { .until = time_msec() + 10000,
                                       .min_share = SHIM_MIN_SHARE_DEFAULT,
                                       .place = place };

    holds_run(&holds, &order, time_msec(), time_wall_msec());
}

/* The agent, for a millisecond. */
static void
run_agent(void)
{
    struct pollfd wait = { .fd = agent_socket, .events = POLLIN };
    char data[PROGRESS_MAX_BYTES], name[PROGRESS_NAME_SIZE];
    struct progress p;
    ssize_t n;

    poll(&wait, 1, 1);
    while ((n = recv(agent_socket, data, sizeof data, MSG_DONTWAIT)) > 0) {
        char *error = progress_parse(data, n, name, &p);

        if (error) {
            ovs_fatal(0, "%s", error);
        }
        if (p.posted > 0) {
            holds_moved(&holds, name, time_msec());
        }
    }
    hold();
}

static void
run_agent_for(int ms)
{
    for (long long end = time_msec() + ms; time_msec() < end;) {
        run_agent();
    }
}

/* Runs the agent until the next 'ms' behind the minimum share. */
static void
await_phase(int ms)
{
    run_agent_for(HOLD_PERIOD_MS - time_wall_msec() % HOLD_PERIOD_MS + ms);
}

static uint64_t
received(int job)
{
    return ranks[2 * job].n_received + ranks[2 * job + 1].n_received;
}

static double
measure_share(void)
{
    uint64_t before[] = { received(0), received(1) };
    double bytes[2];

    run_agent_for(SHARE_MS);
    bytes[0] = received(0) - before[0];
    bytes[1] = received(1) - before[1];
    return bytes[0] / (bytes[0] + bytes[1]);
}

/* Swaps the jobs.  Returns the time until the old first job has received its
 * last byte, as a part of that which its bytes under way take. */
static double
measure_swap(void)
{
    const struct ring_rank *old = &ranks[2 * first];
    long long began, last;
    uint64_t under_way[2], seen;

    await_phase(400 + rand() % 200);
    for (int i = 0; i < 2; i++) {
        under_way[i] = old[i].n_posted - old[!i].n_received;
    }
    first = !first;
    began = last = time_usec();
    seen = received(!first);
    hold();
    while (time_usec() < began + QUIET_MS * 1000) {
        run_agent();
        if (received(!first) != seen) {
            seen = received(!first);
            last = time_usec();
        }
    }
    return (last - began) / 1e6 / (MAX(under_way[0], under_way[1]) * 8 / RATE);
}

/* Ends the agent.  Returns the time until the held job has posted a send, as
 * a part of a lease. */
static double
measure_end(void)
{
    const struct ring_rank *held = &ranks[2 * !first];
    uint64_t posted;
    long long began;

    await_phase(400 + rand() % 200);
    posted = held[0].n_posted + held[1].n_posted;
    began = time_usec();
    while (held[0].n_posted + held[1].n_posted == posted) {
        usleep(200);
    }
    return (time_usec() - began) / 1e3 / HOLD_MAX_MS;
}

static void
measure(int n_swaps)
{
    double swaps[MAX_SWAPS], plain, share, ungated = 0;

    run_agent_for(500);
    plain = measure_share();
    first = 0;
    await_phase(0);
    share = measure_share();
    for (int i = 0; i < n_swaps; i++) {
        swaps[i] = measure_swap();
    }
    qsort(swaps, n_swaps, sizeof swaps[0], compare_doubles);
    for (int i = 0; i < MIN(n_swaps, MAX_ENDS); i++) {
        double one = measure_end();

        ungated = MAX(ungated, one);
    }
    printf("\"share\": %.4f, \"share_plain\": %.4f, "
           "\"swap_vs_inflight\": %.3f, \"swap_worst\": %.3f, "
           "\"ungated_vs_lease\": %.3f\n",
           share, plain, swaps[n_swaps / 2], swaps[n_swaps - 1], ungated);
}

int
main(int argc, char *argv[])
{
    void (*set_rate)(double);
    pthread_t threads[4];
    char *command;
    void *wire;

    if (argc != 4 || !mkdtemp(dir)) {
        ovs_fatal(0, "usage: nccl-order GATE WIRE SWAPS");
    }
    setenv("STAGECOACH_NCCL_NET", argv[2], 1);
    setenv("STAGECOACH_RUNDIR", dir, 1);
    setenv("STAGECOACH_COJOB", "c", 1);
    open_socket();
    holds_init(&holds, dir);
    for (int i = 0; i < 4; i++) {
        if (!nccl_net_open_copy(&nets[i], argv[1], dir, i, '0' + i / 2, 12)) {
            ovs_fatal(0, "%s: no version 12", argv[1]);
        }
        ranks[i].net = &nets[i];
        ranks[i].device = i % 2;
    }
    wire = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD);
    set_rate = wire ? (void (*)(double)) dlsym(wire, "wire_set_rate") : NULL;
    ovs_assert(set_rate);
    set_rate(RATE);
    ring_connect((struct ring_rank *[]){ &ranks[0], &ranks[1] }, 2);
    ring_connect((struct ring_rank *[]){ &ranks[2], &ranks[3] }, 2);
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, run_rank, &ranks[i]);
    }
    measure(MAX(1, MIN(atoi(argv[3]), MAX_SWAPS)));
    over = true;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    holds_uninit(&holds);
    command = xasprintf("rm -r %s", dir);
    ignore(system(command));
    free(command);
    return 0;
}
