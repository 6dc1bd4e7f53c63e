/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/fabric.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controller/ovsdb/rpc-call.h"
#include "lab/cluster/leaf-spine.h"
#include "lab/cluster/marking.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/dynamic-string.h"
#include "policies/policy.h"
#include "svec.h"
#include "util.h"

#define TOOL_TIMEOUT_MS 30000
#define ASK_MS 3000             /* Timeout of a call of Open vSwitch. */

/* Runs 'commands' of 'tool', "ip" or "tc", in namespace 'ns', which may be
 * null, and destroys them. */
static char *
run_batch(const char *tool, const char *ns, struct ds *commands)
{
    const char *const argv[] = { tool, "-batch", "-", NULL };
    char *error = tool_run(ns, argv, ds_cstr(commands), TOOL_TIMEOUT_MS, NULL);

    ds_destroy(commands);
    return error;
}

static void
put_veth(struct ds *ds, const char *ns1, const char *if1,
         const char *ns2, const char *if2, int mtu)
{
    ds_put_format(ds, "link add %s netns %s mtu %d numtxqueues 1 "
                  "numrxqueues 1 type veth peer name %s netns %s mtu %d "
                  "numtxqueues 1 numrxqueues 1\n",
                  if1, ns1, mtu, if2, ns2, mtu);
}

/* Appends the cables between the switches of racks. */
static void
put_cables(struct ds *ds, const struct plan *plan)
{
    for (int i = 0; i < leaf_spine_n_links(plan); i++) {
        struct switch_port leaf = leaf_spine_link_port(plan, i, 0);
        struct switch_port spine = leaf_spine_link_port(plan, i, 1);

        put_veth(ds, plan->fabric_ns, leaf.interface, plan->fabric_ns,
                 spine.interface, plan->mtu);
    }
}

/* Creates the namespaces and the links between them, all of them down. */
static char *
make_links(const struct plan *plan)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    ds_put_format(&ds, "netns add %s\n", plan->fabric_ns);
    for (int i = 0; i < plan->n_hosts; i++) {
        const struct plan_host *host = &plan->hosts[i];

        ds_put_format(&ds, "netns add %s\n", host->ns);
        if (host->actuator != ACTUATOR_SHIM) {
            put_veth(&ds, host->ns, "eth0", plan->fabric_ns, host->port,
                     plan->mtu);
        } else {
            ds_put_format(&ds, "netns add %s\n", host->node_ns);
            put_veth(&ds, host->ns, "eth0", host->node_ns, "host", plan->mtu);
            put_veth(&ds, host->node_ns, "uplink", plan->fabric_ns, host->port,
                     plan->mtu);
        }
    }
    put_cables(&ds, plan);
    return run_batch("ip", NULL, &ds);
}

/* Disables all offloads of 'ifname' that produce unfinished frames. */
static int
offloads_off(int fd, const char *ifname)
{
    static const uint32_t commands[] = { ETHTOOL_STXCSUM, ETHTOOL_STSO,
                                         ETHTOOL_SGSO, ETHTOOL_SGRO };

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

/* Sets up one namespace: prepares the interfaces 'names' (null-terminated) for
 * the frames of a data plane, then runs 'commands' of ip and destroys them. */
static char *
set_up_namespace(const char *ns, struct ds *commands, const char **names)
{
    int error = netns_call(ns, quieten, names);

    if (error < 0) {
        ds_destroy(commands);
        return xasprintf("%s: cannot switch offloads off (%s)", ns,
                         ovs_strerror(-error));
    }
    return run_batch("ip", ns, commands);
}

/* Stores a copy of the name in '*namep_', a string. */
static int
read_congestion(void *namep_)
{
    FILE *stream = fopen("/proc/sys/net/ipv4/tcp_congestion_control", "re");
    char **namep = namep_;
    int n = stream ? fscanf(stream, "%31ms", namep) : 0;

    if (stream) {
        fclose(stream);
    }
    return n == 1 ? 0 : -EIO;
}

char *
fabric_congestion(const struct plan *plan)
{
    char *name = NULL;

    if (plan->congestion) {
        name = xstrdup(plan->congestion);
    } else {
        netns_call(plan->hosts[0].ns, read_congestion, &name);
    }
    return name;
}

#define N_LEVELS 8

/* Queue limit of one level of a port: the windows of several connections, so
 * that waiting packets are not dropped. */
#define QUEUE_BYTES 1000000

/* Returns the bytes of 250 us of the rate, at least of two packets: HTB counts
 * whole packets and would otherwise be late for each one. */
static long long
get_burst(int64_t rate_bps, int mtu)
{
    return MAX(rate_bps / 8 / 4000, 2 * (mtu + 14));
}

/* Appends lines of "tc -batch" that give 'dev' its rate and one queue. */
static void
put_one_queue(struct ds *commands, const char *dev, int64_t rate_bps, int mtu)
{
    long long burst = get_burst(rate_bps, mtu);

    ds_put_format(commands,
                  "qdisc add dev %s root handle 1: htb default 1 r2q 1000\n"
                  "class add dev %s parent 1: classid 1:1 htb rate %"PRId64
                  "bit burst %lld cburst %lld quantum 60000\n"
                  "qdisc add dev %s parent 1:1 handle 2: bfifo limit %d\n",
                  dev, dev, rate_bps, burst, burst, dev, QUEUE_BYTES);
}

/* Gives the uplink 'dev' in 'ns' the rate of the link and one queue. */
static char *
limit_uplink(const struct plan *plan, const char *ns, const char *dev)
{
    struct ds tc = DS_EMPTY_INITIALIZER;

    put_one_queue(&tc, dev, plan->rate_bps, plan->mtu);
    return run_batch("tc", ns, &tc);
}

/* Sets up the interfaces of the shim of host 'i', and with "plain" a bridge in
 * its place. */
static char *
set_up_node(const struct plan *plan, int i)
{
    const char *names[] = { "host", "uplink", NULL };
    const char *ns = plan->hosts[i].node_ns;
    struct ds ds = DS_EMPTY_INITIALIZER;
    char *error;

    ds_put_cstr(&ds, "link set lo up\nlink set host up\nlink set uplink up\n");
    if (plan->plain) {
        ds_put_format(&ds,
                      "link add br0 type bridge mcast_snooping 0 "
                      "stp_state 0\nlink set br0 mtu %d up\n"
                      "link set host master br0\n"
                      "link set uplink master br0\n",
                      plan->mtu);
    }
    error = set_up_namespace(ns, &ds, names);
    return error || !plan->plain ? error : limit_uplink(plan, ns, "uplink");
}

/* TCP hands long segments to an interface that are cut only behind its queues.
 * At the rates of a lab each takes long, so eth0 gets no longer ones than a
 * burst if it is the uplink. */
static char *
set_up_host(const struct plan *plan, int i)
{
    const char *names[] = { "eth0", NULL };
    const char *ns = plan->hosts[i].ns;
    bool is_uplink = plan->hosts[i].actuator != ACTUATOR_SHIM;
    struct ds ds = DS_EMPTY_INITIALIZER;
    char *error;

    ds_put_format(&ds,
                  "link set lo up\naddr add %s/24 dev eth0\n"
                  "link set eth0",
                  plan->hosts[i].address);
    if (is_uplink) {
        ds_put_format(
            &ds, " gso_max_segs %lld",
            MAX(get_burst(plan->rate_bps, plan->mtu) / (plan->mtu + 14) - 1,
                1));
    }
    ds_put_cstr(&ds, " up\n");
    if (plan->congestion) {
        /* Only the first namespace can set the sysctl to any. */
        ds_put_format(&ds,
                      "route replace 10.77.0.0/24 dev eth0 proto kernel "
                      "scope link src %s congctl %s\n",
                      plan->hosts[i].address, plan->congestion);
    }
    error = set_up_namespace(ns, &ds, names);
    if (!error && !is_uplink) {
        error = set_up_node(plan, i);
    } else if (!error && !plan_orders_with(plan, i, ACTUATOR_BPF)) {
        error = limit_uplink(plan, ns, "eth0");
    }
    return error;
}

/* Appends a line that gives packets with 'dscp' the class of 'level'. */
static void
put_filter(struct ds *commands, const char *dev, int level, uint8_t dscp)
{
    ds_put_format(commands,
                  "filter add dev %s parent 1: protocol ip prio %d u32"
                  " match ip tos 0x%02x 0xfc flowid 1:1%d\n",
                  dev, level + 1, dscp << 2, level);
}

/* Appends lines of "tc -batch" that give 'dev' its rate, and a queue for each
 * level of 'policy'; other DSCPs have the default level. */
static void
put_levels(struct ds *commands, const char *dev, int64_t rate_bps, int mtu,
           const struct policy *policy)
{
    long long burst = get_burst(rate_bps, mtu);

    ds_put_format(commands,
                  "qdisc add dev %s root handle 1: htb default 17 r2q 1000\n"
                  "class add dev %s parent 1: classid 1:1 htb rate %"PRId64
                  "bit ceil %"PRId64"bit burst %lld cburst %lld"
                  " quantum 60000\n",
                  dev, dev, rate_bps, rate_bps, burst, burst);
    for (int level = 0; level < N_LEVELS; level++) {
        ds_put_format(commands,
                      "class add dev %s parent 1:1 classid 1:1%d htb"
                      " rate %" PRId64 "bit ceil %" PRId64 "bit prio %d"
                      " burst %d cburst %lld quantum 60000\n"
                      "qdisc add dev %s parent 1:1%d handle 2%d:"
                      " bfifo limit %d\n",
                      dev, level, MAX(rate_bps / 50, 1000), rate_bps, level,
                      2 * (mtu + 14), burst, dev, level, level, QUEUE_BYTES);
    }
    put_filter(commands, dev, 0, policy->control_dscp);
    for (int i = 0; i < policy->n_levels; i++) {
        put_filter(commands, dev, 1 + i, policy->dscp[i]);
    }
    ds_put_format(commands,
                  "filter add dev %s parent 1: protocol arp prio %d u32"
                  " match u32 0 0 flowid 1:10\n", dev, N_LEVELS + 1);
}

void
fabric_put_shaping(struct ds *commands, const char *dev, int64_t rate_bps,
                   int mtu, enum port_queues queues,
                   const struct policy *policy)
{
    if (queues == QUEUES_STRICT) {
        put_levels(commands, dev, rate_bps, mtu, policy);
    } else {
        put_one_queue(commands, dev, rate_bps, mtu);
    }
}

/* Returns the rate of port 'i' of get_ports(). */
static int64_t
get_rate(const struct plan *plan, size_t i)
{
    return i < plan->n_hosts ? plan->rate_bps : leaf_spine_rate(plan);
}

/* Stores the names of the ports to hosts, then to other switches, with a null
 * behind them. */
static void
get_ports(const struct plan *plan, struct svec *names)
{
    svec_init(names);
    for (int i = 0; i < plan->n_hosts; i++) {
        svec_add(names, plan->hosts[i].port);
    }
    for (int i = 0; i < 2 * leaf_spine_n_links(plan); i++) {
        svec_add(names, leaf_spine_link_port(plan, i / 2, i % 2).interface);
    }
    svec_terminate(names);
}

/* Sets up the fabric's ports with their rate and queues. */
static char *
set_up_ports(const struct plan *plan, const struct policy *policy)
{
    struct ds ip = DS_EMPTY_INITIALIZER;
    struct ds tc = DS_EMPTY_INITIALIZER;
    struct svec names;
    char *error;

    get_ports(plan, &names);
    ds_put_cstr(&ip, "link set lo up\n");
    for (size_t i = 0; i < names.n; i++) {
        ds_put_format(&ip, "link set %s up\n", names.names[i]);
        if (!plan_has_controller_queues(plan)) {
            fabric_put_shaping(&tc, names.names[i], get_rate(plan, i),
                               plan->mtu, plan->queues, policy);
        }
    }
    error = set_up_namespace(plan->fabric_ns, &ip,
                             (const char **) names.names);
    if (error || !tc.length) {
        ds_destroy(&tc);
    } else {
        error = run_batch("tc", plan->fabric_ns, &tc);
    }
    for (size_t i = 0; !error && plan->queues == QUEUES_ECN && i < names.n;
         i++) {
        error = marking_attach(plan->fabric_ns, names.names[i],
                               get_rate(plan, i));
    }
    svec_destroy(&names);
    return error;
}

/* Loads the module of the kernel's datapath, which the kernel does not load by
 * itself. */
static char *
load_datapath(const struct plan *plan)
{
    static const char *const argv[] = { "modprobe", "openvswitch", NULL };
    char *error, *message;

    if (plan->datapath != DATAPATH_KERNEL
        || !access("/sys/module/openvswitch", F_OK)) {
        return NULL;
    }
    error = tool_run(NULL, argv, NULL, TOOL_TIMEOUT_MS, NULL);
    message = error ? xasprintf("\"datapath\": \"kernel\" needs the module "
                                "openvswitch, which this kernel does not have "
                                "(%s)", error) : NULL;
    free(error);
    return message;
}

char *
fabric_create(const struct plan *plan, const struct policy *policy)
{
    char *error = load_datapath(plan);

    error = error ? error : make_links(plan);
    error = error ? error : set_up_ports(plan, policy);
    for (int i = 0; !error && i < plan->n_hosts; i++) {
        error = set_up_host(plan, i);
    }
    return error;
}

static char *
join_bridge(const struct plan *plan)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    ds_put_format(&ds, "link add br0 type bridge mcast_snooping 0 "
                  "stp_state 0\nlink set br0 mtu %d up\n", plan->mtu);
    for (int i = 0; i < plan->n_hosts; i++) {
        ds_put_format(&ds, "link set %s master br0\n", plan->hosts[i].port);
    }
    return run_batch("ip", plan->fabric_ns, &ds);
}

static void
put_bridge(struct ds *command, const struct plan *plan, const char *name,
           const char *settings)
{
    ds_put_format(command, " -- add-br %s -- set bridge %s"
                  " datapath_type=%s %s", name, name,
                  plan->datapath == DATAPATH_KERNEL ? "system" : "netdev",
                  settings);
}

static void
put_port(struct ds *command, const struct plan *plan, const char *bridge,
         const char *interface)
{
    ds_put_format(command, " -- add-port %s %s", bridge, interface);
    if (!plan_has_controller_queues(plan)) {
        ds_put_format(command, " -- set port %s qos=@noop", interface);
    }
}

static void
put_switch_port(struct ds *command, const struct plan *plan,
                struct switch_port port)
{
    char *name = leaf_spine_switch_name(plan, port.sw);

    put_port(command, plan, name, port.interface);
    ds_put_format(command, " -- set interface %s ofport_request=%d",
                  port.interface, port.number);
    free(name);
}

/* NORMAL would be a loop, so a bridge forwards nothing without flows. */
static void
put_leaf_spine(struct ds *command, const struct plan *plan)
{
    for (int i = 0; i < leaf_spine_n_switches(plan); i++) {
        char *name = leaf_spine_switch_name(plan, i);
        char *settings = xasprintf(
            "fail_mode=secure other_config:datapath-id=%016x", i + 1);

        put_bridge(command, plan, name, settings);
        free(settings);
        free(name);
    }
    for (int i = 0; i < plan->n_hosts; i++) {
        put_switch_port(command, plan, leaf_spine_host_port(plan, i));
    }
    for (int i = 0; i < 2 * leaf_spine_n_links(plan); i++) {
        put_switch_port(command, plan,
                        leaf_spine_link_port(plan, i / 2, i % 2));
    }
}

/* ovs-vsctl waits for the switch.  The QoS type prevents Open vSwitch from
 * removing the HTB of the ports whenever it configures them. */
static char *
join_ovs(const struct plan *plan)
{
    struct ds command = DS_EMPTY_INITIALIZER;
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error;

    ds_put_cstr(&command, "--timeout=20 --no-syslog");
    if (!plan_has_controller_queues(plan)) {
        ds_put_cstr(&command, " --id=@noop create qos type=linux-noop");
    }
    if (plan_has_topology(plan)) {
        put_leaf_spine(&command, plan);
    } else {
        put_bridge(&command, plan, "br0", "fail_mode=standalone");
        for (int i = 0; i < plan->n_hosts; i++) {
            put_port(&command, plan, "br0", plan->hosts[i].port);
        }
    }
    svec_add(&argv, "ovs-vsctl");
    svec_add_nocopy(&argv, xasprintf("--db=unix:%s/ovs/db.sock",
                                     plan->rundir));
    svec_parse_words(&argv, ds_cstr(&command));
    ds_destroy(&command);
    svec_terminate(&argv);
    error = tool_run(plan->fabric_ns, (const char *const *) argv.names, NULL,
                     TOOL_TIMEOUT_MS, NULL);
    svec_destroy(&argv);
    return error;
}

char *
fabric_join(const struct plan *plan)
{
    char *error = plan_uses_ovs(plan) ? join_ovs(plan) : join_bridge(plan);

    return (error || !plan_has_topology(plan) ? error
            : leaf_spine_write_topology(plan));
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
        static const char *const argv[] = { "ip", "-force", "-batch", "-",
                                            NULL };

        free(tool_run(NULL, argv, ds_cstr(&ds), TOOL_TIMEOUT_MS, NULL));
    }
    ds_destroy(&ds);
}

char *
fabric_datapath(const struct plan *plan)
{
    char *ctl, *text = NULL, *type;
    int errnum;

    if (!plan_uses_ovs(plan)) {
        return NULL;
    }
    ctl = xasprintf("%s/ovs/vswitchd.ctl", plan->rundir);
    free(rpc_unixctl(ctl, "dpif/show", 0, NULL, ASK_MS, &text, &errnum));
    free(ctl);
    type = text ? xmemdup0(text, strcspn(text, "@")) : NULL;
    free(text);
    return type;
}

const char *
fabric_queues_to_string(const struct plan *plan, const char *datapath,
                        bool in_sync)
{
    if (plan->queues == QUEUES_FIFO) {
        return "one at each port, so only the hosts order the traffic";
    } else if (plan->queues == QUEUES_ECN) {
        return "one at each port, which marks packets; only the hosts order "
               "the traffic";
    } else if (!plan_uses_ovs(plan)) {
        return "by DSCP in the lab's shaper; a bridge of the kernel has none";
    } else if (!datapath) {
        return "unknown, because Open vSwitch does not answer";
    } else if (strcmp(datapath, "system")) {
        return "by DSCP in the lab's shaper; Open vSwitch's userspace "
               "datapath "
               "ignores the queues of the controller's flows (set_queue)";
    } else if (!in_sync) {
        return "unknown, because the switches do not have all flows and "
               "queues of the controller";
    }
    return "by the controller's flows (set_queue), in queues that the "
           "controller created; Open vSwitch uses the kernel's datapath";
}

/* Adds what the classes in 'text', as "tc -s class show" prints it, have sent:
 *
 *    class htb 1:13 parent 1:1 leaf 23: prio 3 rate ...
 *     Sent 1234 bytes 5 pkt (dropped 0, overlimits 0 requeues 0)
 *
 * Classes of the lab are 1:10 and up, and those of Open vSwitch 1:1 and up, in
 * the order of the levels. */
static void
add_class_bytes(const struct plan *plan, char *text, uint64_t bytes[8])
{
    int first = plan_has_controller_queues(plan) ? 0x1 : 0x10;
    char *save = NULL;
    int level = -1;

    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        unsigned long long n;
        unsigned int id;

        if (!strncmp(line, "class ", 6)) {
            level = sscanf(line, "class htb 1:%x ", &id) == 1
                    ? (int) id - first : -1;
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
        const char *const argv[] = {
            "tc", "-s", "class", "show", "dev", plan->hosts[i].port, NULL
        };
        char *text;

        error = tool_run(plan->fabric_ns, argv, NULL, 5000, &text);
        if (!error) {
            add_class_bytes(plan, text, bytes);
            free(text);
        }
    }
    return error;
}
