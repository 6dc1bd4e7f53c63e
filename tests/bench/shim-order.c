/* SPDX-License-Identifier: Apache-2.0 */

/* Cost of order and pacing: cycles to queue and dequeue a packet, in bursts of
 * 32, with other frames queued.
 *
 *    own_1          a single job
 *    own_8          eight jobs of different rank and level, all with queued
 *                   packets, with the default minimum share of policies
 *    own_1000       a thousand jobs of different rank
 *    own_fair_1000  the same of equal rank
 *    own_paced_1000 a thousand flows of one job, each with its own rate and
 *                   not due most of the time
 *    rte_sched_1    DPDK's scheduler: one pipe, so that its traffic classes
 *                   are strict, six of them by level
 *    rte_sched_16   the same with 16 pipes, which share the link
 *
 * The uplink is so fast that its pacing delays nothing, but is computed.
 * Prints one JSON object: the least of several rounds of each. */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_sched.h>

#include "shim/classify/job-slot.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/pace.h"
#include "shim/queue/rank-queue.h"

#define BURST 32
#define BACKLOG 1024            /* Queued packets. */
#define ROUNDS 9
#define BURSTS 20000            /* Bursts in a round. */
#define FRAME 64
#define MAX_PIPES 16

static const uint64_t uplink_bps = UINT64_C(800000000000);

/* Returns the cycles per packet in one round of 'rq'.  Each dequeued packet is
 * queued again in the same queue. */
static double
one_round(struct rank_queues *rq, uint64_t *now)
{
    struct queue_item items[BURST], dropped;
    struct pace pace = { .bps = 0 };
    uint64_t began, n_all = 0;

    pace_set_rate(&pace, *now, uplink_bps, 9018);
    began = rte_rdtsc();
    for (int i = 0; i < BURSTS; i++) {
        uint32_t n;

        *now += 1000;
        pace_forget(&pace, *now, 0);
        n = rank_queues_take(rq, *now, &pace, items, BURST);
        for (uint32_t k = 0; k < n; k++) {
            rank_queues_push(rq, (uintptr_t) items[k].packet, false,
                             &items[k], &dropped);
        }
        n_all += n;
    }
    return (double) (rte_rdtsc() - began) / n_all;
}

static double
least_of_rounds(struct rank_queues *rq)
{
    uint64_t now = UINT64_C(1000000000);
    double least = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        double cycles = one_round(rq, &now);

        least = cycles < least ? cycles : least;
    }
    return least;
}

/* Measures 'n_jobs' jobs, with ranks in the order of their slots or all
 * equal. */
static double
own(int n_jobs, bool equal)
{
    struct rank_queues *rq = rank_queues_create(2 * BACKLOG, FRAME);
    job_class classes[SHIM_MAX_SLOTS];
    double cycles;

    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        int number = equal ? 0 : i ? i - 1 : 0;

        classes[i] = i && i <= n_jobs
                    ? JOB_CLASS(number, equal ? 1 : 1 + number * 6 / n_jobs)
                    : JOB_CLASS_LAST;
    }
    rank_queues_set_classes(rq, classes);
    rank_queues_set_min_share(rq, 20000);
    rank_queues_set_rate(rq, 0, uplink_bps, UINT64_MAX);
    for (int i = 0; i < BACKLOG; i++) {
        struct queue_item dropped, item = {
            .length = FRAME, .slot = 1 + i % n_jobs,
        };

        rank_queues_push(rq, 0, false, &item, &dropped);
    }
    cycles = least_of_rounds(rq);
    rank_queues_destroy(rq);
    return cycles;
}

/* Measures a thousand flows with own rates: every microsecond 32 packets are
 * due and are dequeued. */
static double
own_paced(void)
{
    struct rank_queues *rq = rank_queues_create(2 * BACKLOG, FRAME);
    uint64_t bps = (uint64_t) BURST * FRAME * 8 * 1000000000 / 1000 / 1000;
    double cycles;

    rank_queues_set_rate(rq, 0, uplink_bps, UINT64_MAX);
    for (int i = 0; i < 1000; i++) {
        uintptr_t queue = job_queues_flow_new(rank_queues_jobs(rq), 1);
        struct queue_item dropped, item = {
            .packet = (void *) queue, .length = FRAME, .slot = 1,
        };

        rank_queues_flow_rate(rq, 0, queue, bps);
        for (int k = 0; k < 2; k++) {
            rank_queues_push(rq, queue, false, &item, &dropped);
        }
    }
    cycles = least_of_rounds(rq);
    rank_queues_destroy(rq);
    return cycles;
}

static struct rte_sched_port *
make_sched(int n_pipes)
{
    static struct rte_sched_pipe_params pipe = {
        .tb_rate = 100000000000, .tb_size = 1000000, .tc_period = 10,
        .tc_ov_weight = 1,
    };
    static struct rte_sched_subport_profile_params profile = {
        .tb_rate = 100000000000, .tb_size = 1000000, .tc_period = 10,
    };
    struct rte_sched_subport_params subport = {
        .n_pipes_per_subport_enabled = n_pipes, .pipe_profiles = &pipe,
        .n_pipe_profiles = 1, .n_max_pipe_profiles = 1,
    };
    struct rte_sched_port_params port = {
        .name = "sched", .socket = 0, .rate = 100000000000, .mtu = 1518,
        .n_subports_per_port = 1, .subport_profiles = &profile,
        .n_subport_profiles = 1, .n_max_subport_profiles = 1,
        .n_pipes_per_subport = MAX_PIPES,
    };
    struct rte_sched_port *sched;

    for (int i = 0; i < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; i++) {
        pipe.tc_rate[i] = profile.tc_rate[i] = 100000000000;
        subport.qsize[i] = 256;
    }
    for (int i = 0; i < RTE_SCHED_BE_QUEUES_PER_PIPE; i++) {
        pipe.wrr_weights[i] = 1;
    }
    sched = rte_sched_port_config(&port);
    if (!sched || rte_sched_subport_config(sched, 0, &subport, 0)) {
        return NULL;
    }
    for (int i = 0; i < n_pipes; i++) {
        if (rte_sched_pipe_config(sched, 0, i, 0)) {
            return NULL;
        }
    }
    return sched;
}

/* Returns a negative number if DPDK fails. */
static double
theirs(int n_pipes)
{
    struct rte_mempool *pool = rte_pktmbuf_pool_create(
        "frames", 4 * BACKLOG, 0, 0, 256, 0);
    struct rte_sched_port *sched = make_sched(n_pipes);
    struct rte_mbuf *frames[BURST];
    double least = 1e9;

    if (!pool || !sched) {
        return -1;
    }
    for (int i = 0; i < BACKLOG / BURST; i++) {
        for (int k = 0; k < BURST; k++) {
            int n = i * BURST + k;

            frames[k] = rte_pktmbuf_alloc(pool);
            frames[k]->pkt_len = frames[k]->data_len = FRAME;
            rte_sched_port_pkt_write(sched, frames[k], 0, n % n_pipes,
                                     1 + n / n_pipes % 6, 0,
                                     RTE_COLOR_GREEN);
        }
        rte_sched_port_enqueue(sched, frames, BURST);
    }
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t began = rte_rdtsc(), n_all = 0;

        for (int i = 0; i < BURSTS / 4; i++) {
            int n = rte_sched_port_dequeue(sched, frames, BURST);

            n_all += n;
            if (n) {
                rte_sched_port_enqueue(sched, frames, n);
            }
        }
        if (n_all) {
            double cycles = (double) (rte_rdtsc() - began) / n_all;

            least = cycles < least ? cycles : least;
        }
    }
    rte_sched_port_free(sched);
    rte_mempool_free(pool);
    return least < 1e9 ? least : -1;
}

int
main(int argc, char *argv[])
{
    char *eal[] = { argv[0], (char *) "--no-huge", (char *) "-m",
                    (char *) "64", (char *) "--no-pci",
                    (char *) "--no-telemetry", (char *) "--no-shconf",
                    (char *) "--log-level=3", (char *) "-l", (char *) "0",
                    NULL };

    if (rte_eal_init(sizeof eal / sizeof *eal - 1, eal) < 0) {
        fputs("shim-order: DPDK does not start\n", stderr);
        return EXIT_FAILURE;
    }
    printf("{\"own_1\": %.1f, \"own_8\": %.1f, \"own_1000\": %.1f,"
           " \"own_fair_1000\": %.1f, \"own_paced_1000\": %.1f,"
           " \"rte_sched_1\": %.1f, \"rte_sched_16\": %.1f}\n",
           own(1, false), own(8, false), own(1000, false), own(1000, true),
           own_paced(), theirs(1), theirs(16));
    return EXIT_SUCCESS;
}
