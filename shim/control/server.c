/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/control/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/buffer.h"
#include "shim/control/server-private.h"
#include "shim/classify/miss.h"

#define CAPTURE_MS 10           /* Between two looks at what was captured. */

/* Does somebody listen at 'address'? */
static bool
is_alive(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool alive;

    alive = fd >= 0 && !connect(fd, (const struct sockaddr *) address,
                                sizeof *address);
    if (fd >= 0) {
        close(fd);
    }
    return alive;
}

static int
bind_private(int fd, const struct sockaddr_un *address)
{
    mode_t old = umask(0177);
    int error = bind(fd, (const struct sockaddr *) address, sizeof *address)
                ? errno : 0;

    umask(old);
    return error;
}

static char *
listen_at(const char *path, int *fdp)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct stat st;
    int fd, error;

    if (!*path || strlen(path) >= sizeof address.sun_path) {
        return message("%s: not a path of 1 to 107 bytes", path);
    }
    strcpy(address.sun_path, path);
    if (!lstat(path, &st)) {
        if (!S_ISSOCK(st.st_mode)) {
            return message("%s: exists and is not a socket", path);
        }
        if (is_alive(&address)) {
            return message("%s: another shim listens there", path);
        }
        unlink(path);
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    error = fd < 0 ? errno : bind_private(fd, &address);
    if (!error && listen(fd, SERVER_MAX_PEERS)) {
        error = errno;
    }
    if (error) {
        if (fd >= 0) {
            close(fd);
        }
        return message("%s: %s", path, strerror(error));
    }
    *fdp = fd;
    return NULL;
}

char *
server_create(const char *path, const struct server_config *config,
              struct server **serverp)
{
    struct server *s = allocate(1, sizeof *s);
    char *error;

    *serverp = NULL;
    s->config = *config;
    for (int i = 0; i < SERVER_MAX_PEERS; i++) {
        s->peers[i].fd = -1;
    }
    s->path = message("%s%s", path, config->succeeds ? ".new" : "");
    s->published_path = config->succeeds ? duplicate(path) : NULL;
    error = listen_at(s->path, &s->fd);
    if (error) {
        free(s->published_path);
        free(s->path);
        free(s);
        return error;
    }
    *serverp = s;
    return NULL;
}

/* Returns NULL or a malloc()'d message. */
char *
server_publish(struct server *s)
{
    if (!s->published_path) {
        return NULL;
    }
    if (rename(s->path, s->published_path)) {
        return message("%s: %s", s->published_path, strerror(errno));
    }
    free(s->path);
    s->path = s->published_path;
    s->published_path = NULL;
    return NULL;
}

void
server_abandon(struct server *s)
{
    free(s->path);
    s->path = NULL;
}

void
server_destroy(struct server *s)
{
    if (s) {
        for (int i = 0; i < SERVER_MAX_PEERS; i++) {
            if (s->peers[i].fd >= 0) {
                server_peer_close(&s->peers[i]);
            }
        }
        close(s->fd);
        if (s->path) {
            unlink(s->path);
        }
        free(s->published_path);
        free(s->path);
        free(s);
    }
}

static bool
may_talk(int fd)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    return (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size)
            && (!cred.uid || cred.uid == geteuid()));
}

static struct peer *
free_peer(struct server *s)
{
    for (int i = 0; i < SERVER_MAX_PEERS; i++) {
        if (s->peers[i].fd < 0) {
            return &s->peers[i];
        }
    }
    return NULL;
}

static void
accept_peers(struct server *s)
{
    int fd;

    while ((fd = accept4(s->fd, NULL, NULL,
                         SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct peer *p = may_talk(fd) ? free_peer(s) : NULL;

        if (p) {
            p->fd = fd;
        } else {
            close(fd);
        }
    }
}

int
server_timeout(const struct server *s, int max)
{
    return s->captures && max > CAPTURE_MS ? CAPTURE_MS : max;
}

/* Fills in what to wait for, at most 'max' elements, which should be
 * SERVER_MAX_FDS.  Returns how many. */
int
server_wait(struct server *s, struct pollfd *fds, int max)
{
    int n = 0;

    fds[n++] = (struct pollfd) { .fd = s->fd, .events = POLLIN };
    fds[n++] = (struct pollfd) { .fd = miss_fd(s->config.misses),
                                 .events = POLLIN };
    for (int i = 0; i < SERVER_MAX_PEERS && n < max; i++) {
        struct peer *p = &s->peers[i];
        bool full = p->closing || buffer_size(&p->tx) >= SHIM_MAX_MESSAGE;

        if (p->fd >= 0) {
            fds[n++] = (struct pollfd) {
                .fd = p->fd,
                .events = (full ? 0 : POLLIN)
                          | (buffer_size(&p->tx) ? POLLOUT : 0),
            };
        }
    }
    return n;
}

/* Does all there is to do, without waiting. */
void
server_run(struct server *s)
{
    accept_peers(s);
    server_send_events(s);
    for (int i = 0; i < SERVER_MAX_PEERS; i++) {
        if (s->peers[i].fd >= 0) {
            server_peer_run(s, &s->peers[i]);
        }
    }
}
