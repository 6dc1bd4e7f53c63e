/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/sock-diag.h"

#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "byte-order.h"
#include "util.h"

#define STATE_ESTABLISHED 1 /* The kernel's include/net/tcp_states.h. */

struct dump {
    size_t left; /* Connections. */
    sock_diag_func *see;
    void *aux;
};

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

static int
see_connection(const struct nlmsghdr *nlh, void *dump_)
{
    const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
    struct sock_diag_connection c = { .size = 0 };
    struct dump *dump = dump_;
    const struct nlattr *attr;

    if (!dump->left) {
        return MNL_CB_STOP;
    }
    if (get_remote(msg->idiag_family, &msg->id, &c)) {
        mnl_attr_for_each(attr, nlh, sizeof *msg)
        {
            if (mnl_attr_get_type(attr) == INET_DIAG_INFO) {
                c.size = MIN(sizeof c.info, mnl_attr_get_payload_len(attr));
                memcpy(&c.info, mnl_attr_get_payload(attr), c.size);
            }
        }
    }
    if (c.size) {
        dump->see(&c, dump->aux);
        dump->left--;
    }
    return MNL_CB_OK;
}

/* Dumps the connections of a family from 's', which is closed. */
static void
dump_family(struct mnl_socket *s, uint8_t family, struct dump *dump)
{
    static const struct timeval timeout = { .tv_usec = 500 * 1000 };
    char buffer[32768]; /* At least a message of the kernel. */
    struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
    struct inet_diag_req_v2 *req =
        mnl_nlmsg_put_extra_header(nlh, sizeof *req);
    ssize_t n;

    nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
    nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    req->sdiag_family = family;
    req->sdiag_protocol = IPPROTO_TCP;
    req->idiag_ext = 1 << (INET_DIAG_INFO - 1);
    req->idiag_states = 1 << STATE_ESTABLISHED;
    setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVTIMEO, &timeout,
               sizeof timeout);
    if (mnl_socket_sendto(s, nlh, nlh->nlmsg_len) >= 0) {
        do {
            n = mnl_socket_recvfrom(s, buffer, sizeof buffer);
        } while (n > 0
                 && mnl_cb_run(buffer, n, 0, 0, see_connection, dump)
                        > MNL_CB_STOP);
    }
    mnl_socket_close(s);
}

void
sock_diag_dump(size_t max, sock_diag_func *see, void *aux)
{
    static const uint8_t families[] = { AF_INET, AF_INET6 };
    struct dump dump = { .left = max, .see = see, .aux = aux };

    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        struct mnl_socket *s =
            mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);

        if (s) {
            dump_family(s, families[i], &dump);
        }
    }
}
