/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/fabric.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/cluster/shaping.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/dynamic-string.h"
#include "svec.h"
#include "util.h"

#define TOOL_TIMEOUT_MS 30000

/* "ip" and "tc" read their commands from standard input. */
static const char *const ip_batch[] = { "ip", "-batch", "-", NULL };
static const char *const tc_batch[] = { "tc", "-batch", "-", NULL };

static void
put_veth(struct ds *ds, const char *ns1, const char *if1,
         const char *ns2, const char *if2, int mtu)
{
    ds_put_format(ds, "link add %s netns %s mtu %d numtxqueues 1 "
                  "numrxqueues 1 type veth peer name %s netns %s mtu %d "
                  "numtxqueues 1 numrxqueues 1\n",
                  if1, ns1, mtu, if2, ns2, mtu);
}

/* Creates the namespaces and the links between them, all of them down. */
static char *
make_links(const struct plan *plan)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    char *error;

    ds_put_format(&ds, "netns add %s\n", plan->fabric_ns);
    for (int i = 0; i < plan->n_hosts; i++) {
        char *host = plan_host_ns(plan, i);
        char *node = plan_node_ns(plan, i);
        char *port = xasprintf("p%d", i);

        ds_put_format(&ds, "netns add %s\nnetns add %s\n", host, node);
        put_veth(&ds, host, "eth0", node, "host", plan->mtu);
        put_veth(&ds, node, "uplink", plan->fabric_ns, port, plan->mtu);
        free(host);
        free(node);
        free(port);
    }
    error = tool_run(NULL, ip_batch, ds_cstr(&ds), TOOL_TIMEOUT_MS, NULL);
    ds_destroy(&ds);
    return error;
}

/* Disables all offloads of 'ifname' that produce unfinished frames. */
static int
offloads_off(int fd, const char *ifname)
{
    static const uint32_t commands[] = {
        ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO,
    };

    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        struct ethtool_value value = { .cmd = commands[i], .data = 0 };
        struct ifreq ifr;

        memset(&ifr, 0, sizeof ifr);
        ovs_strlcpy(ifr.ifr_name, ifname, sizeof ifr.ifr_name);
        ifr.ifr_data = (void *) &value;
        if (ioctl(fd, SIOCETHTOOL, &ifr)) {
            return -errno;
        }
    }
    return 0;
}

/* Writes a sysctl of this namespace if the kernel has it. */
static void
set_sysctl(const char *file, const char *value)
{
    int fd = open(file, O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        ignore(write(fd, value, strlen(value)));
        close(fd);
    }
}

/* Disables IPv6 in this namespace, and offloads at the interfaces 'names_'
 * (null-terminated).
 *
 * On a busy machine a data plane may not run for a while.  TCP then measures a
 * round trip of that length, and the next loss causes a retransmission timeout
 * of ten seconds or more.  Linux 6.15 and later can limit the timeout. */
static int
quieten(void *names_)
{
    const char *const *names = names_;
    int error = 0;
    int fd;

    set_sysctl("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    set_sysctl("/proc/sys/net/ipv4/tcp_rto_max_ms", "1000");

    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    for (; !error && *names; names++) {
        error = offloads_off(fd, *names);
    }
    close(fd);
    return error;
}

/* Sets up one namespace: runs 'commands' of ip, then prepares the interfaces
 * 'names' (null-terminated) for the frames of a data plane. */
static char *
set_up_namespace(const char *ns, const char *commands, const char **names)
{
    int error = netns_call(ns, quieten, names);

    if (error < 0) {
        return xasprintf("%s: cannot switch offloads off (%s)", ns,
                         ovs_strerror(-error));
    }
    return tool_run(ns, ip_batch, commands, TOOL_TIMEOUT_MS, NULL);
}

static char *
set_up_host(const struct plan *plan, int i)
{
    const char *host_names[] = { "eth0", NULL };
    const char *node_names[] = { "host", "uplink", NULL };
    char *host = plan_host_ns(plan, i);
    char *node = plan_node_ns(plan, i);
    char *commands = xasprintf("link set lo up\n"
                               "addr add 10.77.0.%d/24 dev eth0\n"
                               "link set eth0 up\n", i + 1);
    char *error = set_up_namespace(host, commands, host_names);

    if (!error) {
        error = set_up_namespace(node, "link set lo up\nlink set host up\n"
                                 "link set uplink up\n", node_names);
    }
    free(commands);
    free(host);
    free(node);
    return error;
}

/* Sets up the fabric's ports with their rate and priorities. */
static char *
set_up_ports(const struct plan *plan)
{
    const char **names = xcalloc(plan->n_hosts + 1, sizeof *names);
    struct ds ip = DS_EMPTY_INITIALIZER;
    struct ds tc = DS_EMPTY_INITIALIZER;
    char *error;

    ds_put_cstr(&ip, "link set lo up\n");
    for (int i = 0; i < plan->n_hosts; i++) {
        names[i] = xasprintf("p%d", i);
        ds_put_format(&ip, "link set %s up\n", names[i]);
        shaping_put(&tc, names[i], plan->rate_bps, plan->mtu);
    }
    error = set_up_namespace(plan->fabric_ns, ds_cstr(&ip), names);
    if (!error) {
        error = tool_run(plan->fabric_ns, tc_batch, ds_cstr(&tc),
                         TOOL_TIMEOUT_MS, NULL);
    }
    for (int i = 0; i < plan->n_hosts; i++) {
        free(CONST_CAST(char *, names[i]));
    }
    free(names);
    ds_destroy(&ip);
    ds_destroy(&tc);
    return error;
}

char *
fabric_create(const struct plan *plan)
{
    char *error = make_links(plan);

    if (!error) {
        error = set_up_ports(plan);
    }
    for (int i = 0; !error && i < plan->n_hosts; i++) {
        error = set_up_host(plan, i);
    }
    return error;
}

static char *
join_bridge(const struct plan *plan)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    char *error;

    ds_put_format(&ds, "link add br0 type bridge mcast_snooping 0 "
                  "stp_state 0\nlink set br0 mtu %d up\n", plan->mtu);
    for (int i = 0; i < plan->n_hosts; i++) {
        ds_put_format(&ds, "link set p%d master br0\n", i);
    }
    error = tool_run(plan->fabric_ns, ip_batch, ds_cstr(&ds),
                     TOOL_TIMEOUT_MS, NULL);
    ds_destroy(&ds);
    return error;
}

/* ovs-vsctl waits for the switch.  The QoS type prevents Open vSwitch from
 * removing the HTB of the ports whenever it configures them. */
static char *
join_ovs(const struct plan *plan)
{
    static const char *const head[] = {
        "--timeout=20", "--no-syslog", "--id=@noop", "create", "qos",
        "type=linux-noop", "--", "add-br", "br0", "--", "set", "bridge",
        "br0", "datapath_type=netdev", "fail_mode=standalone",
    };
    char *db = xasprintf("--db=unix:%s/ovs/db.sock", plan->rundir);
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error;

    svec_add(&argv, "ovs-vsctl");
    svec_add_nocopy(&argv, db);
    for (size_t i = 0; i < ARRAY_SIZE(head); i++) {
        svec_add(&argv, head[i]);
    }
    for (int i = 0; i < plan->n_hosts; i++) {
        char *port = xasprintf("p%d", i);
        const char *const words[] = {
            "--", "add-port", "br0", port, "--", "set", "port", port,
            "qos=@noop",
        };

        for (size_t j = 0; j < ARRAY_SIZE(words); j++) {
            svec_add(&argv, words[j]);
        }
        free(port);
    }
    svec_terminate(&argv);
    error = tool_run(plan->fabric_ns, (const char *const *) argv.names, NULL,
                     TOOL_TIMEOUT_MS, NULL);
    svec_destroy(&argv);
    return error;
}

char *
fabric_join(const struct plan *plan)
{
    return plan->fabric == FABRIC_OVS ? join_ovs(plan) : join_bridge(plan);
}

/* Removes every namespace of the plan's lab, including its links.  All
 * processes in them must have ended. */
void
fabric_destroy(const struct plan *plan)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    DIR *dir = opendir("/run/netns");
    struct dirent *de;

    while (dir && (de = readdir(dir))) {
        if (plan_owns_ns(plan, de->d_name)) {
            ds_put_format(&ds, "netns del %s\n", de->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    if (ds.length) {
        static const char *const argv[] = {
            "ip", "-force", "-batch", "-", NULL
        };

        free(tool_run(NULL, argv, ds_cstr(&ds), TOOL_TIMEOUT_MS, NULL));
    }
    ds_destroy(&ds);
}

/* The file keeps reporting the namespace in which it was opened. */
static int
open_counters(void *aux OVS_UNUSED)
{
    int fd = open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int
fabric_counters_open(const struct plan *plan)
{
    return netns_call(plan->fabric_ns, open_counters, NULL);
}

int
fabric_counters_read(const struct plan *plan, int fd,
                     struct fabric_counters *counters)
{
    size_t size = 1024 + 256 * (plan->n_hosts + 4);
    char *text = xmalloc(size + 1);
    size_t used = 0;
    ssize_t n;
    char *save = NULL;

    /* A read from offset 0 generates the contents again. */
    lseek(fd, 0, SEEK_SET);
    while (used < size && (n = read(fd, text + used, size - used)) > 0) {
        used += n;
    }
    text[used] = '\0';

    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        unsigned long long rx, tx;
        int port;

        if (sscanf(line, " p%d: %llu %*u %*u %*u %*u %*u %*u %*u %llu",
                   &port, &rx, &tx) == 3
            && port >= 0 && port < plan->n_hosts) {
            counters[port].up_bytes = rx;
            counters[port].down_bytes = tx;
        }
    }
    free(text);
    return used ? 0 : ENODATA;
}

/* Adds what the classes in 'text', as "tc -s class show" prints it, have sent:
 *
 *    class htb 1:13 parent 1:1 leaf 23: prio 3 rate ...
 *     Sent 1234 bytes 5 pkt (dropped 0, overlimits 0 requeues 0)
 */
static void
add_class_bytes(char *text, uint64_t bytes[8])
{
    char *save = NULL;
    int level = -1;

    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        unsigned long long n;
        int digit;

        if (!strncmp(line, "class ", 6)) {
            level = sscanf(line, "class htb 1:1%1d ", &digit) == 1
                    ? digit : -1;
        } else if (level >= 0 && level < 8
                   && sscanf(line, " Sent %llu bytes", &n) == 1) {
            bytes[level] += n;
        }
    }
}

char *
fabric_level_bytes(const struct plan *plan, uint64_t bytes[8])
{
    char *error = NULL;

    memset(bytes, 0, 8 * sizeof *bytes);
    for (int i = 0; !error && i < plan->n_hosts; i++) {
        char *port = xasprintf("p%d", i);
        const char *const argv[] = {
            "tc", "-s", "class", "show", "dev", port, NULL
        };
        char *text;

        error = tool_run(plan->fabric_ns, argv, NULL, 5000, &text);
        if (!error) {
            add_class_bytes(text, bytes);
            free(text);
        }
        free(port);
    }
    return error;
}
