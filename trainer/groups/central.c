/* SPDX-License-Identifier: Apache-2.0 */

/* What makes a server a central one: group servers, and who pushes to which
 * of them.
 *
 * Each group has a generation while it has a group server.  Workers and group
 * servers say it with what they send, so that nothing of an earlier one is
 * taken for something of this one.  A group server that is lost is not asked
 * what it had: what has been counted is known here, and its workers are told
 * where to go and how many of their gradients count. */

#include "trainer/groups/central-private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/groups/group-children.h"
#include "trainer/process/report.h"
#include "trainer/schemes/group-plan.h"
#include "trainer/schemes/groups.h"

#define WAIT_US 60000000        /* For a group server that is needed. */
#define MAX_LOSSES 100          /* More is something else than bad luck. */
#define SPARE_HOSTS 1           /* For when one is lost. */

char *
central_create(struct server *server, uint16_t port)
{
    const struct ps_server_config *config = server->config;
    struct central *c = server->central = allocate(1, sizeof *c);

    c->n_hosts = config->n_workers + MAX_EXTRA_HOSTS;
    c->hosts = allocate(c->n_hosts, sizeof *c->hosts);
    c->groups = allocate(config->n_workers, sizeof *c->groups);
    c->rests = allocate(config->n_workers, sizeof *c->rests);
    for (int i = 0; i < config->n_workers; i++) {
        c->groups[i].host = -1;
    }
    if (config->group_program) {
        c->children = group_children_create(config, port);
        return group_children_keep(
            c->children, (config->sync->groups ? config->sync->groups : 1)
                         + SPARE_HOSTS);
    }
    return NULL;
}

/* Tells all group servers that it is over. */
void
central_destroy(struct server *server)
{
    struct central *c = server->central;

    if (c) {
        for (int i = 0; i < c->n_hosts; i++) {
            if (c->hosts[i].peer) {
                peer_send_last(c->hosts[i].peer,
                               server->failure ? FRAME_ABORT : FRAME_BYE,
                               server->failure);
                peer_close(server, c->hosts[i].peer);
                free(c->hosts[i].address);
            }
        }
        group_children_destroy(c->children);
        free(c->hosts);
        free(c->groups);
        free(c->rests);
        free(c);
    }
}

static int
n_present(const struct central *c)
{
    int n = 0;

    for (int i = 0; i < c->n_hosts; i++) {
        n += c->hosts[i].peer != NULL;
    }
    return n;
}

/* Losing group servers. */

/* The group server of 'peer' is not one any more; takes ownership of 'why',
 * which may be null. */
void
central_drop(struct server *server, struct peer *peer, char *why)
{
    struct central *c = server->central;
    struct host *host = central_host(server, peer);

    fprintf(stderr, "server: group server at %s is gone at iteration %"PRIu64
            " (%s)\n", host->address, server->iteration,
            why ? why : "closed");
    free(why);
    if (host->group >= 0) {
        c->groups[host->group] = (struct hosting) { .host = -1 };
    }
    group_children_end(c->children, host->pid);
    free(host->address);
    memset(host, 0, sizeof *host);
    peer_close(server, peer);
    if (++c->n_losses > MAX_LOSSES) {
        server_fail(server, message("group servers were lost %d times",
                                    c->n_losses));
    }
}

/* The job has gone back: what group servers have is of no use, be it on its
 * way to us. */
void
central_rewind(struct server *server)
{
    struct central *c = server->central;

    for (int i = 0; i < c->n_hosts; i++) {
        if (c->hosts[i].peer && c->hosts[i].group >= 0) {
            central_drop(server, c->hosts[i].peer,
                         duplicate("the job goes back"));
        }
    }
}

/* Giving groups to them. */

static void
send_group(struct server *server, int group)
{
    struct central *c = server->central;
    const struct group_plan *p = groups_plan(server->sync);
    struct frame frame = {
        .type = FRAME_GROUP, .iteration = c->groups[group].generation,
        .first = server->shard.n, .n = p->n[group],
    };
    struct peer *peer = c->hosts[c->groups[group].host].peer;
    uint8_t *body = link_send_space(&peer->link, &frame);

    for (int i = 0; i < p->n[group]; i++) {
        uint32_t rank = p->order[p->first[group] + i];

        memcpy(body + 4 * i, &rank, 4);
        c->rests[rank] = false;
    }
    link_flush(&peer->link);            /* An error shows when receiving. */
}

/* Tells the group server of 'group' who of it rests, unless it knows.  It may
 * hear of a rest at any time, since it cannot have gone on without the worker;
 * of the end of one it hears between two steps, so that here and there the
 * same ones are taken to have made each mean. */
static void
send_rests(struct server *server, int group)
{
    struct central *c = server->central;
    const struct group_plan *p = groups_plan(server->sync);
    struct frame frame = {
        .type = FRAME_RESTS, .iteration = c->groups[group].generation,
    };
    struct peer *peer = c->hosts[c->groups[group].host].peer;
    bool known = true;
    uint8_t *body;

    for (int i = 0; i < p->n[group]; i++) {
        int rank = p->order[p->first[group] + i];
        bool rests = groups_rests(server->sync, rank);

        known = known && c->rests[rank] == rests;
        c->rests[rank] = rests;
        frame.n += rests;
    }
    if (known) {
        return;
    }
    if (!link_has_room(&peer->link, 4 * (size_t) frame.n)) {
        central_drop(server, peer, duplicate("does not read"));
        return;
    }
    body = link_send_space(&peer->link, &frame);
    for (int i = 0; i < p->n[group]; i++) {
        uint32_t rank = p->order[p->first[group] + i];

        if (c->rests[rank]) {
            memcpy(body, &rank, 4);
            body += 4;
        }
    }
    link_flush(&peer->link);            /* An error shows when receiving. */
}

static void
send_moves(struct server *server, int group)
{
    const struct central *c = server->central;
    const struct group_plan *p = groups_plan(server->sync);
    const char *address = c->hosts[c->groups[group].host].address;

    for (int i = 0; i < p->n[group]; i++) {
        int rank = p->order[p->first[group] + i];
        struct peer *peer = server_find_peer(server, rank, false);
        struct frame frame = {
            .type = FRAME_MOVE, .iteration = c->groups[group].generation,
            .sequence = groups_counted(server->sync, rank),
            .body_length = strlen(address),
        };

        if (!peer || peer->bye) {
            continue;
        }
        if (!link_has_room(&peer->link, frame.body_length)) {
            server_fail(server, message("worker %d does not read its "
                                        "messages", rank));
            return;
        }
        link_send_copy(&peer->link, &frame, address);
        link_flush(&peer->link);
    }
}

static int
find_free_host(const struct central *c)
{
    for (int i = 0; i < c->n_hosts; i++) {
        const struct peer *peer = c->hosts[i].peer;

        if (peer && c->hosts[i].group < 0
            && link_has_room(&peer->link, FRAME_MAX_UPDATE)) {
            return i;
        }
    }
    return -1;
}

/* Gives hosts to groups that have none, and tells hosts who rests.  Returns
 * how many groups lack one still. */
static int
assign(struct server *server)
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

/* The scheme has another plan, whose groups are others. */
static void
unassign(struct server *server)
{
    struct central *c = server->central;

    for (int i = 0; i < c->n_hosts; i++) {
        c->hosts[i].group = -1;
        c->hosts[i].owed = false;
    }
    for (int g = 0; g < server->config->n_workers; g++) {
        c->groups[g] = (struct hosting) { .host = -1 };
    }
    c->n_plans = groups_n_plans(server->sync);
}

static void
give_weights(struct server *server)
{
    struct central *c = server->central;

    for (int i = 0; i < c->n_hosts; i++) {
        struct host *host = &c->hosts[i];
        struct frame frame = {
            .type = FRAME_WEIGHTS, .n = server->shard.n,
        };
        uint64_t iteration;

        if (!host->peer || !host->owed
            || !groups_ready(server->sync, host->group)) {
            continue;
        }
        host->owed = false;
        server->class->ready(server->sync, 0, &iteration, &frame.value);
        link_send(&host->peer->link, &frame,
                  server->class->weights(server->sync));
        link_flush(&host->peer->link);  /* An error shows when receiving. */
    }
}

/* Ends group servers that say nothing, and a wait that is too long. */
static void
expire(struct server *server, int n_lacking)
{
    struct central *c = server->central;
    int64_t now = report_monotonic_us();
    int64_t deadline = server->config->deadline_us;

    for (int i = 0; i < c->n_hosts; i++) {
        if (c->hosts[i].peer && deadline
            && now - c->hosts[i].heard_us > deadline) {
            central_drop(server, c->hosts[i].peer,
                         message("silent for %"PRId64" s",
                                 (now - c->hosts[i].heard_us) / 1000000));
        }
    }
    if (!n_lacking) {
        c->lacking_us = 0;
    } else if (!c->lacking_us) {
        c->lacking_us = now;
    } else if (now - c->lacking_us > WAIT_US) {
        server_fail(server, message("%d group servers of %d are lacking for "
                                    "%d s", n_lacking,
                                    groups_plan(server->sync)->n_groups,
                                    WAIT_US / 1000000));
    }
}

void
central_run(struct server *server)
{
    struct central *c = server->central;
    int n_lacking = 0;

    if (!server->sync || server->over || server->ending) {
        return;
    }
    if (server->begun && server_complete(server)) {
        if (c->n_plans != groups_n_plans(server->sync)) {
            unassign(server);
        }
        n_lacking = assign(server);
        give_weights(server);
        training_answer(server);
    }
    if (c->children) {
        char *error = group_children_keep(
            c->children, groups_wanted(server->sync) + SPARE_HOSTS);

        if (error) {
            server_fail(server, error);
        }
    } else if (n_present(c)) {
        groups_limit(server->sync, n_present(c));
    }
    expire(server, n_lacking);
}

bool
central_has_group(const struct server *server, int rank)
{
    const struct central *c = server->central;

    return c->n_plans == groups_n_plans(server->sync)
           && c->groups[groups_plan(server->sync)->group[rank]].host >= 0;
}
