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

#include <rte_mbuf.h>
#include <rte_telemetry.h>

#include "shim/cc/cc.h"
#include "shim/control/server.h"
#include "shim/control/show.h"
#include "shim/options.h"
#include "shim/pipeline/egress.h"
#include "shim/pipeline/flow-table.h"
#include "shim/pipeline/forward.h"
#include "shim/pipeline/job-slot.h"
#include "shim/pipeline/loop.h"
#include "shim/pipeline/miss.h"
#include "shim/ports/af-packet.h"
#include "shim/ports/eal.h"
#include "shim/ports/port.h"

#define EXIT_BAD_USAGE 2
#define CHECK_MS 250            /* Between two looks at the ports. */
#define MBUF_OVERHEAD 512       /* Bytes a packet buffer needs besides. */
#define PAGE 4096               /* No packet buffer begins in one and ends in
                                 * the next if it fits into one. */

struct shim {
    struct options options;
    uint64_t boot_id;
    struct rte_mempool *pool;
    struct port *host, *uplink;
    struct flow_table *flows;
    struct job_slots *slots;
    struct miss *misses;
    struct forward *forward;
    struct loop *loop;
    struct server *server;
    int signal_fd;
    uint64_t port_restarts;     /* The control thread's, atomic. */
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
    return port_frame_size(o->mtu) + RTE_PKTMBUF_HEADROOM;
}

static uint64_t
pool_bytes(const struct options *o)
{
    uint64_t bytes = room_of_packet(o) + MBUF_OVERHEAD;

    return (egress_pool_packets(o->rate_bps, o->mtu)
            * ((bytes + PAGE - 1) / PAGE * PAGE));
}

/* Returns NULL if 'iface' is there and no packet from it is too long for us,
 * otherwise a malloc()'d message. */
static char *
check_iface(const char *option, const char *iface, uint32_t mtu)
{
    int has = iface_mtu(iface);
    char *error = NULL;
    int n = 0;

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
set_congestion(void *s_, const struct shim_congestion *told)
{
    struct shim *s = s_;

    forward_set_congestion(s->forward, told);
}

static char *
create_tables(struct shim *s)
{
    s->flows = flow_table_create(SHIM_MAX_FLOWS, s->boot_id);
    s->slots = job_slots_create();
    s->misses = miss_create();
    return s->flows && s->slots && s->misses ? NULL : strdup("no memory");
}

static char *
create_ports(struct shim *s)
{
    const struct options *o = &s->options;
    char *error;

    s->pool = rte_pktmbuf_pool_create(
        "packets", egress_pool_packets(o->rate_bps, o->mtu), 256, 0,
        room_of_packet(o), SOCKET_ID_ANY);
    if (!s->pool) {
        return strdup("no memory for packet buffers");
    }
    error = port_create(&o->host, 0, o->mtu, s->pool, &s->host);
    return error ? error
           : port_create(&o->uplink, 1, o->mtu, s->pool, &s->uplink);
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
        .rate_bps = o->rate_bps,
        .mtu = o->mtu,
        .late_ns = o->late_us * UINT64_C(1000),
        .tag = o->tag,
        .cc = o->cc ? &cc : NULL,
    };

    memcpy(cc.control_ports, o->control_ports, sizeof cc.control_ports);
    s->forward = forward_create(&config);
    s->loop = s->forward ? loop_create(s->forward, s->host, s->uplink) : NULL;
    return s->loop ? NULL : strdup("no memory");
}

static char *
create_server(struct shim *s)
{
    struct server_config config = {
        .flows = s->flows,
        .slots = s->slots,
        .misses = s->misses,
        .boot_id = s->boot_id,
        .mtu = s->options.mtu,
        .aux = s,
        .get_stats = get_stats,
        .get_rate = get_rate,
        .set_rate = set_rate,
        .set_guard = set_guard,
        .set_congestion = set_congestion,
        .now = forward_now,
    };

    return server_create(s->options.control, &config, &s->server);
}

/* Everything but DPDK itself. */
static char *
shim_create(struct shim *s)
{
    char *error = create_tables(s);

    error = error ? error : create_ports(s);
    error = error ? error : create_forward(s);
    return error ? error : create_server(s);
}

static void
shim_destroy(struct shim *s)
{
    server_destroy(s->server);
    loop_destroy(s->loop);
    forward_destroy(s->forward);
    port_destroy(s->uplink);
    port_destroy(s->host);
    rte_mempool_free(s->pool);
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

    for (;;) {
        uint64_t now = forward_now();
        int n = server_wait(s->server, fds, SERVER_MAX_FDS);

        fds[n] = (struct pollfd) { .fd = s->signal_fd, .events = POLLIN };
        poll(fds, n + 1, CHECK_MS);
        if (fds[n].revents) {
            break;
        }
        server_run(s->server);
        if (now >= check) {
            check = now + CHECK_MS * UINT64_C(1000000);
            look_after(s, s->host);
            look_after(s, s->uplink);
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
    loop_run(s->loop);
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
    char *error = check_iface("--host-port", o->host.iface, o->mtu);

    return error ? error : check_iface("--uplink", o->uplink.iface, o->mtu);
}

static int
serve(struct shim *s, char *argv[], int argc)
{
    bool huge = eal_wants_huge(&s->options, pool_bytes(&s->options));
    char *error;

    s->signal_fd = take_signals();
    if (getrandom(&s->boot_id, sizeof s->boot_id, 0) < 0) {
        s->boot_id = forward_now();
    }
    error = eal_init(&s->options, huge, pool_bytes(&s->options));
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
