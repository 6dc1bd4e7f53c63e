/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/agent.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/actuator.h"
#include "agent/actuate/tc.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/bpf/interfaces.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "agent/identify/tracker.h"
#include "agent/progress/iterations.h"
#include "agent/progress/log-readers.h"
#include "agent/progress/socket.h"
#include "agent/telemetry.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"
#include "wire/cgroup-path.h"
#include "wire/host-row.h"
#include "wire/hosts-idl.h"

VLOG_DEFINE_THIS_MODULE(agent);

#define GRACE_MS 3000           /* Time after the start in which the
                                 * database should be read. */
/* An order must be back within 5 s when a machine with a relay vanishes, which
 * is noticed after two of these intervals. */
#define DB_PROBE_MS 1500

const char *
agent_state(const struct agent *a)
{
    return a->ordered ? "ordered" : "fair";
}

uint64_t
agent_capacity(const struct agent *a)
{
    struct actuator_status status;

    actuator_get_status(a->actuator, &status);
    return status.rate_bps ? status.rate_bps : a->config->rate_bps;
}

bool
agent_wanted(const struct agent *a, const struct job *job,
             struct shim_slot *row)
{
    const struct membership_claim claim = {
        .registered = registry_is_registered(job), .has_uid = job->has_uid,
        .uid = job->uid,
    };
    struct membership_owner owner;

    wanted_get_owner(&a->wanted, job->name, &owner);
    if (membership_check(&owner, &claim) == MEMBERSHIP_ADMITTED) {
        return wanted_get(&a->wanted, job->name, row);
    }
    wanted_get_default(&a->wanted, row);
    return false;
}

static void
send_telemetry(struct agent *a)
{
    bool pairs = pairs_sample(&a->pairs, tracker_registry(a->tracker),
                              a->identity, a->actuator, time_msec());

    telemetry_report(a->telemetry, a, pairs, peers_take_report(&a->peers));
}

/* Events of the actuator. */

static void
set_traffic(struct job *job)
{
    job->tx_bytes = MAX(job->counted_tx_bytes, job->reported_tx_bytes);
    job->rx_bytes = MAX(job->counted_rx_bytes, job->reported_rx_bytes);
}

static void
on_traffic(const char *name, uint64_t tx_bytes, uint64_t rx_bytes, void *a_)
{
    struct agent *a = a_;
    struct job *job = registry_find(tracker_registry(a->tracker), name);

    if (job) {
        job->counted_tx_bytes += tx_bytes;
        job->counted_rx_bytes += rx_bytes;
        set_traffic(job);
    }
}

static void
on_bursts(const char *name, const struct shim_burst_stats *tx,
          const struct shim_burst_stats *rx, void *a_)
{
    struct agent *a = a_;
    struct job *job = registry_find(tracker_registry(a->tracker), name);

    if (job) {
        job->bursts = tx->bytes >= rx->bytes ? *tx : *rx;
    }
}

static void
on_bins(const char *name, uint64_t first, const struct shim_bin *bins,
        size_t n, void *a_)
{
    struct agent *a = a_;
    struct job *job = registry_find(tracker_registry(a->tracker), name);

    if (job && a->config->actuator != AGENT_SHIM) {
        job->waiting =
            job->waiting ? job->waiting : xzalloc(sizeof *job->waiting);
        waiting_add_bins(job->waiting, first, bins, n, agent_capacity(a));
    }
    if (job && !job->has_progress) {
        if (!job->counted) {
            job->counted = iterations_create();
        }
        iterations_add_bins(job->counted, first, bins, n, time_msec());
    }
}

/* Counts what a shim has refused to the user of a job, or to the one with most
 * connections of no job. */
static void
on_refused(const char *name, uint64_t n, void *a_)
{
    struct agent *a = a_;
    struct registry *registry = tracker_registry(a->tracker);
    const struct job *job = name ? registry_find(registry, name) : NULL;

    if (!name) {
        tracker_refused(a->tracker, n);
    } else if (job && job->has_uid) {
        users_find(&registry->users, job->uid, 0)->n_other += n;
    }
}

static void
on_peers(const struct shim_peer *list, size_t n, void *a_)
{
    struct agent *a = a_;

    peers_take_list(&a->peers, list, n);
}

static const struct actuator_events events = { .traffic = on_traffic,
                                               .bursts = on_bursts,
                                               .refused = on_refused,
                                               .bins = on_bins,
                                               .peers = on_peers };

/* Events of the registry. */

/* Gives 'job' the priority of the order, or the default if its processes are
 * not those of its owner. */
static void
set_job(struct job *job, void *a_)
{
    struct agent *a = a_;
    struct shim_slot row;

    agent_wanted(a, job, &row);
    actuator_set_job(a->actuator, job->name, &row, a->decided);
}

static void
on_job_begin(struct job *job, void *a_)
{
    struct agent *a = a_;

    VLOG_INFO("%s: job is on this host", job->name);
    set_job(job, a);
    log_readers_job_begin(a->logs, job);
}

static bool
on_job_owner(const char *name, uint64_t *uidp, void *a_)
{
    const struct agent *a = a_;
    struct membership_owner owner;

    wanted_get_owner(&a->wanted, name, &owner);
    *uidp = owner.uid;
    return owner.has_uid;
}

/* Frees what the agent keeps for a job. */
static void
job_clear(struct job *job)
{
    iterations_destroy(job->counted);
    job->counted = NULL;
    free(job->waiting);
    job->waiting = NULL;
}

static void
on_job_end(struct job *job, void *a_)
{
    struct agent *a = a_;

    VLOG_INFO("%s: job has left this host", job->name);
    log_readers_job_end(a->logs, job);
    job->reported.at = 0; /* Its last counters are news. */
    send_telemetry(a);
    identity_clear_control_ports(a->identity,
                                 actuator_slot(a->actuator, job->name));
    actuator_remove_job(a->actuator, job->name);
    holds_remove(&a->holds, job->name);
    job_clear(job);
}

static uint16_t
on_job_slot(const char *name, void *a_)
{
    const struct agent *a = a_;

    return actuator_slot(a->actuator, name);
}

static const struct registry_class registry_class = {
    .begin = on_job_begin,
    .end = on_job_end,
    .changed = set_job,
    .owner = on_job_owner,
    .slot = on_job_slot,
};

/* Progress of jobs. */

/* Stores progress that 'job' has reported or logged.  Its iterations are no
 * longer counted from its traffic, nor from its collectives unless 'calls'. */
static void
store_progress(struct job *job, const struct progress *progress, bool calls)
{
    job->progress = *progress;
    job->counts_calls = calls;
    if (!job->has_progress) {
        job->has_progress = true;
        job_clear(job);
    }
}

/* Returns false if 'progress' has no iteration. */
static bool
take_port(struct agent *a, const struct job *job,
          const struct progress *progress)
{
    if (progress->control_port) {
        identity_set_control_port(a->identity,
                                  actuator_slot(a->actuator, job->name),
                                  htons(progress->control_port));
    }
    return progress->iteration >= 0;
}

static void
on_logged(struct job *job, const struct progress *progress, void *a)
{
    if (take_port(a, job, progress) && !job->reports_progress) {
        store_progress(job, progress, false);
    }
}

static bool
has_rdma(void)
{
    DIR *dir = opendir("/sys/class/infiniband");
    bool has = false;

    for (struct dirent *e; dir && !has && (e = readdir(dir));) {
        has = e->d_name[0] != '.';
    }
    if (dir) {
        closedir(dir);
    }
    return has;
}

/* Takes what a process of 'job' has transferred.  Without a card for RDMA,
 * these were packets, which are counted already. */
static void
take_transfers(struct agent *a, struct job *job, const struct progress *p)
{
    if (p->sent > 0 || p->received > 0) {
        a->has_rdma = a->has_rdma || has_rdma();
        if (a->has_rdma) {
            a->rdma_tx_bytes -= job->tx_bytes;
            a->rdma_rx_bytes -= job->rx_bytes;
            job->reported_tx_bytes += p->sent;
            job->reported_rx_bytes += MAX(p->received, 0);
            set_traffic(job);
            a->rdma_tx_bytes += job->tx_bytes;
            a->rdma_rx_bytes += job->rx_bytes;
        }
    }
    if (p->counted >= 0 && (!job->has_progress || job->counts_calls)) {
        store_progress(
            job, &(struct progress){ .iteration = p->counted, .stage = -1 },
            true);
    }
    if (p->sent > 0 || p->posted > 0) {
        holds_moved(&a->holds, job->name, time_msec());
    }
}

static enum progress_verdict
on_progress(const char *name, const struct progress *progress,
            const struct ucred *sender, void *a_)
{
    struct agent *a = a_;
    const struct registry *registry = tracker_registry(a->tracker);
    struct job *job = registry_find(registry, name);

    /* A new job may report before it was found. */
    job = job ? job : tracker_register(a->tracker, name);
    if (!job) {
        return PROGRESS_UNKNOWN;
    }
    if (!progress_may_report(registry, a->cgroup_mount, sender, job)) {
        job->reports_refused++;
        return PROGRESS_REFUSED;
    }
    if (take_port(a, job, progress)) {
        store_progress(job, progress, false);
        job->reports_progress = true;
    }
    if (progress->sent >= 0) {
        take_transfers(a, job, progress);
    }
    return PROGRESS_TAKEN;
}

/* Returns the place of a job in the order of the sends that wait. */
static uint64_t
place_of(const char *name, void *a_)
{
    const struct agent *a = a_;
    const struct job *job = registry_find(tracker_registry(a->tracker), name);
    struct shim_slot row;

    return job && agent_wanted(a, job, &row) && row.level != SHIM_LEVEL_DEFAULT
               ? (uint64_t) row.rank << 8 | row.level
               : HOLD_LAST;
}

/* Leases of the controller. */

static bool
on_lease(const struct telemetry_lease *lease, void *a_)
{
    struct agent *a = a_;
    long long now = time_msec();
    bool good = lease_notify(&a->lease, lease->generation, lease->lease_ms,
                             now);

    if (good) {
        report_set_window(&a->report, lease->report_ms, now);
        a->pairs.wanted = lease->pairs;
    } else {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "ignoring a lease of generation %"PRId64", older "
                     "than %"PRId64, lease->generation, a->lease.newest);
    }
    return good;
}

static bool
on_keys(const struct json *keys, void *a_)
{
    struct agent *a = a_;
    bool good = peers_take_keys(&a->peers, keys);

    if (a->peers.keys) {
        actuator_set_keys(a->actuator, a->peers.keys, a->peers.n_keys);
    }
    return good;
}

static char *
on_order(const struct json *json, void *a_)
{
    struct agent *a = a_;

    return wanted_push(&a->wanted, json, &a->lease, time_msec());
}

/* Loads the rules for logs, if there is a file of them.  Returns NULL, or a
 * malloc()'d message, which has been logged; then the previous rules stay. */
char *
agent_load_readers(struct agent *a)
{
    char *error = a->config->readers
        ? log_readers_load(a->logs, a->config->readers) : NULL;

    if (error) {
        VLOG_WARN("%s", error);
    }
    return error;
}

/* Opens the tracker and the readers of logs. */
static void
open_tracker(struct agent *a)
{
    struct tracker_config config = { .cgroup_mount = a->cgroup_mount,
                                     .cgroup_root = a->cgroup_root,
                                     .identity = a->identity };

    if (!a->cgroup_root) {
        VLOG_WARN("no cgroup v2 file system is mounted, so no job will be "
                  "found");
    }
    a->logs = log_readers_create(a->cgroup_root, on_logged, a);
    free(agent_load_readers(a));
    a->tracker = tracker_create(&config, &registry_class, a);
}

static void
open_database(struct agent *a)
{
    struct ovsdb_idl *idl;

    idl = ovsdb_idl_create(a->config->db, &hostsrec_idl_class, false, true);
    a->loop = xmalloc(sizeof *a->loop);
    *a->loop = (struct ovsdb_idl_loop) OVSDB_IDL_LOOP_INITIALIZER(idl);
    ovsdb_idl_set_probe_interval(idl, DB_PROBE_MS);
    ovsdb_idl_set_leader_only(idl, false);      /* A relay is never a
                                                 * leader. */
    wanted_init(&a->wanted, idl, a->config->host);
    host_facts_init(&a->facts);
    report_init(&a->report, idl, a->config->host, time_msec());
}

/* Loads the programs of the kernel, and attaches them; where that is
 * impossible the agent goes on without them.  Returns NULL or a malloc()'d
 * message. */
static char *
load_programs(struct agent *a)
{
    const struct agent_config *c = a->config;
    char *cgroup = xasprintf(
        "%s/%s", a->cgroup_mount ? a->cgroup_mount : "/sys/fs/cgroup",
        c->kernel_cgroup ? c->kernel_cgroup : "");
    const struct identity_config config = { .pins = c->pins,
                                            .cgroup = cgroup,
                                            .mark_shift = c->mark_shift,
                                            .mode = c->actuator == AGENT_BPF
                                                        ? IDENTITY_ORDERS
                                                    : c->actuator == AGENT_SHIM
                                                        ? IDENTITY_TAGS
                                                        : IDENTITY_COUNTS };
    char *error = identity_open(&config, &a->identity);

    free(cgroup);
    if (error) {
        VLOG_ERR("%s; no packet is known to be a job's", error);
        free(error);
        a->identity = identity_open_blind();
        return NULL;
    }
    for (size_t i = 0; !error && i < c->n_uplinks; i++) {
        error = identity_add_uplink(a->identity, c->uplinks[i]);
    }
    return error ? error : pods_create(a->identity, &a->pods);
}

/* Returns the rate of the link of an interface in bit/s, 0 if the kernel does
 * not know it. */
static uint64_t
link_rate(const char *iface)
{
    char *path = xasprintf("/sys/class/net/%s/speed", iface);
    char text[32];
    long long mbps =
        small_file_read(path, text, sizeof text) > 0 ? atoll(text) : 0;

    free(path);
    return MAX(mbps, 0) * UINT64_C(1000000);
}

static char *
open_actuator(struct agent *a)
{
    const struct agent_config *c = a->config;
    char *error = NULL;

    if (c->n_uplinks) {
        error = load_programs(a);
    } else {
        VLOG_WARN("no --uplink, such as --uplink eth0: no packet is known to "
                  "be a job's");
        a->identity = identity_open_blind();
    }
    if (!error && c->actuator == AGENT_SHIM) {
        a->actuator = shim_actuator_create(c->shim, c->bypass, &events, a);
    } else if (!error) {
        struct kernel_config config = { .uplinks = c->uplinks,
                                        .n_uplinks = c->n_uplinks,
                                        .rate_bps = c->rate_bps };

        for (size_t i = 0; i < c->n_uplinks && !c->rate_bps; i++) {
            config.rate_bps += link_rate(c->uplinks[i]);
        }
        a->actuator = kernel_actuator_create(a->identity, &config, &events, a);
    }
    return error;
}

/* Starts an agent with 'config', which must outlive it.  Returns NULL and
 * stores it in '*ap', or returns a malloc()'d message. */
char *
agent_create(const struct agent_config *config, struct agent **ap)
{
    struct agent *a = xzalloc(sizeof *a);
    char *path = xasprintf("%s/progress.sock", config->rundir);
    char *message;
    int error;

    *ap = NULL;
    a->config = config;
    a->started = a->next_telemetry = time_msec();
    lease_init(&a->lease);
    a->cgroup_mount = cgroup_mount_from("/proc/mounts");
    error = progress_socket_open(path, on_progress, a, &a->progress);
    message =
        error ? xasprintf("%s: cannot listen (%s)", path, ovs_strerror(error))
              : open_actuator(a);
    if (message) {
        progress_socket_close(a->progress);
        pods_destroy(a->pods);
        identity_close(a->identity);
        free(a->cgroup_mount);
        free(a);
    } else {
        a->tc = tc_create(config->tc, config->n_tc);
        holds_init(&a->holds, config->rundir);
        open_database(a);
        a->telemetry =
            telemetry_create(config->controller, on_lease, on_keys, a);
        telemetry_take_orders(a->telemetry, on_order);
        if (a->cgroup_mount) {
            a->cgroup_root = xasprintf("%s/%s", a->cgroup_mount,
                                       config->cgroup);
        }
        open_tracker(a);
        *ap = a;
    }
    free(path);
    return message;
}

void
agent_destroy(struct agent *a)
{
    if (a) {
        struct job *job;

        HMAP_FOR_EACH (job, node, &tracker_registry(a->tracker)->jobs) {
            job_clear(job);
        }
        tracker_destroy(a->tracker);
        pods_destroy(a->pods);
        log_readers_destroy(a->logs);
        free(a->cgroup_mount);
        free(a->cgroup_root);
        telemetry_destroy(a->telemetry);
        wanted_uninit(&a->wanted);
        host_facts_uninit(&a->facts);
        ovsdb_idl_loop_destroy(a->loop);
        free(a->loop);
        actuator_destroy(a->actuator);
        peers_uninit(&a->peers);
        identity_close(a->identity);
        tc_destroy(a->tc);
        holds_uninit(&a->holds);
        progress_socket_close(a->progress);
        free(a);
    }
}

/* Applies the desired state that was pushed or is in the database.  Without a
 * row, nothing is desired once the database has been read, or GRACE_MS after
 * the start. */
static void
run_wanted(struct agent *a, long long now)
{
    bool changed = wanted_run(&a->wanted, a->loop->idl, &a->lease, now);
    bool was_decided = a->decided;
    struct job *job;

    a->decided = a->decided || a->wanted.present
                 || ovsdb_idl_has_ever_connected(a->loop->idl)
                 || now - a->started >= GRACE_MS;
    if (changed || a->decided != was_decided) {
        HMAP_FOR_EACH (job, node, &tracker_registry(a->tracker)->jobs) {
            uint64_t uid;

            if (on_job_owner(job->name, &uid, a)) {
                registry_set_owner(tracker_registry(a->tracker), job, uid);
            }
            set_job(job, a);
        }
    }
}

static void
run_lease(struct agent *a, long long now)
{
    long long until = lease_until(&a->lease);
    bool ordered = until > now;

    if (ordered != a->ordered) {
        a->ordered = ordered;
        a->next_telemetry = now;
        if (ordered) {
            VLOG_INFO("following order %"PRId64" of generation %"PRId64,
                      a->wanted.version, a->wanted.generation);
        } else {
            VLOG_INFO("the controller's lease has ended, every job is equal");
        }
    }
    if (a->decided) {
        struct actuator_wanted wanted = a->wanted.all;

        wanted.until = until;
        actuator_set(a->actuator, &wanted);
        tc_set(a->tc, until, wanted.min_share, a->wanted.dscp);
    }
    if (a->config->actuator != AGENT_OBSERVE) {
        const struct holds_order order = { .until = until,
                                           .min_share =
                                               a->wanted.all.min_share,
                                           .place = place_of,
                                           .aux = a };

        holds_run(&a->holds, &order, now, time_wall_msec());
    }
}

/* Only a shim removes tags, and it reports that it does: without it they would
 * be passed on.  While the agent is not connected, the shim is as before. */
static void
run_tags(struct agent *a, const struct actuator_status *status)
{
    const char *takes = smap_get(&a->facts.map, "shim_host_tags");

    if (a->config->actuator == AGENT_SHIM
        && (status->bypass || (status->connected && takes))) {
        struct identity_settings *s = identity_settings(a->identity);
        bool tags = !status->bypass && takes && !strcmp(takes, "yes");

        s->mode = tags ? IDENTITY_TAGS : IDENTITY_COUNTS;
        s->control_dscp = a->wanted.all.control.dscp;
    }
}

static void
run_applied(struct agent *a)
{
    struct actuator_status status;

    actuator_get_status(a->actuator, &status);
    run_tags(a, &status);
    if (status.connected != a->connected) {
        a->connected = status.connected;
        tracker_touch(a->tracker); /* Jobs may have other slots. */
    }
    if (status.in_sync && a->wanted.present) {
        a->applied = a->wanted.version;
        a->applied_generation = a->wanted.generation;
    }
}

static void
run_report(struct agent *a, struct ovsdb_idl_txn *txn, long long now)
{
    struct smap *health = &a->facts.map;
    struct actuator_status status;
    const struct report_facts facts = { .state = agent_state(a),
                                        .applied = a->applied,
                                        .capacity_bps = agent_capacity(a),
                                        .health = health };

    actuator_get_status(a->actuator, &status);
    host_facts_run(&a->facts, a->config, status.about, now);
    smap_replace(health, "shim",
                 status.connected ? "connected" : "disconnected");
    smap_replace(health, "bypass", status.bypass ? "up" : "down");
    smap_replace(health, "telemetry",
                 telemetry_is_connected(a->telemetry) ? "connected"
                                                      : "disconnected");
    host_row_cut(health);
    report_run(&a->report, a->loop->idl, txn, &facts, now);
}

void
agent_run(struct agent *a)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_loop_run(a->loop);
    long long now = time_msec();

    telemetry_run(a->telemetry);
    run_wanted(a, now);
    progress_socket_run(a->progress);
    tracker_run(a->tracker);
    log_readers_run(a->logs, tracker_registry(a->tracker));
    run_lease(a, now);
    identity_run(a->identity, now);
    pods_run(a->pods);
    actuator_run(a->actuator);
    tc_run(a->tc);
    run_applied(a);
    if (now >= a->next_telemetry) {
        a->next_telemetry = now + TELEMETRY_MS;
        links_sample(&a->links, tracker_registry(a->tracker), now);
        send_telemetry(a);
    }
    run_report(a, txn, now);
    ovsdb_idl_loop_commit_and_wait(a->loop);
}

void
agent_wait(struct agent *a)
{
    long long until = lease_until(&a->lease);

    telemetry_wait(a->telemetry);
    progress_socket_wait(a->progress);
    tracker_wait(a->tracker);
    log_readers_wait(a->logs);
    identity_wait(a->identity);
    pods_wait(a->pods);
    actuator_wait(a->actuator);
    tc_wait(a->tc);
    report_wait(&a->report);
    poll_timer_wait_until(a->next_telemetry);
    if (a->ordered) {
        poll_timer_wait_until(until);
    }
    if (!a->decided) {
        poll_timer_wait_until(a->started + GRACE_MS);
    }
}
