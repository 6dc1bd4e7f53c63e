/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/sock-diag.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "byte-order.h"
#include "openvswitch/util.h"
#include "util.h"

#define BUFFER_SIZE (64 * 1024)
#define MAX_TRIES 3             /* Attempts at a dump that is interrupted. */

/* From the kernel's include/net/tcp_states.h: state of a SYN_RECV socket that
 * is not a full socket yet. */
#define STATE_NEW_SYN_RECV 12
#define STATES ((1 << TCP_ESTABLISHED) | (1 << TCP_SYN_SENT)        \
                | (1 << TCP_SYN_RECV) | (1 << TCP_FIN_WAIT1)        \
                | (1 << TCP_FIN_WAIT2) | (1 << TCP_CLOSE_WAIT)      \
                | (1 << TCP_LAST_ACK) | (1 << TCP_CLOSING)          \
                | (1 << STATE_NEW_SYN_RECV))

struct sock_diag {
    int fd;
    uint32_t seq;
    char *buffer;               /* BUFFER_SIZE bytes. */
};

/* Returns the fd or a negative errno value. */
static int
open_socket(void)
{
    static const struct timeval timeout = { .tv_usec = 500 * 1000 };
    static const int receive_buffer = 1 << 20;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0) {
        return -errno;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer,
               sizeof receive_buffer);
    return fd;
}

/* Opens a socket in 'netns'.  A socket stays in the namespace in which it was
 * created, so the thread changes its namespace only for a moment.  Returns the
 * fd or a negative errno value. */
static int
open_socket_in(const char *netns)
{
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int away = open(netns, O_RDONLY | O_CLOEXEC);
    int fd;

    if (home < 0 || away < 0 || setns(away, CLONE_NEWNET)) {
        fd = -errno;
    } else {
        fd = open_socket();
        /* The thread must not continue in the wrong namespace. */
        ovs_assert(!setns(home, CLONE_NEWNET));
    }
    if (home >= 0) {
        close(home);
    }
    if (away >= 0) {
        close(away);
    }
    return fd;
}

int
sock_diag_open(const char *netns, struct sock_diag **sdp)
{
    int fd = netns ? open_socket_in(netns) : open_socket();

    *sdp = NULL;
    if (fd < 0) {
        return -fd;
    }
    *sdp = xzalloc(sizeof **sdp);
    (*sdp)->fd = fd;
    (*sdp)->buffer = xmalloc(BUFFER_SIZE);
    return 0;
}

void
sock_diag_close(struct sock_diag *sd)
{
    if (sd) {
        close(sd->fd);
        free(sd->buffer);
        free(sd);
    }
}

/* Space for a condition and a jump for each cgroup. */
#define FILTER_SIZE (SOCK_DIAG_MAX_CGROUPS * 16)

/* Writes a filter program to 'filter' by which the kernel skips sockets in
 * none of the 'n' cgroups.  Returns its size in bytes. */
static size_t
make_filter(const uint64_t *cgroups, size_t n, char *filter)
{
    size_t condition = sizeof(struct inet_diag_bc_op) + sizeof *cgroups;
    size_t jump = sizeof(struct inet_diag_bc_op);
    size_t end = n * (condition + jump) - jump;
    char *p = filter;

    /* Jumping to the end of the program accepts, beyond it rejects. */
    for (size_t i = 0; i < n; i++) {
        struct inet_diag_bc_op test = {
            .code = INET_DIAG_BC_CGROUP_COND, .yes = condition,
            .no = condition + jump
        };
        struct inet_diag_bc_op accept = {
            .code = INET_DIAG_BC_JMP, .yes = jump,
            .no = end - (p + condition - filter)
        };

        memcpy(p, &test, sizeof test);
        memcpy(p + sizeof test, &cgroups[i], sizeof cgroups[i]);
        p += condition;
        if (i < n - 1) {
            memcpy(p, &accept, sizeof accept);
            p += jump;
        }
    }
    return end;
}

static int
request_dump(struct sock_diag *sd, uint8_t family, const uint64_t *cgroups,
             size_t n)
{
    struct {
        struct nlmsghdr nlh;
        struct inet_diag_req_v2 req;
        struct rtattr attr;
        char filter[FILTER_SIZE];
    } msg = {
        .nlh = {
            .nlmsg_len = offsetof(typeof(msg), attr),
            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
            .nlmsg_seq = ++sd->seq,
        },
        .req = {
            .sdiag_family = family,
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_states = STATES,
        },
        .attr.rta_type = INET_DIAG_REQ_BYTECODE,
    };

    if (n && n <= SOCK_DIAG_MAX_CGROUPS) {
        msg.attr.rta_len = RTA_LENGTH(make_filter(cgroups, n, msg.filter));
        msg.nlh.nlmsg_len += msg.attr.rta_len;
    }
    return (send(sd->fd, &msg, msg.nlh.nlmsg_len, 0)
            == (ssize_t) msg.nlh.nlmsg_len ? 0 : errno);
}

static bool
is_mapped(const __be32 a[4])
{
    return !a[0] && !a[1] && a[2] == htonl(0xffff);
}

/* Stores the addresses of 'id' in '*key'.  Returns false if the connection
 * does not leave the host. */
static bool
make_key(uint8_t family, const struct inet_diag_sockid *id,
         struct shim_flow_key *key)
{
    static const __be32 loopback6[4] = { 0, 0, 0, CONSTANT_HTONL(1) };
    size_t skip = 0, size = 16;

    if (family == AF_INET6 && is_mapped(id->idiag_src)) {
        family = AF_INET;
        skip = 3;
    }
    if (family == AF_INET) {
        size = 4;
        if ((ntohl(id->idiag_dst[skip]) >> 24) == 127) {
            return false;
        }
    } else if (!memcmp(id->idiag_dst, loopback6, sizeof loopback6)) {
        return false;
    }
    memset(key, 0, sizeof *key);
    key->family = family == AF_INET ? 4 : 6;
    key->protocol = IPPROTO_TCP;
    key->local_port = id->idiag_sport;
    key->remote_port = id->idiag_dport;
    memcpy(key->local, &id->idiag_src[skip], size);
    memcpy(key->remote, &id->idiag_dst[skip], size);
    return true;
}

static const struct rtattr *
find_attribute(const struct nlmsghdr *nlh, unsigned short type)
{
    const struct inet_diag_msg *msg = NLMSG_DATA(nlh);
    const struct rtattr *a = (const struct rtattr *) (msg + 1);
    int left = nlh->nlmsg_len - NLMSG_LENGTH(sizeof *msg);

    for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == type) {
            return a;
        }
    }
    return NULL;
}

static uint64_t
get_cgroup(const struct nlmsghdr *nlh)
{
    const struct rtattr *a = find_attribute(nlh, INET_DIAG_CGROUP_ID);
    uint64_t cgroup = 0;

    if (a && RTA_PAYLOAD(a) >= sizeof cgroup) {
        memcpy(&cgroup, RTA_DATA(a), sizeof cgroup);
    }
    return cgroup;
}

/* Calls 'see' for the socket in 'nlh' unless it is not reported. */
static void
report_socket(const struct nlmsghdr *nlh, sock_diag_func *see, void *aux)
{
    const struct inet_diag_msg *msg = NLMSG_DATA(nlh);
    struct sock_info info;

    if (nlh->nlmsg_len >= NLMSG_LENGTH(sizeof *msg)
        && make_key(msg->idiag_family, &msg->id, &info.key)) {
        info.cgroup = get_cgroup(nlh);
        info.inode = msg->idiag_inode;
        see(&info, aux);
    }
}

/* Reads one message of the reply.  Returns EAGAIN if there is more, EINTR if
 * the dump must be repeated, 0 at its end. */
static int
take_message(struct sock_diag *sd, const struct nlmsghdr *nlh,
             bool *interruptedp, sock_diag_func *see, void *aux)
{
    if (nlh->nlmsg_seq != sd->seq) {
        return EAGAIN;          /* From an earlier dump that was given up. */
    }
    if (nlh->nlmsg_flags & NLM_F_DUMP_INTR) {
        *interruptedp = true;
    }
    switch (nlh->nlmsg_type) {
    case NLMSG_DONE:
        return *interruptedp ? EINTR : 0;

    case NLMSG_ERROR: {
        const struct nlmsgerr *e = NLMSG_DATA(nlh);

        if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof *e) || e->error >= 0) {
            return EPROTO;
        }
        return e->error == -EBUSY ? EINTR : -e->error;
    }

    case SOCK_DIAG_BY_FAMILY:
        report_socket(nlh, see, aux);
        return EAGAIN;

    default:
        return EAGAIN;
    }
}

static int
dump_once(struct sock_diag *sd, uint8_t family, const uint64_t *cgroups,
          size_t n_cgroups, sock_diag_func *see, void *aux)
{
    int error = request_dump(sd, family, cgroups, n_cgroups);
    bool interrupted = false;

    if (error) {
        return error;
    }
    for (;;) {
        ssize_t n = recv(sd->fd, sd->buffer, BUFFER_SIZE, 0);
        const struct nlmsghdr *nlh = (const struct nlmsghdr *) sd->buffer;

        if (n < 0) {
            /* ENOBUFS: messages were lost. */
            return errno == ENOBUFS ? EINTR : errno;
        }
        for (; NLMSG_OK(nlh, n); nlh = NLMSG_NEXT(nlh, n)) {
            error = take_message(sd, nlh, &interrupted, see, aux);
            if (error != EAGAIN) {
                return error;
            }
        }
    }
}

/* Calls 'see' with 'aux' for each connected TCP socket in one of the 'n'
 * cgroups in 'cgroups', or for all if 'n' is 0 or too large.  Returns 0, or a
 * positive errno value if some sockets may be missing. */
int
sock_diag_dump(struct sock_diag *sd, const uint64_t *cgroups, size_t n,
               sock_diag_func *see, void *aux)
{
    static const uint8_t families[] = { AF_INET, AF_INET6 };

    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        int error = EINTR;

        for (int try = 0; try < MAX_TRIES && error == EINTR; try++) {
            error = dump_once(sd, families[i], cgroups, n, see, aux);
        }
        if (error && !(families[i] == AF_INET6 && error == ENOENT)) {
            return error;
        }
    }
    return 0;
}

/* 'extensions' are the INET_DIAG_* attributes to request. */
static int
request_one(struct sock_diag *sd, const struct shim_flow_key *key,
            uint8_t extensions)
{
    size_t size = key->family == 6 ? 16 : 4;
    struct {
        struct nlmsghdr nlh;
        struct inet_diag_req_v2 req;
    } msg = {
        .nlh = {
            .nlmsg_len = sizeof msg,
            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
            .nlmsg_flags = NLM_F_REQUEST,
            .nlmsg_seq = ++sd->seq,
        },
        .req = {
            .sdiag_family = key->family == 6 ? AF_INET6 : AF_INET,
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_ext = extensions,
            .idiag_states = STATES,
            .id = {
                .idiag_sport = key->local_port,
                .idiag_dport = key->remote_port,
                .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
            },
        },
    };

    memcpy(msg.req.id.idiag_src, key->local, size);
    memcpy(msg.req.id.idiag_dst, key->remote, size);
    return send(sd->fd, &msg, sizeof msg, 0) == sizeof msg ? 0 : errno;
}

/* Reads the reply to request_one() for 'key'. */
static int
receive_one(struct sock_diag *sd, const struct shim_flow_key *key,
            struct sock_info *info)
{
    const struct nlmsghdr *nlh = (const struct nlmsghdr *) sd->buffer;
    const struct inet_diag_msg *msg = NLMSG_DATA(nlh);
    ssize_t n;

    do {
        n = recv(sd->fd, sd->buffer, BUFFER_SIZE, 0);
        if (n < 0) {
            return errno;
        }
    } while (!NLMSG_OK(nlh, n) || nlh->nlmsg_seq != sd->seq);

    if (nlh->nlmsg_type != SOCK_DIAG_BY_FAMILY
        || nlh->nlmsg_len < NLMSG_LENGTH(sizeof *msg)) {
        const struct nlmsgerr *e = NLMSG_DATA(nlh);

        return nlh->nlmsg_type == NLMSG_ERROR && e->error < 0 ? -e->error
               : EPROTO;
    }
    /* The kernel falls back to a socket that listens at the address. */
    if (!msg->id.idiag_dport || !(STATES & (1u << msg->idiag_state))) {
        return ENOENT;
    }
    info->key = *key;
    info->cgroup = get_cgroup(nlh);
    info->inode = msg->idiag_inode;
    return 0;
}

/* Stores the data of the TCP socket with 'key' in '*info'.  Returns 0, ENOENT
 * if there is no such connected socket, or another positive errno value. */
int
sock_diag_find(struct sock_diag *sd, const struct shim_flow_key *key,
               struct sock_info *info)
{
    int error;

    if (key->protocol != IPPROTO_TCP) {
        return ENOENT;
    }
    error = request_one(sd, key, 0);
    return error ? error : receive_one(sd, key, info);
}

/* Stores the struct tcp_info of the socket with 'key' in 'tcp_info', '*sizep'
 * bytes at most, and the size that the kernel has in '*sizep'.  Returns 0 or a
 * positive errno value, as sock_diag_find() does. */
int
sock_diag_tcp_info(struct sock_diag *sd, const struct shim_flow_key *key,
                   void *tcp_info, size_t *sizep)
{
    const struct rtattr *a;
    struct sock_info info;
    int error = request_one(sd, key, 1 << (INET_DIAG_INFO - 1));

    error = error ? error : receive_one(sd, key, &info);
    if (error) {
        return error;
    }
    a = find_attribute((const struct nlmsghdr *) sd->buffer, INET_DIAG_INFO);
    *sizep = a ? MIN(*sizep, RTA_PAYLOAD(a)) : 0;
    if (a) {
        memcpy(tcp_info, RTA_DATA(a), *sizep);
    }
    return 0;
}
