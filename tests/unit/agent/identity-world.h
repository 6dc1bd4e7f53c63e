/* SPDX-License-Identifier: Apache-2.0 */

#ifndef IDENTITY_WORLD_H
#define IDENTITY_WORLD_H 1

/* The agent's programs in this machine's kernel, for tests.
 *
 * The uplink "up0" of a new network namespace leads to the namespace "far";
 * behind "pod0" is the namespace "pod", with packets that are routed to the
 * uplink.  Each test has the programs loaded, with that uplink. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "agent/identify/bpf/identity.h"
#include "agent/identify/registry.h"
#include "openvswitch/compiler.h"

#define FAR "10.9.0.2"
#define FAR6 "fd09::2"
#define FAR_MAC "02:00:00:00:09:02"
#define PORT 4700

enum { SLOT_A = 5, SLOT_B = 6 };
enum { DSCP_A = 35, DSCP_B = 23, DSCP_CONTROL = 39, DSCP_OTHERS = 7 };

struct fixture {
    struct identity *id;
    struct identity_settings *settings;
    struct identity_traffic *traffic;
    struct identity_config config;
    char *tree;     /* A cgroup with the children "a" and "b". */
    pid_t far, pod; /* Processes that hold the namespaces. */
    int home, receiver;
    struct pods *pods;
    int fds[64]; /* Of a test, which its tear-down closes. */
    size_t n_fds;
};

extern struct fixture f;

/* Of a cmocka test. */
int set_up(void **state);
int tear_down(void **state);

#define IDENTITY_TEST(NAME) UNIT_TEST_BETWEEN(NAME, set_up, tear_down)

/* Runs commands of the shell in the namespace of a process, 0 for this one. */
void in(pid_t netns, const char *format, ...) OVS_PRINTF_FORMAT(2, 3);

/* Starts a process that holds a new network namespace. */
pid_t hold_namespace(void);

/* Make the uplink and its far end, and give both an address of IPv6. */
void make_uplink(void);
void make_ipv6(void);

/* Returns false if 'make' fails: the kernel has no interfaces of this kind. */
bool has_kind(const char *make);

/* Load the programs, with 'uplink', and remove them. */
void begin_identity(const struct identity_config *, const char *uplink);
void end_identity(void);

/* Claims, which count at once. */
void set_claim(enum identity_map, uint64_t key, struct identity_claim);
void claim(enum identity_map, uint64_t key, uint32_t slot, enum claim_source);
void claim_cgroup(const char *name, uint32_t slot);

/* Has the programs look at the packets of "pod0". */
int add_pod(struct identity *);

/* Moves this process into a cgroup of the test, or "" for the tree itself. */
void enter(const char *cgroup);

/* Returns 'fd', which is closed after the test. */
int keep(int fd);

/* Opens a socket in the namespace of a process, 0 for this one. */
int open_in(pid_t netns, int family, int type, int protocol);
struct sockaddr_storage address_of(const char *text, int port);
void bind_to(int fd, const char *text, int port);
void connect_to(int fd, const char *text, int port);

/* A socket that is connected to the far end. */
struct from {
    const char *cgroup; /* Of the process that makes it. */
    pid_t netns;        /* Process with its namespace, 0: this one's. */
    int type, protocol; /* 0: of UDP. */
    const char *source, *iface;
    const char *to; /* NULL: FAR. */
};

int open_sender(struct from);
int sender(pid_t netns, const char *cgroup);

/* Limits the time that receive() waits, and asks for the class of messages. */
void expect_messages(int fd);

/* Receives a message.  Returns its size, and stores what the kernel reports of
 * it. */
ssize_t receive(int fd, char *data, size_t size, struct cmsghdr **c);

/* Returns the DSCP of the datagram of 100 bytes that arrives next. */
int dscp_received(int fd);

/* Sends such a datagram, which the fixture's receiver gets. */
int dscp_sent_by(int fd);

#endif /* tests/unit/agent/identity-world.h */
