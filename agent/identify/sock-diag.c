/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/sock-diag.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "byte-order.h"
#include "util.h"

#define BUFFER_SIZE (64 * 1024)
#define STATE_ESTABLISHED 1 /* The kernel's include/net/tcp_states.h. */

/* Returns the fd or a negative errno value. */
static int
open_socket(void)
{
    static const struct timeval timeout = { .tv_usec = 500 * 1000 };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0) {
        return -errno;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return fd;
}

static int
request_dump(int fd, uint8_t family)
{
    struct {
        struct nlmsghdr nlh;
        struct inet_diag_req_v2 req;
    } msg = { .nlh = { .nlmsg_len = sizeof msg,
                       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
              .req = { .sdiag_family = family,
                       .sdiag_protocol = IPPROTO_TCP,
                       .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                       .idiag_states = 1 << STATE_ESTABLISHED } };

    return send(fd, &msg, sizeof msg, 0) == sizeof msg ? 0 : errno;
}

static bool
is_mapped(const __be32 a[4])
{
    return !a[0] && !a[1] && a[2] == htonl(0xffff);
}

/* Stores the remote address of 'id' in '*c'.  Returns false if the connection
 * does not leave the host. */
static bool
get_remote(uint8_t family, const struct inet_diag_sockid *id,
           struct sock_diag_connection *c)
{
    static const __be32 loopback6[4] = { 0, 0, 0, CONSTANT_HTONL(1) };
    size_t skip = 0;

    if (family == AF_INET6 && is_mapped(id->idiag_dst)) {
        family = AF_INET;
        skip = 3;
    }
    c->family = family;
    memcpy(c->remote, &id->idiag_dst[skip], family == AF_INET ? 4 : 16);
    return family == AF_INET ? c->remote[0] != 127
                             : memcmp(c->remote, loopback6, 16) != 0;
}

/* Stores what the message 'nlh' says in '*c'.  Returns false if that is
 * nothing. */
static bool
get_connection(const struct nlmsghdr *nlh, struct sock_diag_connection *c)
{
    const struct inet_diag_msg *msg = NLMSG_DATA(nlh);
    const struct rtattr *a = (const struct rtattr *) (msg + 1);
    int left = nlh->nlmsg_len - NLMSG_LENGTH(sizeof *msg);

    if (nlh->nlmsg_type != SOCK_DIAG_BY_FAMILY || left < 0
        || !get_remote(msg->idiag_family, &msg->id, c)) {
        return false;
    }
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == INET_DIAG_INFO) {
            c->size = MIN(sizeof c->info, RTA_PAYLOAD(a));
            memcpy(&c->info, RTA_DATA(a), c->size);
        }
    }
    return c->size > 0;
}

/* Reads the reply to request_dump(), up to '*leftp' connections. */
static void
read_reply(int fd, size_t *leftp, sock_diag_func *see, void *aux)
{
    char *buffer = xmalloc(BUFFER_SIZE);
    const struct nlmsghdr *nlh;
    bool more = true;
    ssize_t n;

    while (more && *leftp && (n = recv(fd, buffer, BUFFER_SIZE, 0)) > 0) {
        nlh = (const struct nlmsghdr *) buffer;
        for (; more && *leftp && NLMSG_OK(nlh, n); nlh = NLMSG_NEXT(nlh, n)) {
            struct sock_diag_connection c = { .size = 0 };

            more = nlh->nlmsg_type != NLMSG_DONE
                   && nlh->nlmsg_type != NLMSG_ERROR;
            if (get_connection(nlh, &c)) {
                see(&c, aux);
                --*leftp;
            }
        }
    }
    free(buffer);
}

void
sock_diag_dump(size_t max, sock_diag_func *see, void *aux)
{
    static const uint8_t families[] = { AF_INET, AF_INET6 };

    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        int fd = open_socket();

        if (fd >= 0 && !request_dump(fd, families[i])) {
            read_reply(fd, &max, see, aux);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
}
