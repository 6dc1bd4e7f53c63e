/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/groups/group-server.h"
#include "trainer/schemes/groups.h"

/* The central server of the scheme "groups": group servers ("hosts"), and
 * which workers push to which of them.  A group gets a new generation with
 * each group server.  Frames of workers and group servers carry it, so that
 * frames of an earlier one are ignored.  When a group server is lost, this
 * server knows which gradients count: it sends the workers to another one with
 * their numbers. */

#define WAIT_US 60000000        /* Time limit for a missing group server. */
#define MAX_LOSSES 100          /* Of group servers; then the job fails. */
#define SPARE_HOSTS 1           /* Started in advance. */
#define MAX_STARTS 100          /* Starts beyond the number of entries. */
#define END_US 2000000          /* Time limit for SIGTERM. */

/* Group servers that this one starts on its own machine, with "server
 * --central".  They listen at its address and get SIGTERM when it dies. */
struct children {
    const struct ps_server_config *config;
    char *central;              /* "HOST:PORT". */
    pid_t *pids;                /* 0: unused. */
    int n, max;                 /* Running processes, and entries of 'pids'. */
    int n_started;              /* Processes started so far. */
};

struct host {
    struct conn *conn;          /* NULL: the entry is unused. */
    char *address;              /* HOST:PORT for workers. */
    pid_t pid;                  /* As the group server has reported. */
    int group;                  /* Index, or -1. */
    bool owed;                  /* It has pushed and waits for weights. */
    struct heartbeat heartbeat;
};

/* Which host a group of the plan has. */
struct hosting {
    int host;                   /* Index, or -1. */
    uint64_t generation;        /* 0 without a host. */
};

struct central {
    struct children children;   /* 'pids' is NULL: started elsewhere. */
    struct host *hosts;
    int n_hosts;                /* Entries. */
    struct hosting *groups;
    bool *paused;               /* Per worker: as last sent to its host. */
    uint64_t n_plans;           /* Number of the plan of 'groups'. */
    uint64_t generation;        /* Last one assigned. */
    int n_losses;
    int64_t lacking_us;         /* Since when a group lacks a host; 0: none. */
};

/* Reaps the processes that have ended. */
static void
reap_children(struct children *children)
{
    for (int i = 0; i < children->max; i++) {
        if (children->pids[i] && waitpid(children->pids[i], NULL, WNOHANG)) {
            children->pids[i] = 0;
            children->n--;
        }
    }
}

/* Ends all, at last by SIGKILL, and waits for them. */
static void
children_destroy(struct children *children)
{
    int64_t deadline = clock_monotonic_us() + END_US;

    for (int i = 0; i < children->max; i++) {
        if (children->pids[i]) {
            kill(children->pids[i], SIGTERM);   /* It may be starting. */
        }
    }
    for (reap_children(children); children->n; reap_children(children)) {
        for (int i = 0; i < children->max; i++) {
            if (children->pids[i] && clock_monotonic_us() > deadline) {
                kill(children->pids[i], SIGKILL);
            }
        }
        poll(NULL, 0, 10);
    }
    free(children->pids);
    free(children->central);
}

/* In the new process: detaches standard input and output, which are the
 * central server's, and runs the program. */
static void
become_group_server(const struct children *children, pid_t parent)
{
    const struct ps_server_config *config = children->config;
    char reconnect[32], heartbeat[32];
    const char *argv[16] = {
        config->group_program, "server", "--central", children->central,
        "--address", config->address, "--reconnect-timeout", reconnect,
        "--heartbeat-timeout", heartbeat,
    };
    int null = open("/dev/null", O_RDWR);

    snprintf(reconnect, sizeof reconnect, "%.6f",
             config->reconnect_timeout_us * 1e-6);
    snprintf(heartbeat, sizeof heartbeat, "%.6f",
             config->heartbeat_timeout_us * 1e-6);
    if (config->congestion) {
        argv[10] = "--congestion";
        argv[11] = config->congestion;
    }
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0
        && dup2(null, STDOUT_FILENO) >= 0
        && !prctl(PR_SET_PDEATHSIG, SIGTERM) && getppid() == parent) {
        execv(config->group_program, (char *const *) argv);
    }
    _exit(127);
}

static char *
start_child(struct children *children)
{
    pid_t parent = getpid(), pid = fork();

    if (!pid) {
        become_group_server(children, parent);
    }
    if (pid < 0) {
        return message("group server: cannot start one (%s)", strerror(errno));
    }
    for (int i = 0; i < children->max; i++) {
        if (!children->pids[i]) {
            children->pids[i] = pid;
            break;
        }
    }
    children->n++;
    children->n_started++;
    fprintf(stderr, "server: group server is process %d\n", (int) pid);
    return NULL;
}

/* Starts as many as are missing from 'n'.  Returns NULL or a message. */
static char *
children_keep(struct children *children, int n)
{
    char *error = NULL;

    reap_children(children);
    n = n < children->max ? n : children->max;
    while (!error && children->n < n) {
        error = children->n_started < children->max + MAX_STARTS
                ? start_child(children)
                : message("group servers: giving up after %d starts",
                          children->n_started);
    }
    return error;
}

/* Kills 'pid' if it is one of them. */
static void
children_end(struct children *children, pid_t pid)
{
    for (int i = 0; i < children->max; i++) {
        if (pid > 0 && children->pids[i] == pid) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            children->pids[i] = 0;
            children->n--;
        }
    }
}

static struct host *
central_host(const struct server *server, const struct conn *conn)
{
    return &server->central->hosts[conn->host - 1];
}

static char *
central_create(struct server *server, uint16_t port)
{
    const struct ps_server_config *config = server->config;
    struct central *c = server->central = allocate(1, sizeof *c);

    c->n_hosts = config->n_workers + MAX_EXTRA_HOSTS;
    c->hosts = allocate(c->n_hosts, sizeof *c->hosts);
    c->groups = allocate(config->n_workers, sizeof *c->groups);
    c->paused = allocate(config->n_workers, sizeof *c->paused);
    for (int i = 0; i < config->n_workers; i++) {
        c->groups[i].host = -1;
    }
    if (config->group_program) {
        c->children = (struct children) {
            .config = config, .max = config->n_workers + 1,
            .pids = allocate(config->n_workers + 1, sizeof(pid_t)),
            .central = message(strchr(config->address, ':') ? "[%s]:%u"
                                                            : "%s:%u",
                               config->address, port),
        };
        return children_keep(
            &c->children, (config->sync->groups ? config->sync->groups : 1)
                          + SPARE_HOSTS);
    }
    return NULL;
}

/* Ends all group servers. */
static void
central_destroy(struct server *server)
{
    struct central *c = server->central;

    if (c) {
        for (int i = 0; i < c->n_hosts; i++) {
            if (c->hosts[i].conn) {
                conn_send_last(c->hosts[i].conn,
                               server->failure ? FRAME_ABORT : FRAME_BYE,
                               server->failure);
                conn_close(server, c->hosts[i].conn);
                free(c->hosts[i].address);
            }
        }
        children_destroy(&c->children);
        free(c->hosts);
        free(c->groups);
        free(c->paused);
        free(c);
    }
}

static int
n_present(const struct central *c)
{
    int n = 0;

    for (int i = 0; i < c->n_hosts; i++) {
        n += c->hosts[i].conn != NULL;
    }
    return n;
}

/* Losing group servers. */

/* Forgets the group server of 'conn'; takes ownership of 'why', which may be
 * null. */
static void
central_drop(struct server *server, struct conn *conn, char *why)
{
    struct central *c = server->central;
    struct host *host = central_host(server, conn);

    fprintf(stderr, "server: group server at %s lost at iteration %"PRIu64
            " (%s)\n", host->address, server->iteration,
            why ? why : "closed");
    free(why);
    if (host->group >= 0) {
        c->groups[host->group] = (struct hosting) { .host = -1 };
    }
    children_end(&c->children, host->pid);
    free(host->address);
    memset(host, 0, sizeof *host);
    conn_close(server, conn);
    if (++c->n_losses > MAX_LOSSES) {
        server_fail(server, message("group servers were lost %d times",
                                    c->n_losses));
    }
}

/* The job has rewound: drops the group servers with a group, since their
 * gradients, also those under way, are of no use. */
static void
central_rewind(struct server *server)
{
    struct central *c = server->central;

    for (int i = 0; i < c->n_hosts; i++) {
        if (c->hosts[i].conn && c->hosts[i].group >= 0) {
            central_drop(server, c->hosts[i].conn,
                         duplicate("the job rewinds"));
        }
    }
}

/* Assigning groups. */

static void
send_group(struct server *server, int group)
{
    struct central *c = server->central;
    const struct group_plan *p = groups_plan(server->sync);
    struct frame frame = {
        .type = FRAME_GROUP,
        .group = {
            .generation = c->groups[group].generation,
            .n_parameters = server->shard.n, .n = p->n[group],
        },
    };
    struct conn *conn = c->hosts[c->groups[group].host].conn;
    uint8_t *body = link_send_space(&conn->link, &frame);

    for (int i = 0; i < p->n[group]; i++) {
        uint32_t rank = p->order[p->first[group] + i];

        memcpy(body + 4 * i, &rank, 4);
        c->paused[rank] = false;
    }
    link_flush(&conn->link);            /* An error shows when receiving. */
}

/* Sends the paused workers of 'group' to its group server if they have
 * changed.  A pause may be sent at any time, since the group server cannot
 * have gone on without the worker.  The end of a pause is sent between two
 * steps, so that both servers agree on which workers made each mean. */
static void
send_rests(struct server *server, int group)
{
    struct central *c = server->central;
    const struct group_plan *p = groups_plan(server->sync);
    struct frame frame = { .type = FRAME_PAUSED,
                           .paused.generation = c->groups[group].generation };
    struct conn *conn = c->hosts[c->groups[group].host].conn;
    bool known = true;
    uint8_t *body;

    for (int i = 0; i < p->n[group]; i++) {
        int rank = p->order[p->first[group] + i];
        bool paused = groups_is_paused(server->sync, rank);

        known = known && c->paused[rank] == paused;
        c->paused[rank] = paused;
        frame.paused.n += paused;
    }
    if (known) {
        return;
    }
    if (!link_has_space(&conn->link, 4 * (size_t) frame.paused.n)) {
        central_drop(server, conn, duplicate("does not read"));
        return;
    }
    body = link_send_space(&conn->link, &frame);
    for (int i = 0; i < p->n[group]; i++) {
        uint32_t rank = p->order[p->first[group] + i];

        if (c->paused[rank]) {
            memcpy(body, &rank, 4);
            body += 4;
        }
    }
    link_flush(&conn->link);            /* An error shows when receiving. */
}

static void
send_moves(struct server *server, int group)
{
    const struct central *c = server->central;
    const struct group_plan *p = groups_plan(server->sync);
    const char *address = c->hosts[c->groups[group].host].address;

    for (int i = 0; i < p->n[group]; i++) {
        int rank = p->order[p->first[group] + i];
        struct conn *conn = server_find_conn(server, rank, false);
        struct frame frame = {
            .type = FRAME_MOVE,
            .move = {
                .generation = c->groups[group].generation,
                .n_counted = groups_counted(server->sync, rank),
            },
            .payload_length = strlen(address),
        };

        if (!conn || conn->bye) {
            continue;
        }
        if (!link_has_space(&conn->link, frame.payload_length)) {
            server_fail(server, message("worker %d does not read its "
                                        "messages", rank));
            return;
        }
        link_send_copy(&conn->link, &frame, address);
        link_flush(&conn->link);
    }
}

static int
find_free_host(const struct central *c)
{
    for (int i = 0; i < c->n_hosts; i++) {
        const struct conn *conn = c->hosts[i].conn;

        if (conn && c->hosts[i].group < 0
            && link_has_space(&conn->link, FRAME_MAX_UPDATE)) {
            return i;
        }
    }
    return -1;
}

/* Assigns hosts to groups without one, and sends the paused workers.  Returns
 * the number of groups that still lack a host. */
static int
assign_hosts(struct server *server)
{
    const struct group_plan *p = groups_plan(server->sync);
    struct central *c = server->central;
    int n_lacking = 0;

    for (int g = 0; g < p->n_groups && !server->over; g++) {
        int host;

        if (c->groups[g].host >= 0) {
            continue;
        }
        host = find_free_host(c);
        if (host < 0) {
            n_lacking++;
            continue;
        }
        c->hosts[host].group = g;
        c->hosts[host].owed = false;
        c->groups[g].host = host;
        c->groups[g].generation = ++c->generation;
        send_group(server, g);
        send_moves(server, g);
    }
    for (int g = 0; g < p->n_groups && !server->over; g++) {
        if (c->groups[g].host >= 0) {
            send_rests(server, g);
        }
    }
    return n_lacking;
}

/* The scheme has a new plan: no group has a host. */
static void
unassign_hosts(struct server *server)
{
    struct central *c = server->central;

    for (int i = 0; i < c->n_hosts; i++) {
        c->hosts[i].group = -1;
        c->hosts[i].owed = false;
    }
    for (int g = 0; g < server->config->n_workers; g++) {
        c->groups[g] = (struct hosting) { .host = -1 };
    }
    c->n_plans = groups_plan(server->sync)->number;
}

static void
give_weights(struct server *server)
{
    struct central *c = server->central;

    for (int i = 0; i < c->n_hosts; i++) {
        struct host *host = &c->hosts[i];
        struct frame frame = { .type = FRAME_WEIGHTS,
                               .weights.n = server->shard.n };

        if (!host->conn || !host->owed
            || !groups_ready(server->sync, host->group)) {
            continue;
        }
        host->owed = false;
        server->class->ready(server->sync, 0, &frame.weights.iteration,
                             &frame.weights.loss);
        link_send(&host->conn->link, &frame, sync_weights(server->sync));
        link_flush(&host->conn->link); /* An error shows when receiving. */
    }
}

/* Drops silent group servers, and fails if a group lacks a host for too
 * long. */
static void
expire_hosts(struct server *server, int n_lacking)
{
    struct central *c = server->central;
    int64_t now = clock_monotonic_us();

    for (int i = 0; i < c->n_hosts; i++) {
        const struct host *host = &c->hosts[i];

        if (host->conn && heartbeat_is_silent(&host->heartbeat, now)) {
            central_drop(server, host->conn,
                         message("silent for %"PRId64" s",
                                 heartbeat_silence_s(&host->heartbeat, now)));
        }
    }
    if (!n_lacking) {
        c->lacking_us = 0;
    } else if (!c->lacking_us) {
        c->lacking_us = now;
    } else if (now - c->lacking_us > WAIT_US) {
        server_fail(server, message("%d group servers of %d are missing for "
                                    "%d s", n_lacking,
                                    groups_plan(server->sync)->n_groups,
                                    WAIT_US / 1000000));
    }
}

static void
central_run(struct server *server)
{
    struct central *c = server->central;
    int n_lacking = 0;

    if (!server->sync || server->over || server->ending) {
        return;
    }
    if (server->begun && server_complete(server)) {
        if (c->n_plans != groups_plan(server->sync)->number) {
            unassign_hosts(server);
        }
        n_lacking = assign_hosts(server);
        give_weights(server);
        training_answer(server);
    }
    if (c->children.pids) {
        char *error = children_keep(
            &c->children, groups_wanted(server->sync) + SPARE_HOSTS);

        if (error) {
            server_fail(server, error);
        }
    } else if (n_present(c)) {
        groups_limit(server->sync, n_present(c));
    }
    expire_hosts(server, n_lacking);
}

static bool
central_has_group(const struct server *server, int rank)
{
    const struct central *c = server->central;

    return c->n_plans == groups_plan(server->sync)->number
           && c->groups[groups_plan(server->sync)->group[rank]].host >= 0;
}

/* Frames of group servers, and of workers about their groups. */

static const struct dispatcher central_dispatcher;

static char *
central_end_enlist(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct central *c = conn->server->central;

    for (int i = 0; i < c->n_hosts; i++) {
        struct host *host = &c->hosts[i];

        if (!host->conn) {
            *host = (struct host) {
                .conn = conn, .group = -1, .pid = link->frame.enlist.pid,
                .address = message("%.*s", (int) link->frame.payload_length,
                                   (const char *) link->payload),
            };
            heartbeat_start(&host->heartbeat,
                            conn->server->config->heartbeat_timeout_us,
                            clock_monotonic_us());
            conn->host = i + 1;
            conn->dispatcher = &central_dispatcher;
            fprintf(stderr, "server: group server at %s has enlisted\n",
                    host->address);
            central_run(conn->server);
            return NULL;
        }
    }
    return message("there are %d group servers already", c->n_hosts);
}

/* The mean of a group. */
static char *
begin_mean(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;
    const struct central *c = server->central;
    const struct host *host = central_host(server, conn);
    const struct frame_mean *mean = &link->frame.mean;

    if (host->group < 0 || host->owed || mean->n != server->shard.n
        || c->groups[host->group].generation != mean->generation
        || !groups_ready(server->sync, host->group)) {
        return message("mean of %u values, generation %"PRIu64": not allowed "
                       "now", mean->n, mean->generation);
    }
    link_set_payload(link, groups_inbox(server->sync, host->group));
    return NULL;
}

static char *
end_mean(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;
    struct host *host = central_host(server, conn);
    char *error = NULL;

    heartbeat_heard(&host->heartbeat, clock_monotonic_us());
    if (!server->ending) {
        error = groups_push(server->sync, host->group,
                            link->frame.mean.n_samples, link->frame.mean.loss);
        host->owed = !error;
        if (!error) {
            training_keep(server);
        }
    }
    if (!error) {
        central_run(server);
    }
    return error;
}

static char *
end_heartbeat(void *conn_, struct link *link)
{
    struct conn *conn = conn_;

    heartbeat_heard(&central_host(conn->server, conn)->heartbeat,
                    clock_monotonic_us());
    conn_send_heartbeat(conn->server, conn);
    central_run(conn->server);
    return NULL;
}

static const struct dispatcher central_dispatcher = {
    .may_receive = conn_may_receive,
    .handlers = {
        [FRAME_MEAN] = { begin_mean, end_mean },
        [FRAME_HEARTBEAT] = { .end = end_heartbeat },
    },
};

static char *
central_begin(void *conn_, struct link *link)
{
    const struct conn *conn = conn_;
    const struct server *server = conn->server;
    enum frame_type type = link->frame.type;
    bool allowed = server->begun
                   && (type == FRAME_PULL || server_complete(server))
                   && (type == FRAME_LOST || !conn->waiting);

    if (type == FRAME_ENLIST) {
        link_keep_payload(link);
        allowed = link->frame.payload_length;
    }
    return allowed ? NULL
                   : message("%s: not allowed now", frame_type_name(type));
}

/* A worker has lost the group server of the frame's generation. */
static char *
central_end_lost(void *conn_, struct link *link)
{
    const struct conn *conn = conn_;
    struct server *server = conn->server;
    struct central *c = server->central;
    const struct group_plan *p = groups_plan(server->sync);
    const struct hosting *hosting = &c->groups[p->group[conn->rank]];

    if (c->n_plans == groups_plan(server->sync)->number && hosting->host >= 0
        && hosting->generation == link->frame.lost.generation) {
        central_drop(server, c->hosts[hosting->host].conn,
                     message("worker %d lost it", conn->rank));
    }
    central_run(server);
    return NULL;
}

/* A worker asks for weights.  A paused one is resumed: it gets them when the
 * next step of its group begins. */
static char *
central_end_pull(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;
    char *error = NULL;

    conn->waiting = !conn->bye;
    if (groups_is_paused(server->sync, conn->rank) && !server->ending) {
        error = groups_resume_worker(server->sync, conn->rank);
    }
    if (!error) {
        central_run(server);
    }
    return error;
}

static char *
central_end_rest(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;
    char *error = NULL;

    if (!server->ending) {
        error = groups_pause_worker(server->sync, conn->rank);
    }
    if (!error) {
        central_run(server);
    }
    return error;
}

static char *
central_end(void *conn, struct link *link)
{
    switch (link->frame.type) {
    case FRAME_ENLIST:
        return central_end_enlist(conn, link);
    case FRAME_LOST:
        return central_end_lost(conn, link);
    case FRAME_PULL:
        return central_end_pull(conn, link);
    default:
        return central_end_rest(conn, link);
    }
}

const struct central_class central_server = {
    .create = central_create,
    .destroy = central_destroy,
    .run = central_run,
    .drop = central_drop,
    .rewind = central_rewind,
    .has_group = central_has_group,
    .begin = central_begin,
    .end = central_end,
};
