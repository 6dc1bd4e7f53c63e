/* SPDX-License-Identifier: Apache-2.0 */

/* A shim without packets, for tests of the agent.
 *
 * usage: fake-shim SOCKET
 *
 * Speaks wire/shim-protocol.h on SOCKET with one agent at a time, and keeps
 * the table of slots.  Standard output gets a line for each change:
 *
 *    hello | lease MS DSCP | slot SLOT LEVEL DSCP RANK NAME | clear SLOT
 *
 * Standard input takes "bytes SLOT TX RX", which adds to counters.  Its end
 * ends the program.
 */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "wire/shim-protocol.h"

static struct shim_slot slots[SHIM_MAX_SLOTS];
static struct shim_slot_stats slot_stats[SHIM_MAX_SLOTS];
static struct shim_stats stats;
static char input[SHIM_MAX_MESSAGE];
static size_t n_input;
static int agent = -1;

static void
die(const char *what)
{
    fprintf(stderr, "fake-shim: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void
send_message(uint16_t type, uint32_t xid, uint32_t status,
             const void *body, size_t size)
{
    struct shim_msg msg = { sizeof msg + size, SHIM_PROTOCOL_VERSION, type,
                            xid, status };

    if (agent >= 0
        && (send(agent, &msg, sizeof msg, MSG_NOSIGNAL) != sizeof msg
            || (size && send(agent, body, size, MSG_NOSIGNAL)
                != (ssize_t) size))) {
        close(agent);
        agent = -1;
    }
}

static void
set_slots(const struct shim_slot *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct shim_slot *r = &rows[i];

        slots[r->slot % SHIM_MAX_SLOTS] = *r;
        slot_stats[r->slot % SHIM_MAX_SLOTS].slot = r->slot;
        printf("slot %u %u %u %u %s\n", r->slot, r->level, r->dscp, r->rank,
               r->name);
    }
}

static void
clear_slots(const uint16_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        slots[numbers[i] % SHIM_MAX_SLOTS].slot = 0;
        printf("clear %u\n", numbers[i]);
    }
}

static void
list_slots(uint32_t xid)
{
    static struct shim_slot list[SHIM_MAX_SLOTS];
    size_t n = 0;

    for (int i = 1; i < SHIM_MAX_SLOTS; i++) {
        if (slots[i].slot) {
            list[n++] = slots[i];
        }
    }
    send_message(SHIM_SLOT_LIST, xid, 0, list, n * sizeof *list);
}

static void
send_stats(uint32_t xid)
{
    static char body[sizeof stats + sizeof slot_stats];
    size_t size = sizeof stats;

    memcpy(body, &stats, sizeof stats);
    for (int i = 1; i < SHIM_MAX_SLOTS; i++) {
        if (slots[i].slot) {
            memcpy(body + size, &slot_stats[i], sizeof slot_stats[i]);
            size += sizeof slot_stats[i];
        }
    }
    send_message(SHIM_STATS, xid, 0, body, size);
}

static void
handle(const struct shim_msg *msg, const void *body, size_t size)
{
    const struct shim_hello hello = {
        .boot_id = stats.boot_id,
        .rate_bps = 50000000,
        .mtu = 9000,
        .pid = getpid(),
    };
    static const char about[] =
        "version 1.2.3\ncc on\nhost_tags yes\nnonsense\n";
    const struct shim_congestion *congestion = body;
    const struct shim_lease *lease = body;
    uint32_t status = 0;

    switch (msg->type) {
    case SHIM_HELLO:
        puts("hello");
        send_message(msg->type, msg->xid, 0, &hello, sizeof hello);
        return;
    case SHIM_SLOT_LIST:
        list_slots(msg->xid);
        return;
    case SHIM_STATS:
        send_stats(msg->xid);
        return;
    case SHIM_ABOUT:
        send_message(msg->type, msg->xid, 0, about, sizeof about - 1);
        return;
    case SHIM_LEASE:
        printf("lease %u %u\n", lease->ms, lease->default_dscp);
        break;
    case SHIM_MIN_SHARE:
        printf("guard %u\n", *(const uint32_t *) body);
        break;
    case SHIM_CONGESTION:
        printf("congestion %u %u %u\n", congestion->gamma, congestion->beta,
               congestion->floor);
        break;
    case SHIM_CONTROL:
        printf("control-dscp %u\n", *(const uint32_t *) body);
        break;
    case SHIM_SLOT_SET:
        set_slots(body, size / sizeof(struct shim_slot));
        break;
    case SHIM_SLOT_CLEAR:
        clear_slots(body, size / sizeof(uint16_t));
        break;
    default:
        status = EOPNOTSUPP;
        break;
    }
    send_message(msg->type, msg->xid, status, NULL, 0);
}

static void
read_agent(void)
{
    ssize_t n = recv(agent, input + n_input, sizeof input - n_input, 0);
    struct shim_msg msg;

    if (n <= 0) {
        close(agent);
        agent = -1;
        return;
    }
    n_input += n;
    while (n_input >= sizeof msg) {
        memcpy(&msg, input, sizeof msg);
        if (msg.version != SHIM_PROTOCOL_VERSION || msg.length < sizeof msg
            || msg.length > sizeof input) {
            errno = EPROTO;
            die("agent");
        }
        if (n_input < msg.length) {
            break;
        }
        handle(&msg, input + sizeof msg, msg.length - sizeof msg);
        n_input -= msg.length;
        memmove(input, input + msg.length, n_input);
    }
}

static bool
read_command(void)
{
    char line[256];
    unsigned long long tx, rx;
    unsigned int a;

    if (!fgets(line, sizeof line, stdin)) {
        return false;
    }
    if (sscanf(line, "bytes %u %llu %llu", &a, &tx, &rx) == 3) {
        slot_stats[a % SHIM_MAX_SLOTS].tx_bytes += tx;
        slot_stats[a % SHIM_MAX_SLOTS].rx_bytes += rx;
        stats.tx_bytes += tx;
        stats.tx_ip_bytes += tx;
        stats.rx_bytes += rx;
    }
    return true;
}

static int
listen_on(const char *path)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (strlen(path) >= sizeof sun.sun_path) {
        errno = ENAMETOOLONG;
        die(path);
    }
    strcpy(sun.sun_path, path);
    unlink(path);
    if (fd < 0 || bind(fd, (struct sockaddr *) &sun, sizeof sun)
        || listen(fd, 5)) {
        die(path);
    }
    return fd;
}

int
main(int argc, char *argv[])
{
    int listener;

    if (argc != 2) {
        fprintf(stderr, "usage: fake-shim SOCKET\n");
        return 2;
    }
    setvbuf(stdin, NULL, _IONBF, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    stats.boot_id = ((uint64_t) time(NULL) << 22) + getpid();
    listener = listen_on(argv[1]);
    for (;;) {
        struct pollfd fds[] = {
            { .fd = STDIN_FILENO, .events = POLLIN },
            { .fd = listener, .events = POLLIN },
            { .fd = agent, .events = POLLIN },
        };

        if (poll(fds, 3, -1) < 0) {
            die("poll");
        }
        if (fds[0].revents && !read_command()) {
            return 0;
        }
        if (fds[1].revents) {
            if (agent >= 0) {
                close(agent);
            }
            agent = accept(listener, NULL, NULL);
            n_input = 0;
        } else if (agent >= 0 && fds[2].revents) {
            read_agent();
        }
    }
}
