/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/connections.h"

#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identify/bpf/identity.h"
#include "agent/identify/process.h"
#include "agent/identify/questions.h"
#include "agent/identify/registry.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "shim/ports/route-socket.h"
#include "util.h"

#define MAX_MAKERS 1024 /* Later processes are counted by real user. */
#define MAX_NETNS 64

/* A process, or a user, that has made sockets. */
struct maker {
    struct hmap_node node; /* In struct count's 'makers'. */
    pid_t pid;             /* 0 for a user. */
    uid_t uid;             /* Real user. */
    size_t n;              /* Connections of no job. */
};

struct count {
    int owners; /* Map of struct identity_owner. */
    struct hmap makers;
    ino_t netns[MAX_NETNS]; /* Inodes, the agent's first. */
    size_t n_netns;
};

/* Stores the owner that a message of the kernel has.  Returns false without
 * one. */
static bool
get_owner(const struct nlmsghdr *nlh, struct identity_owner *owner)
{
    const struct nlattr *attr, *storage;

    mnl_attr_for_each(attr, nlh, sizeof(struct inet_diag_msg))
    {
        if (mnl_attr_get_type(attr) == INET_DIAG_SK_BPF_STORAGES) {
            storage = route_attr_in(attr, SK_DIAG_BPF_STORAGE);
            return route_attr_copy(
                route_attr_in(storage, SK_DIAG_BPF_STORAGE_MAP_VALUE), owner,
                sizeof *owner);
        }
    }
    return false;
}

static void
count_maker(struct count *c, pid_t pid, uid_t uid)
{
    uint32_t hash = hash_2words(pid, uid);
    struct maker *maker;

    HMAP_FOR_EACH_WITH_HASH(maker, node, hash, &c->makers)
    {
        if (maker->pid == pid && maker->uid == uid) {
            maker->n++;
            return;
        }
    }
    maker = xmalloc(sizeof *maker);
    *maker = (struct maker){ .pid = pid, .uid = uid, .n = 1 };
    hmap_insert(&c->makers, &maker->node, hash);
}

/* Counts a connection of no job that leaves the host. */
static int
see_connection(const struct nlmsghdr *nlh, void *c_)
{
    const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
    struct count *c = c_;
    struct identity_owner owner;

    if (memcmp(msg->id.idiag_src, msg->id.idiag_dst, sizeof msg->id.idiag_src)
        && get_owner(nlh, &owner) && owner.tgid && !(uint32_t) owner.slot) {
        count_maker(c, hmap_count(&c->makers) < MAX_MAKERS ? owner.tgid : 0,
                    owner.uid);
    }
    return MNL_CB_OK;
}

/* Counts the connections of a network namespace, -1 for the agent's. */
static void
count_connections(struct count *c, int netns)
{
    struct route_socket *rs;

    if (!route_socket_open_diag(netns, &rs)) {
        route_socket_list_tcp(rs, ~(1u << TCP_LISTEN | 1u << TCP_TIME_WAIT), 0,
                              c->owners, see_connection, c);
        route_socket_close(rs);
    }
}

/* Counts the connections of the namespace of a process, unless they have
 * been. */
static void
count_namespace_of(pid_t pid, void *c_)
{
    struct count *c = c_;
    char path[64];
    struct stat s;
    size_t i = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/ns/net", (int) pid);
    if (stat(path, &s)) {
        return;
    }
    while (i < c->n_netns && c->netns[i] != s.st_ino) {
        i++;
    }
    if (i < c->n_netns || i == MAX_NETNS) {
        return;
    }
    c->netns[c->n_netns++] = s.st_ino;
    fd = i ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (!i || fd >= 0) {
        count_connections(c, fd);
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Returns the user of a process that may have ended. */
static struct user *
user_of(struct users *users, const struct maker *maker)
{
    uid_t real, uid = maker->uid;
    bool lives = maker->pid && process_real_user(maker->pid, &real)
                 && real == maker->uid && process_user(maker->pid, &uid);

    return users_find(users, uid, lives ? maker->pid : 0);
}

struct user *
connections_most(const struct identity *identity,
                 const struct questions *questions, struct users *users)
{
    struct count c = { .owners = identity_owners_fd(identity),
                       .makers = HMAP_INITIALIZER(&c.makers) };
    struct user *user, *most = NULL;
    struct maker *maker;

    if (c.owners >= 0) {
        count_namespace_of(getpid(), &c);
        questions_for_each(questions, count_namespace_of, &c);
    }
    HMAP_FOR_EACH (user, node, &users->all) {
        user->n_connections = 0;
    }
    HMAP_FOR_EACH_POP(maker, node, &c.makers)
    {
        user = user_of(users, maker);
        user->n_connections += maker->n;
        most = most && most->n_connections > user->n_connections ? most : user;
        free(maker);
    }
    hmap_destroy(&c.makers);
    return most;
}

/* Stores the user of a connection. */
static int
see_user(const struct nlmsghdr *nlh, void *uid_)
{
    const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
    int64_t *uid = uid_;

    *uid = msg->idiag_state == TCP_ESTABLISHED ? msg->idiag_uid : *uid;
    return MNL_CB_OK;
}

int64_t
connections_user(const struct identity_copy *copy)
{
    struct inet_diag_req_v2 *req;
    struct route_socket *rs;
    struct nlmsghdr *nlh;
    int64_t uid = -1;

    if (!route_socket_open_diag(-1, &rs)) {
        nlh = route_socket_begin(rs, SOCK_DIAG_BY_FAMILY, NLM_F_ACK);
        req = mnl_nlmsg_put_extra_header(nlh, sizeof *req);
        req->sdiag_family = AF_INET6;
        req->sdiag_protocol = IPPROTO_TCP;
        req->id.idiag_sport = copy->ports[0];
        req->id.idiag_dport = copy->ports[1];
        memcpy(req->id.idiag_src, copy->local, sizeof copy->local);
        memcpy(req->id.idiag_dst, copy->remote, sizeof copy->remote);
        memset(req->id.idiag_cookie, 0xff, sizeof req->id.idiag_cookie);
        route_socket_transact(rs, nlh, see_user, &uid);
        route_socket_close(rs);
    }
    return uid;
}
