/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trainer/backend/backend.h"
#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/ps/store.h"
#include "trainer/process/report.h"
#include "trainer/schemes/sync.h"

#define MAX_STRANGERS 8         /* Connections without a hello. */
#define N_FIXED 4               /* Descriptors that are not peers'. */

void
server_fail(struct server *server, char *why)
{
    if (server->failure) {
        free(why);
        return;
    }
    server->failure = why;
    server->over = true;
    for (int i = 0; i < server->n_peers; i++) {
        if (server->peers[i].rank >= 0) {
            peer_send_last(&server->peers[i], FRAME_ABORT, why);
        }
    }
}

static struct peer *
unused_peer(struct server *server)
{
    for (int i = 0; i < server->n_peers; i++) {
        if (server->peers[i].link.fd < 0) {
            return &server->peers[i];
        }
    }
    return NULL;
}

static void
server_accept(struct server *server, int listener)
{
    struct peer *peer = unused_peer(server);
    int fd = peer ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    int error;

    if (fd < 0) {
        return;
    }
    error = link_tune(fd, server->config->congestion);
    if (error) {
        close(fd);
        server_fail(server, message("connection: %s", strerror(error)));
        return;
    }
    link_init(&peer->link, fd);
    peer->name = address_peer(fd);
    peer->since_us = report_monotonic_us();
}

static void
fill_fds(struct server *server, struct pollfd *fds)
{
    struct control *control = server->config->control;
    bool room = unused_peer(server) != NULL;

    fds[0].fd = control_signal_fd(control);
    fds[1].fd = control_input_fd(control);
    fds[2].fd = room ? server->listener : -1;
    fds[3].fd = room ? server->control_listener : -1;
    for (int i = 0; i < N_FIXED; i++) {
        fds[i].events = POLLIN;
        fds[i].revents = 0;
    }
    for (int i = 0; i < server->n_peers; i++) {
        const struct peer *peer = &server->peers[i];

        fds[N_FIXED + i].fd = peer->link.fd;
        fds[N_FIXED + i].events = link_events(&peer->link);
        if (!peer_can_answer(peer)) {
            fds[N_FIXED + i].events &= ~POLLIN;
        }
        fds[N_FIXED + i].revents = 0;
    }
}

static void
server_loop(struct server *server, struct pollfd *fds)
{
    struct control *control = server->config->control;

    while (!server->over) {
        fill_fds(server, fds);
        poll(fds, N_FIXED + server->n_peers, 500);
        if (fds[0].revents || fds[1].revents) {
            control_run(control);
        }
        if (control_ended(control)) {
            break;
        }
        for (int i = 0; i < server->n_peers && !server->over; i++) {
            struct peer *peer = &server->peers[i];

            if (peer->link.fd >= 0 && fds[N_FIXED + i].revents
                && peer->link.fd == fds[N_FIXED + i].fd) {
                if (!link_idle(&peer->link)) {
                    link_flush(&peer->link);
                }
                peer_run(server, peer);
            }
        }
        for (int i = 2; i < N_FIXED; i++) {
            if (fds[i].fd >= 0 && fds[i].revents) {
                server_accept(server, fds[i].fd);
            }
        }
        server_expire(server);
        if (server->central) {
            central_run(server);
        }
    }
}

static void
server_uninit(struct server *server)
{
    central_destroy(server);
    for (int i = 0; i < server->n_peers; i++) {
        peer_close(server, &server->peers[i]);
    }
    free(server->peers);
    free(server->members);
    free(server->scratch);
    if (server->listener >= 0) {
        close(server->listener);
    }
    if (server->control_listener >= 0) {
        close(server->control_listener);
    }
    if (server->sync) {
        server->class->destroy(server->sync);
    }
    store_destroy(server->store);
    backend_close(server->backend);
}

static void
server_init(struct server *server, const struct ps_server_config *config)
{
    server->config = config;
    server->class = config->sync->class;
    server->listener = server->control_listener = -1;
    server->saved = FRAME_NONE;

    /* A worker has two connections, and two more while it comes back. */
    server->n_peers = 4 * config->n_workers + MAX_STRANGERS;
    if (server->class == &sync_groups) {
        server->n_peers += config->n_workers + MAX_EXTRA_HOSTS;
    }
    server->peers = allocate(server->n_peers, sizeof *server->peers);
    server->members = allocate(config->n_workers, sizeof *server->members);
    server->scratch = allocate(FRAME_MAX_UPDATE, sizeof *server->scratch);
    for (int i = 0; i < server->n_peers; i++) {
        server->peers[i].link.fd = -1;
        server->peers[i].rank = -1;
    }
}

char *
ps_server_run(const struct ps_server_config *config)
{
    struct server server = { .over = false };
    struct pollfd *fds;
    uint16_t port;
    char *error;

    if (backend_open(&backend_cpu, 0, config->n_threads, &server.backend)) {
        return message("server: no backend");
    }
    server_init(&server, config);
    error = address_listen(config->address, config->port, &server.listener,
                           &port);
    if (!error) {
        error = address_listen(config->address, config->control_port,
                               &server.control_listener,
                               &server.control_port);
    }
    if (!error && server.class == &sync_groups) {
        error = central_create(&server, port);
    }
    if (!error) {
        report_listening(config->address, port);
        fds = allocate(N_FIXED + server.n_peers, sizeof *fds);
        server_loop(&server, fds);
        free(fds);
        error = server.failure;
    }
    server_uninit(&server);
    if (!error) {
        report_done(&(struct report_progress) {
            .iteration = server.iteration, .loss = NAN, .accuracy = NAN,
        }, server.n_sent, server.n_received);
    }
    return error;
}
