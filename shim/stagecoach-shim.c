/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-shim: one host's data plane.
 *
 * The main thread forwards packets; the control thread serves the agent, looks
 * after the ports, logs, and ends the process on SIGTERM. */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_mbuf.h>
#include <rte_telemetry.h>

#include "packaging/service-notify.h"
#include "shim/capture/tap.h"
#include "shim/cc/cc.h"
#include "shim/control/server.h"
#include "shim/control/show.h"
#include "shim/control/take-over.h"
#include "shim/options.h"
#include "shim/pipeline/bursts.h"
#include "shim/pipeline/egress.h"
#include "shim/pipeline/flow-table.h"
#include "shim/pipeline/forward.h"
#include "shim/pipeline/job-slot.h"
#include "shim/pipeline/lane.h"
#include "shim/pipeline/lanes.h"
#include "shim/pipeline/loop.h"
#include "shim/pipeline/miss.h"
#include "shim/ports/af-packet.h"
#include "shim/ports/eal.h"
#include "shim/ports/kernel-path.h"
#include "shim/ports/port.h"
#include "shim/ports/port-driver.h"
#include "shim/replay/command.h"
#include "shim/succession.h"

#define EXIT_BAD_USAGE 2
#define CHECK_MS 250            /* Between two looks at the ports. */
#define SUCCESSOR_MS 20         /* The same, at one that hesitates. */
#define PAGE 4096               /* Bytes, of those that are not huge. */
#define TAP_BYTES (8u << 20)    /* Of frames that a capture has not read yet;
                                 * no memory before the first one. */
#define MBUF_OVERHEAD 512       /* Bytes a packet buffer needs besides. */
#define MS UINT64_C(1000000)    /* Nanoseconds. */

#define ORDER_NS (500 * MS)     /* That the kernel forwards until somebody has
                                 * written our tables. */

struct shim {
    struct options options;
    uint64_t boot_id;
    struct rte_mempool *pool;
    struct port *host, *uplink;
    struct flow_table *flows;
    struct job_slots *slots;
    struct miss *misses;
    struct bursts *bursts;
    struct tap *tap;
    struct forward *forward;
    struct loop *loop;
    struct loop *lane_loops[LANES_MAX]; /* From 1 on, owned by 'loop'. */
    struct server *server;
    struct take_over *old;      /* The process that we succeed, or NULL. */
    int signal_fd;
    uint64_t port_restarts;     /* The control thread's, atomic. */

    struct succession succession;       /* The control thread's. */
};

static void say(const struct shim *, const char *, ...)
    __attribute__((format(printf, 2, 3)));

static void
say(const struct shim *s, const char *template, ...)
{
    va_list args;

    fprintf(stderr, "stagecoach-shim: %s: ", s->options.name);
    va_start(args, template);
    vfprintf(stderr, template, args);
    va_end(args);
    fputc('\n', stderr);
}

static uint32_t
room_of_packet(const struct options *o)
{
    return (port_frame_size(o->mtu) + RTE_PKTMBUF_HEADROOM
            + o->host.driver->buffer_bytes + o->uplink.driver->buffer_bytes);
}

/* Of the port's own rings, in as many queues as it may have. */
static uint32_t
port_packets(const struct options *o, const struct port_driver *driver)
{
    return driver->pool_packets * (driver->flags & PORT_SPREADS ? o->n_lanes
                                   : 1);
}

static uint32_t
pool_packets(const struct options *o)
{
    return (egress_pool_packets(o->rate_bps, o->mtu)
            + port_packets(o, o->host.driver)
            + port_packets(o, o->uplink.driver)
            + (o->n_lanes - 1) * LANE_PACKETS);
}

/* Without huge pages DPDK lets no packet buffer begin in a page and end in the
 * next one if it fits into one. */
static uint64_t
pool_bytes(const struct options *o, bool huge)
{
    uint64_t buffer = room_of_packet(o) + MBUF_OVERHEAD;

    if (!huge) {
        buffer = (buffer + PAGE - 1) / PAGE * PAGE;
    }
    return pool_packets(o) * buffer;
}

/* Returns NULL if the port's interface is there, should it be, and no packet
 * from it is too long for us, otherwise a malloc()'d message. */
static char *
check_iface(const char *option, const struct port_spec *spec, uint32_t mtu)
{
    const char *iface = spec->iface;
    char *error = NULL;
    int has, n = 0;

    if (!(spec->driver->flags & PORT_KERNEL)) {
        return NULL;
    }
    has = iface_mtu(iface);
    if (has < 0) {
        n = asprintf(&error, "%s: there is no interface \"%s\" here", option,
                     iface);
    } else if (has > (int) mtu) {
        n = asprintf(&error, "%s: %s has MTU %d, at most --mtu %"PRIu32
                     " is allowed", option, iface, has, mtu);
    }
    return n < 0 ? strdup("no memory") : error;
}

static void
get_stats(void *s_, struct shim_stats *stats)
{
    struct shim *s = s_;

    forward_stats(s->forward, stats);
    stats->busy_ns = loop_busy_ns(s->loop);
    stats->port_dropped = port_dropped(s->host) + port_dropped(s->uplink);
    stats->late_bytes = port_late_bytes(s->host)
                        + port_late_bytes(s->uplink);
    stats->port_restarts = s->port_restarts;
    stats->checksums_completed = port_completed(s->host)
                                 + port_completed(s->uplink);
    stats->long_refused = port_refused(s->host) + port_refused(s->uplink);
}

static uint64_t
get_rate(void *s_)
{
    struct shim *s = s_;

    return forward_rate(s->forward);
}

static void
set_rate(void *s_, uint64_t bps)
{
    struct shim *s = s_;

    forward_set_rate(s->forward, bps);
    say(s, "the uplink's rate is now %"PRIu64" bit/s", bps);
}

static void
set_guard(void *s_, uint32_t share)
{
    struct shim *s = s_;

    forward_set_guard(s->forward, share);
}

static void
get_ports(void *s_, struct shim_ports *ports)
{
    struct shim *s = s_;

    snprintf(ports->host, sizeof ports->host, "%s", port_iface(s->host));
    snprintf(ports->uplink, sizeof ports->uplink, "%s",
             port_iface(s->uplink));
    ports->turns = loop_turns(s->loop);
    ports->turn_age_ns = loop_turn_age_ns(s->loop);
}

static int
be_taken_over(void *s_, uint32_t step, struct shim_state *state)
{
    struct shim *s = s_;
    int error;

    state->rate_bps = forward_rate(s->forward);
    state->guard = forward_guard(s->forward);
    error = succession_step(&s->succession, step);
    if (s->succession.leaving) {
        server_abandon(s->server);
    }
    return error;
}

static void
set_congestion(void *s_, const struct shim_congestion *told)
{
    struct shim *s = s_;

    forward_set_congestion(s->forward, told);
}

static char *
create_tables(struct shim *s)
{
    uint64_t timeout = s->options.flow_timeout_s * UINT64_C(1000000000);

    s->flows = flow_table_create(s->options.max_flows, s->boot_id);
    if (s->flows) {
        flow_table_set_timeout(s->flows, timeout, forward_now());
    }
    s->slots = job_slots_create();
    s->misses = miss_create();
    s->bursts = bursts_create();
    s->tap = tap_create(TAP_BYTES);
    return (s->flows && s->slots && s->misses && s->bursts && s->tap ? NULL
            : strdup("no memory"));
}

static char *
create_port(struct shim *s, const struct port_spec *spec, unsigned int index,
            struct port **portp)
{
    char *error = port_create(spec, index, s->options.mtu, s->pool, portp);
    int unfinished = error ? 0 : port_unfinished(*portp);

    if (unfinished) {
        say(s, "%s: cannot switch off offloads at its other end (%s), packets "
            "that come too long are dropped", spec->what,
            strerror(unfinished));
    }
    return error;
}

static char *
create_ports(struct shim *s)
{
    const struct options *o = &s->options;
    char *error;

    s->pool = rte_pktmbuf_pool_create(
        "packets", pool_packets(o), 256, 0,
        room_of_packet(o), SOCKET_ID_ANY);
    if (!s->pool) {
        return strdup("no memory for packet buffers");
    }
    error = create_port(s, &o->host, 0, &s->host);
    return error ? error : create_port(s, &o->uplink, 1, &s->uplink);
}

/* Returns the port of lane 'i', NULL if it has none of its own. */
static struct port *
lane_queue(const struct shim *s, struct port *port, unsigned int i)
{
    return (port_n_queues(port) == s->options.n_lanes ? port_queue(port, i)
            : NULL);
}

static char *
create_loops(struct shim *s)
{
    s->loop = loop_create(s->forward, s->host, s->uplink, s->options.poll);
    for (unsigned int i = 1; s->loop && i < s->options.n_lanes; i++) {
        s->lane_loops[i] = loop_add_lane(s->loop, forward_lane(s->forward, i),
                                         lane_queue(s, s->host, i),
                                         lane_queue(s, s->uplink, i));
        if (!s->lane_loops[i]) {
            return strdup("no memory");
        }
    }
    return s->loop ? NULL : strdup("no memory");
}

static char *
create_forward(struct shim *s)
{
    const struct options *o = &s->options;
    struct cc_config cc = {
        .slots = s->slots,
        .downlink_bps = o->downlink_bps ? o->downlink_bps : o->rate_bps,
        .seed = s->boot_id,
        .mtu = o->mtu,
        .max_flows = CC_MAX_FLOWS,
    };
    struct forward_config config = {
        .host = s->host,
        .uplink = s->uplink,
        .flows = s->flows,
        .slots = s->slots,
        .misses = s->misses,
        .bursts = s->bursts,
        .tap = s->tap,
        .rate_bps = s->options.rate_bps,
        .mtu = s->options.mtu,
        .late_ns = s->options.late_us * UINT64_C(1000),
        .tag = s->options.tag,
        .vxlan = s->options.vxlan,
        .cc = o->cc ? &cc : NULL,
        .n_lanes = s->options.n_lanes,
    };
    char *error;

    memcpy(cc.control_ports, o->control_ports, sizeof cc.control_ports);
    s->forward = forward_create(&config);
    error = s->forward ? create_loops(s) : strdup("no memory");
    s->succession = (struct succession) {
        .forward = s->forward,
        .loop = s->loop,
    };
    return error;
}

static char *
create_server(struct shim *s)
{
    struct server_config config = {
        .flows = s->flows,
        .slots = s->slots,
        .misses = s->misses,
        .bursts = s->bursts,
        .tap = s->tap,
        .boot_id = s->boot_id,
        .mtu = s->options.mtu,
        .aux = s,
        .get_stats = get_stats,
        .get_rate = get_rate,
        .set_rate = set_rate,
        .set_guard = set_guard,
        .set_congestion = set_congestion,
        .now = forward_now,
        .get_ports = get_ports,
        .take_over = be_taken_over,
        .succeeds = s->old != NULL,
    };

    return server_create(s->options.control, &config, &s->server);
}

/* Looks whether there is a shim to take over from, and takes its tables.  The
 * agent will look at them again, so that nothing is lost that it changes in
 * the meantime. */
static char *
begin_take_over(struct shim *s)
{
    char *error;

    if (!s->options.take_over) {
        return NULL;
    }
    error = take_over_begin(s->options.control, &s->old);
    if (!error && !s->old) {
        say(s, "there is no shim to take over from");
    }
    if (!error && s->old && take_over_tables(s->old, s->flows, s->slots)) {
        error = strdup("the other shim does not tell its tables");
    }
    return error;
}

/* From here on until the loop runs, nobody forwards. */
static char *
finish_take_over(struct shim *s)
{
    struct shim_state state;
    int error;

    if (!s->old) {
        return NULL;
    }
    say(s, "taking over from process %"PRIu32, take_over_pid(s->old));
    forward_discard(s->forward);
    error = take_over_stop(s->old, &state);
    if (error) {
        return strdup("the other shim does not let go");
    }
    forward_discard(s->forward);
    forward_set_rate(s->forward, state.rate_bps);
    forward_set_guard(s->forward, state.guard);
    job_slots_lease(s->slots, forward_now(), state.lease_left_ms,
                    state.default_dscp);
    server_publish(s->server);
    take_over_finish(s->old);
    s->old = NULL;
    return NULL;
}

/* Everything but DPDK itself. */
static char *
shim_create(struct shim *s)
{
    char *error = create_tables(s);

    error = error ? error : create_ports(s);
    error = error ? error : create_forward(s);
    error = error ? error : begin_take_over(s);
    error = error ? error : create_server(s);
    return error ? error : finish_take_over(s);
}

static void
shim_destroy(struct shim *s)
{
    if (s->old) {
        take_over_finish(s->old);
    }
    server_destroy(s->server);
    loop_destroy(s->loop);
    forward_destroy(s->forward);
    port_destroy(s->uplink);
    port_destroy(s->host);
    rte_mempool_free(s->pool);
    tap_destroy(s->tap);
    bursts_destroy(s->bursts);
    miss_destroy(s->misses);
    job_slots_destroy(s->slots);
    flow_table_destroy(s->flows);
}

/* Sets 'port' up again if it needs it, and says so. */
static void
look_after(struct shim *s, struct port *port)
{
    const char *why = port_check(port, forward_now());
    char *error;

    if (!why) {
        return;
    }
    if (!loop_pause(s->loop)) {
        say(s, "%s: %s, but the loop does not let go of it",
            port_iface(port), why);
        return;
    }
    error = port_restart(port);
    loop_resume(s->loop);
    s->port_restarts++;
    say(s, "%s: %s, %s", port_iface(port), why,
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
        uint64_t now = forward_now();
        int n = server_wait(s->server, fds, SERVER_MAX_FDS);

        fds[n] = (struct pollfd) { .fd = s->signal_fd, .events = POLLIN };
        poll(fds, n + 1,
             server_timeout(s->server, s->succession.deadline ? SUCCESSOR_MS
                                       : CHECK_MS));
        if (fds[n].revents) {
            break;
        }
        server_run(s->server);
        if (s->succession.leaving) {
            say(s, "another process has taken over");
            break;
        }
        if (succession_check(&s->succession, forward_now())) {
            say(s, "nobody took over, going on");
        }
        if (now >= check && !s->succession.deadline) {
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
    get_stats(telemetry_shim, &stats);
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
    uint64_t end = forward_now() + wait;
    struct kernel_path *path;
    int error = kernel_path_open(-1, &path);

    if (!error && kernel_path_is_up(path, host, uplink)) {
        while (!job_slots_told(s->slots) && forward_now() < end) {
            rte_delay_us_sleep(20);
        }
        forward_discard(s->forward);
        error = kernel_path_lower(path, host, uplink);
        say(s, "the kernel has forwarded until now");
    }
    if (error) {
        say(s, "cannot see that the kernel does not forward, too (%s)",
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

static char *
shim_run(struct shim *s)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, control_thread, s);

    if (error) {
        return strdup(strerror(error));
    }
    telemetry_shim = s;
    rte_telemetry_register_cmd("/stagecoach/stats", telemetry_stats,
                               "The shim's counters. No parameters.");
    say(s, "forwards between %s and %s", port_iface(s->host),
        port_iface(s->uplink));
    relieve_kernel(s, ORDER_NS);
    loop_on_gap(s->loop, on_gap, s);
    run_loops(s);
    pthread_join(thread, NULL);
    return NULL;
}

/* Blocks the signals that end us, in all threads to come, and makes them
 * readable from a file descriptor. */
static int
take_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static char *
check_ifaces(const struct options *o)
{
    char *error = check_iface("--host-port", &o->host, o->mtu);

    return error ? error : check_iface("--uplink", &o->uplink, o->mtu);
}

static int
serve(struct shim *s, char *argv[], int argc)
{
    bool huge = eal_wants_huge(&s->options,
                               pool_bytes(&s->options, true));
    char *error;

    s->signal_fd = take_signals();
    if (getrandom(&s->boot_id, sizeof s->boot_id, 0) < 0) {
        s->boot_id = forward_now();
    }
    error = eal_init(&s->options, huge, pool_bytes(&s->options, huge));
    if (!error) {
        error = shim_create(s);
        error = error ? error : shim_run(s);
        shim_destroy(s);
        eal_uninit();
    }
    if (error && huge && s->options.huge == HUGE_AUTO) {
        /* Somebody else took the pages.  DPDK starts only once in a process,
         * so this becomes a new one. */
        char **again = calloc(argc + 2, sizeof *again);

        say(s, "%s; once more without huge pages", error);
        if (again) {
            memcpy(again, argv, argc * sizeof *again);
            again[argc] = (char *) "--no-huge";
            execv("/proc/self/exe", again);
        }
        free(again);
    }
    if (error) {
        say(s, "%s", error);
        free(error);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static int
show(const char *path)
{
    char *error = shim_show(path, stdout);

    if (error) {
        fprintf(stderr, "%s\n", error);
        free(error);
        return 3;
    }
    return EXIT_SUCCESS;
}

int
main(int argc, char *argv[])
{
    static struct shim shim;
    struct options *o = &shim.options;
    char *error = options_parse(argc, argv, o);

    if (!error && o->help) {
        options_usage(stdout);
        return EXIT_SUCCESS;
    }
    if (!error && o->version) {
        puts("stagecoach-shim " STAGECOACH_VERSION);
        return EXIT_SUCCESS;
    }
    if (!error && o->show) {
        return show(o->show);
    }
    if (!error && o->replay) {
        return replay_command(o);
    }
    if (!error) {
        error = check_ifaces(o);
    }
    if (error) {
        fprintf(stderr, "%s\n", error);
        free(error);
        return EXIT_BAD_USAGE;
    }
    return serve(&shim, argv, argc);
}
