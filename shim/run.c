/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/shim.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_telemetry.h>

#include "base/memory.h"
#include "base/service-notify.h"
#include "shim/clock/clock.h"
#include "shim/control/server.h"
#include "shim/classify/flow-table.h"
#include "shim/loop/forward.h"
#include "shim/classify/job-slot.h"
#include "shim/loop/loop.h"
#include "shim/ports/kernel-path.h"
#include "shim/ports/port.h"

#define CHECK_MS 250            /* Between two looks at the ports. */
#define SUCCESSOR_MS 20         /* The same, at one that hesitates. */
#define MS UINT64_C(1000000)    /* Nanoseconds. */
#define HUNG_NS (1000 * MS)     /* Without a turn. */

#define ORDER_NS (500 * MS)     /* That the kernel forwards until somebody has
                                 * written our tables. */

void
shim_say(const struct shim *s, const char *template, ...)
{
    va_list args;

    fprintf(stderr, "stagecoach-shim: %s: ", s->options.name);
    va_start(args, template);
    vfprintf(stderr, template, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Sets 'port' up again if it needs it, and says so. */
static void
look_after(struct shim *s, struct port *port)
{
    const char *why = port_check(port, clock_now());
    char *error;

    if (port_lost_rx_irq(port)) {
        shim_say(s, "%s: no interrupt tells of frames, so the loop naps",
                 port_iface(port));
    }
    if (!why) {
        return;
    }
    if (!loop_pause(s->loop)) {
        shim_say(s, "%s: %s, but the loop does not let go of it",
            port_iface(port), why);
        return;
    }
    error = port_restart(port);
    loop_resume(s->loop);
    s->port_restarts++;
    shim_say(s, "%s: %s, %s", port_iface(port), why,
        error ? error : "set up again");
    free(error);
}

static void *
control_thread(void *s_)
{
    struct pollfd fds[SERVER_MAX_FDS + 1];
    uint64_t check = 0;
    struct shim *s = s_;

    service_notify("READY=1");
    for (;;) {
        uint64_t now = clock_now();
        int n = server_wait(s->server, fds);

        fds[n] = (struct pollfd) { .fd = s->signal_fd, .events = POLLIN };
        poll(fds, n + 1,
             server_timeout(s->server, s->old_side.deadline ? SUCCESSOR_MS
                                       : CHECK_MS));
        if (fds[n].revents) {
            break;
        }
        server_run(s->server);
        if (loop_poll_age_ns(s->loop) < HUNG_NS) {
            service_alive(now / MS);
        }
        if (s->old_side.leaving) {
            shim_say(s, "the new shim has taken over");
            break;
        }
        if (takeover_expired(s, clock_now())) {
            shim_say(s, "takeover timed out, forwarding again");
        }
        if (now >= check && !s->old_side.deadline) {
            check = now + CHECK_MS * MS;
            look_after(s, s->host);
            look_after(s, s->uplink);
            flow_table_age(s->flows, now);
        }
    }
    loop_stop(s->loop);
    return NULL;
}

/* DPDK's telemetry: the counters. */
static struct shim *telemetry_shim;

static int
telemetry_stats(const char *command, const char *params,
                struct rte_tel_data *data)
{
    struct shim_stats stats;

    (void) command;
    (void) params;
    memset(&stats, 0, sizeof stats);
    shim_get_stats(telemetry_shim, &stats);
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_u64(data, "tx_packets", stats.tx_packets);
    rte_tel_data_add_dict_u64(data, "tx_bytes", stats.tx_bytes);
    rte_tel_data_add_dict_u64(data, "rx_packets", stats.rx_packets);
    rte_tel_data_add_dict_u64(data, "rx_bytes", stats.rx_bytes);
    rte_tel_data_add_dict_u64(data, "tx_ip_bytes", stats.tx_ip_bytes);
    rte_tel_data_add_dict_u64(data, "tx_default_bytes",
                              stats.tx_default_bytes);
    rte_tel_data_add_dict_u64(data, "queue_dropped", stats.queue_dropped);
    rte_tel_data_add_dict_u64(data, "misses", stats.misses);
    rte_tel_data_add_dict_u64(data, "queued_bytes", stats.queued_bytes);
    rte_tel_data_add_dict_u64(data, "busy_ns", stats.busy_ns);
    return 0;
}

/* If the kernel forwards in our place, it does until our tables have been
 * written, but not for longer than 'wait': then we do.  A frame that comes
 * between the two steps goes its way twice. */
static void
relieve_kernel(struct shim *s, uint64_t wait)
{
    const char *host = port_iface(s->host), *uplink = port_iface(s->uplink);
    uint64_t end = clock_now() + wait;
    struct kernel_path *path;
    int error = kernel_path_open(-1, &path);

    if (!error && kernel_path_is_up(path, host, uplink)) {
        while (!job_slots_had_lease(s->slots) && clock_now() < end) {
            rte_delay_us_sleep(20);
        }
        forward_discard(s->forward);
        error = kernel_path_lower(path, host, uplink);
        shim_say(s, "the kernel has forwarded until now");
    }
    if (error) {
        shim_say(s, "cannot see that the kernel does not forward, too (%s)",
            strerror(error));
    }
    kernel_path_close(path);
}

static void
on_gap(void *s)
{
    relieve_kernel(s, 0);
}

static int
run_lane(void *loop)
{
    loop_run(loop);
    return 0;
}

/* Runs all loops, the first one in this thread, until they end. */
static void
run_loops(struct shim *s)
{
    for (unsigned int i = 1; i < s->options.n_lanes; i++) {
        rte_eal_remote_launch(run_lane, s->lane_loops[i], i);
    }
    loop_run(s->loop);
    rte_eal_mp_wait_lcore();
}

char *
shim_run(struct shim *s)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, control_thread, s);

    if (error) {
        return duplicate(strerror(error));
    }
    telemetry_shim = s;
    rte_telemetry_register_cmd("/stagecoach/stats", telemetry_stats,
                               "The shim's counters. No parameters.");
    shim_say(s, "forwards between %s and %s", port_iface(s->host),
        port_iface(s->uplink));
    relieve_kernel(s, ORDER_NS);
    loop_on_gap(s->loop, on_gap, s);
    run_loops(s);
    pthread_join(thread, NULL);
    return NULL;
}
