/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/shim.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <sodium.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/memory.h"
#include "base/service-notify.h"
#include "shim/cc/cc.h"
#include "shim/cc/takeover-state.h"
#include "shim/classify/bursts.h"
#include "shim/classify/flow-cache.h"
#include "shim/classify/job-slot.h"
#include "shim/clock/clock.h"
#include "shim/control/server.h"
#include "shim/loop/egress.h"
#include "shim/loop/forward.h"
#include "shim/loop/loop.h"
#include "shim/ports/af-packet.h"
#include "shim/ports/kernel-path.h"
#include "shim/ports/offload.h"
#include "shim/ports/port-spec.h"
#include "shim/ports/port.h"

#define MS UINT64_C(1000000)    /* Nanoseconds. */
#define CHECK_MS 250            /* Between two checks of the ports. */
#define TAKEOVER_CHECK_MS 20    /* Between two checks for LEAVE. */
#define HUNG_NS (1000 * MS)     /* Age of a poll above which the shim does not
                                 * notify its service manager. */
#define SLOTS_NS (500 * MS)     /* Longest wait for the agent to set slots. */

void
shim_log(const struct shim *s, const char *template, ...)
{
    va_list args;

    fprintf(stderr, "stagecoach-shim: %s: ", s->options.name);
    va_start(args, template);
    vfprintf(stderr, template, args);
    va_end(args);
    fputc('\n', stderr);
}

static uint32_t
packet_bytes(const struct options *o)
{
    return (port_frame_size(o->mtu) + RTE_PKTMBUF_HEADROOM
            + o->host.driver->buffer_bytes + o->uplink.driver->buffer_bytes);
}

static uint32_t
pool_packets(const struct options *o)
{
    return (egress_pool_packets(o->rate_bps, o->mtu)
            + o->host.driver->pool_packets + o->uplink.driver->pool_packets);
}

uint64_t
shim_pool_bytes(const struct options *o, bool huge)
{
    return eal_pool_bytes(pool_packets(o), packet_bytes(o), huge);
}

static void
get_stats(void *s_, struct shim_stats *stats)
{
    const struct shim *s = s_;

    forward_stats(s->forward, stats);
    stats->busy_ns = loop_busy_ns(s->loop);
    stats->port_restarts = s->port_restarts;
    port_add_stats(s->host, stats);
    port_add_stats(s->uplink, stats);
}

static uint64_t
get_rate(void *s_)
{
    struct shim *s = s_;

    return egress_rate(forward_egress(s->forward));
}

static void
set_min_share(void *s_, uint32_t share)
{
    struct shim *s = s_;

    egress_set_min_share(forward_egress(s->forward), share);
}

static void
get_ports(void *s_, struct shim_ports *ports)
{
    struct shim *s = s_;

    snprintf(ports->host, sizeof ports->host, "%s", port_iface(s->host));
    snprintf(ports->uplink, sizeof ports->uplink, "%s", port_iface(s->uplink));
    ports->polls = loop_polls(s->loop);
    ports->poll_age_ns = loop_poll_age_ns(s->loop);
}

/* Returns the value of an ethtool command that has one, 0 if unknown. */
static uint32_t
ethtool_value(const char *iface, uint32_t command)
{
    struct ethtool_value value = { .cmd = command };
    struct ifreq ifr = { .ifr_data = (void *) &value };

    return iface_ioctl(iface, SIOCETHTOOL, &ifr) ? 0 : value.data;
}

static void
write_iface(const char *iface, FILE *stream)
{
    struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
    struct ifreq ifr = { .ifr_data = (void *) &info };
    bool gro = ethtool_value(iface, ETHTOOL_GGRO);
    bool lro = ethtool_value(iface, ETHTOOL_GFLAGS) & ETH_FLAG_LRO;
    int mtu = iface_mtu(iface);

    if (!iface_ioctl(iface, SIOCETHTOOL, &ifr)) {
        fprintf(stream, "driver %.*s\n", (int) sizeof info.driver,
                info.driver);
    }
    if (mtu > 0) {
        fprintf(stream, "uplink_mtu %d\n", mtu);
    }
    fprintf(stream, "merges %s%s%s\n", gro ? "gro" : "", gro && lro ? "," : "",
            lro   ? "lro"
            : gro ? ""
                  : "none");
}

static void
write_uplink(const struct port_spec *spec, FILE *stream)
{
    fprintf(stream, "uplink %s", spec->driver->name);
    if (spec->driver->argument != PORT_ARG_NONE) {
        fprintf(stream, ":%s", spec->what);
    }
    putc('\n', stream);
    if (spec->driver->flags & PORT_KERNEL) {
        write_iface(spec->iface, stream);
    } else if (spec->driver->argument == PORT_ARG_PCI) {
        struct rte_eth_dev_info info;
        uint16_t id;

        if (!rte_eth_dev_get_port_by_name(spec->what, &id)
            && !rte_eth_dev_info_get(id, &info)) {
            fprintf(stream, "driver %s\n", info.driver_name);
        }
    }
}

static void
write_host_port(const struct port_spec *spec, FILE *stream)
{
    bool tso;

    if (spec->driver->flags & PORT_KERNEL
        && !offload_read_tso(spec->iface, &tso)) {
        fprintf(stream, "host_tso %s\n", tso ? "on" : "off");
    }
}

/* Writes the null-terminated lines of SHIM_ABOUT.  The interface is read for
 * each reply, because others change it. */
static void
get_about(void *s_, char *text, size_t size)
{
    const struct shim *s = s_;
    const struct options *o = &s->options;
    FILE *stream;

    memset(text, 0, size);
    stream = fmemopen(text, size - 1, "w");
    if (stream) {
        fprintf(stream, "version %s\n", STAGECOACH_VERSION);
        write_uplink(&o->uplink, stream);
        write_host_port(&o->host, stream);
        fprintf(stream, "mtu %u\n", o->mtu);
        fprintf(stream, "memory %s\n",
                rte_eal_has_hugepages() ? "huge" : "ordinary");
        fprintf(stream, "cc %s\n", o->cc ? "on" : "off");
        fprintf(stream, "switch_queues %s\n",
                o->strict_switch ? "strict" : "one");
        fprintf(stream, "tag %s\n", o->no_tag ? "off" : "on");
        fprintf(stream, "host_tags %s\n", o->host.slot_tags ? "yes" : "no");
        fclose(stream);
    }
}

static int
take_over(void *s_, uint32_t step, struct shim_state *state)
{
    struct shim *s = s_;
    int error;

    state->rate_bps = egress_rate(forward_egress(s->forward));
    state->min_share = egress_min_share(forward_egress(s->forward));
    error = takeover_step(s, step);
    if (s->old_side.leaving) {
        server_abandon(s->server);
    }
    return error;
}

/* Without congestion control the state is empty. */
static int
get_connections(void *s_, void *body, size_t *size)
{
    const struct takeover_state empty = { .law = {
        .gamma = SHIM_CONGESTION_DEFAULT, .beta = SHIM_CONGESTION_DEFAULT,
        .floor = SHIM_CONGESTION_DEFAULT,
    } };
    struct shim *s = s_;
    struct cc *cc = forward_cc(s->forward);

    if (!s->old_side.deadline) {
        return EINVAL;
    }
    if (cc) {
        *size = cc_save(cc, body);
    } else {
        memcpy(body, &empty, sizeof empty);
        *size = sizeof empty;
    }
    return 0;
}

/* Returns a random number for one use: with the number of a table, an attacker
 * could choose flows that collide. */
static uint64_t
draw_secret(void)
{
    uint64_t secret;

    while (getrandom(&secret, sizeof secret, 0) != sizeof secret) {
        /* Interrupted. */
    }
    return secret;
}

static void
create_tables(struct shim *s)
{
    s->flows = flow_cache_create(draw_secret());
    s->slots = job_slots_create();
    s->bursts = bursts_create();
}

static char *
create_port(struct shim *s, const struct port_spec *spec, unsigned int index,
            struct port **portp)
{
    char *error = port_create(spec, index, s->options.mtu, s->pool, portp);
    int unfinished = error ? 0 : port_unfinished(*portp);

    if (unfinished) {
        shim_log(s, "%s: cannot disable the offloads of its other end (%s), "
                 "packets longer than the MTU are dropped", spec->what,
                 strerror(unfinished));
    }
    return error;
}

static char *
create_ports(struct shim *s)
{
    const struct options *o = &s->options;
    char *error;

    s->pool = rte_pktmbuf_pool_create("packets", pool_packets(o), 256, 0,
                                      packet_bytes(o), SOCKET_ID_ANY);
    if (!s->pool) {
        return duplicate("no memory for packet buffers");
    }
    error = create_port(s, &o->host, 0, &s->host);
    return error ? error : create_port(s, &o->uplink, 1, &s->uplink);
}

static void
create_forward(struct shim *s)
{
    const struct options *o = &s->options;
    struct cc_config cc = {
        .slots = s->slots,
        .downlink_bps = o->downlink_bps ? o->downlink_bps : o->rate_bps,
        .strict_switch = o->strict_switch,
        .mtu = o->mtu,
        .number = (clock_read(CLOCK_REALTIME) - clock_now()) / 1000,
        .max_flows = CC_MAX_FLOWS
    };
    struct forward_config config = {
        .host = s->host,
        .uplink = s->uplink,
        .flows = s->flows,
        .slots = s->slots,
        .bursts = s->bursts,
        .rate_bps = s->options.rate_bps,
        .mtu = s->options.mtu,
        .late_ns = s->options.late_us * UINT64_C(1000),
        .tag = !s->options.no_tag,
        .tunnels = s->options.tunnels.n ? &s->options.tunnels : NULL,
        .cc = o->cc ? &cc : NULL
    };

    randombytes_buf(cc.secret, sizeof cc.secret);
    memcpy(cc.control_ports, o->control_ports, sizeof cc.control_ports);
    s->forward = forward_create(&config);
    s->loop = loop_create(s->forward, s->host, s->uplink, s->options.poll);
}

static char *
create_server(struct shim *s)
{
    struct server_config config = { .slots = s->slots,
                                    .flows = s->flows,
                                    .bursts = s->bursts,
                                    .boot_id = s->boot_id,
                                    .mtu = s->options.mtu,
                                    .aux = s,
                                    .get_stats = get_stats,
                                    .get_rate = get_rate,
                                    .set_min_share = set_min_share,
                                    .cc = forward_cc(s->forward),
                                    .now = clock_now,
                                    .get_ports = get_ports,
                                    .get_about = get_about,
                                    .take_over = take_over,
                                    .get_connections = get_connections,
                                    .publish_later = s->old.client != NULL };

    return server_create(s->options.control, &config, &s->server);
}

char *
shim_create(struct shim *s)
{
    char *error;

    create_tables(s);
    error = create_ports(s);
    if (error) {
        return error;
    }
    create_forward(s);
    error = takeover_begin(s);
    error = error ? error : create_server(s);
    return error ? error : takeover_finish(s);
}

void
shim_destroy(struct shim *s)
{
    takeover_end(&s->old);
    server_destroy(s->server);
    loop_destroy(s->loop);
    forward_destroy(s->forward);
    port_destroy(s->uplink);
    port_destroy(s->host);
    rte_mempool_free(s->pool);
    bursts_destroy(s->bursts);
    job_slots_destroy(s->slots);
    flow_cache_destroy(s->flows);
}

/* Restarts 'port' if it no longer works. */
static void
check_port(struct shim *s, struct port *port)
{
    const char *why = port_check(port, clock_now());
    char *error;

    if (port_lost_rx_irq(port)) {
        shim_log(s, "%s: receive interrupts do not work, falling back to "
                 "polling with sleeps", port_iface(port));
    }
    if (!why) {
        return;
    }
    if (!loop_pause(s->loop)) {
        shim_log(s, "%s: %s; not restarted, the forwarding loop did not pause",
                 port_iface(port), why);
        return;
    }
    error = port_restart(port);
    loop_resume(s->loop);
    s->port_restarts++;
    shim_log(s, "%s: %s, %s", port_iface(port), why,
             error ? error : "restarted");
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
        poll(fds, n + 1, s->old_side.deadline ? TAKEOVER_CHECK_MS : CHECK_MS);
        if (fds[n].revents) {
            break;
        }
        server_run(s->server);
        if (loop_poll_age_ns(s->loop) < HUNG_NS) {
            service_alive(now / MS);
        }
        if (s->old_side.leaving) {
            shim_log(s, "the new shim has taken over");
            break;
        }
        if (takeover_expired(s, clock_now())) {
            shim_log(s, "takeover timed out, forwarding again");
        }
        if (now >= check && !s->old_side.deadline) {
            check = now + CHECK_MS * MS;
            check_port(s, s->host);
            check_port(s, s->uplink);
        }
    }
    loop_stop(s->loop);
    return NULL;
}

/* Ends the kernel bypass: waits at most 'wait' ns for the agent to write the
 * slot table, discards the frames received so far, then removes the bypass.  A
 * frame that arrives between the last two steps is forwarded twice. */
static void
end_bypass(struct shim *s, uint64_t wait)
{
    const char *host = port_iface(s->host), *uplink = port_iface(s->uplink);
    uint64_t end = clock_now() + wait;
    struct route_socket *path;
    int error = route_socket_open(-1, &path);

    if (!error && kernel_path_is_up(path, host, uplink)) {
        while (!job_slots_had_lease(s->slots) && clock_now() < end) {
            rte_delay_us_sleep(20);
        }
        forward_discard(s->forward);
        error = kernel_path_lower(path, host, uplink);
        shim_log(s, "kernel bypass removed");
    }
    if (error) {
        shim_log(s, "cannot check whether the kernel bypass is up (%s)",
                 strerror(error));
    }
    route_socket_close(path);
}

static void
on_gap(void *s)
{
    end_bypass(s, 0);
}

char *
shim_run(struct shim *s)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, control_thread, s);

    if (error) {
        return duplicate(strerror(error));
    }
    shim_log(s, "forwards between %s and %s", port_iface(s->host),
             port_iface(s->uplink));
    end_bypass(s, SLOTS_NS);
    loop_on_gap(s->loop, on_gap, s);
    loop_run(s->loop);
    pthread_join(thread, NULL);
    return NULL;
}
