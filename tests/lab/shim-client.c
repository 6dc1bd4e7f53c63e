/* SPDX-License-Identifier: Apache-2.0 */

/* Sends requests to a shim's control socket.
 *
 *    shim-client SOCKET COMMAND...
 *
 *    lease MS DEFAULT-DSCP
 *    slot SLOT LEVEL DSCP NAME [RANK]
 *    clear SLOT
 *    flow SLOT tcp|udp LOCAL PORT REMOTE PORT
 *    delete tcp|udp LOCAL PORT REMOTE PORT
 *    rate BITS-PER-SECOND
 *    guard MILLIONTHS
 *    stop            first step of a takeover
 *    leave           second step of a takeover
 *    misses MS       prints the flows that the shim does not know
 *
 * Addresses are IPv4.  Exits 1 with the reply's status if that is not 0. */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/shim-client.h"

#define TIMEOUT_MS 2000

static int
ask(struct shim_client *c, uint16_t type, const void *body, size_t size)
{
    return shim_client_transact(c, type, body, size, TIMEOUT_MS, NULL, NULL);
}

static int
lease(struct shim_client *c, char *argv[])
{
    struct shim_lease l = { .ms = atoi(argv[0]),
                            .default_dscp = atoi(argv[1]) };

    return ask(c, SHIM_LEASE, &l, sizeof l);
}

static int
slot(struct shim_client *c, char *argv[])
{
    struct shim_slot s = { .slot = atoi(argv[0]), .level = atoi(argv[1]),
                           .dscp = atoi(argv[2]), .weight = 1000 };

    snprintf(s.name, sizeof s.name, "%s", argv[3]);
    return ask(c, SHIM_SLOT_SET, &s, sizeof s);
}

static int
ranked_slot(struct shim_client *c, char *argv[])
{
    struct shim_slot s = { .slot = atoi(argv[0]), .level = atoi(argv[1]),
                           .dscp = atoi(argv[2]), .weight = 1000,
                           .rank = strtoul(argv[4], NULL, 10) };

    snprintf(s.name, sizeof s.name, "%s", argv[3]);
    return ask(c, SHIM_SLOT_SET, &s, sizeof s);
}

static int
clear(struct shim_client *c, char *argv[])
{
    uint16_t s = atoi(argv[0]);

    return ask(c, SHIM_SLOT_CLEAR, &s, sizeof s);
}

static struct shim_flow_key
key_of(char *argv[])
{
    struct shim_flow_key key = { .family = 4 };

    key.protocol = strcmp(argv[0], "tcp") ? 17 : 6;
    inet_pton(AF_INET, argv[1], key.local);
    key.local_port = htons(atoi(argv[2]));
    inet_pton(AF_INET, argv[3], key.remote);
    key.remote_port = htons(atoi(argv[4]));
    return key;
}

static int
flow(struct shim_client *c, char *argv[])
{
    struct shim_flow f = { .slot = atoi(argv[0]) };

    f.key = key_of(argv + 1);
    return ask(c, SHIM_FLOW_ADD, &f, sizeof f);
}

static int
delete(struct shim_client *c, char *argv[])
{
    struct shim_flow_key key = key_of(argv);

    return ask(c, SHIM_FLOW_DELETE, &key, sizeof key);
}

static int
rate(struct shim_client *c, char *argv[])
{
    struct shim_rate r = { .bps = strtoull(argv[0], NULL, 10) };

    return ask(c, SHIM_RATE, &r, sizeof r);
}

static int
guard(struct shim_client *c, char *argv[])
{
    struct shim_min_share g = { .share = strtoul(argv[0], NULL, 10) };

    return ask(c, SHIM_MIN_SHARE, &g, sizeof g);
}

static int
take_over(struct shim_client *c, uint32_t step)
{
    struct shim_take_over t = { .step = step };

    return ask(c, SHIM_TAKE_OVER, &t, sizeof t);
}

static int
stop(struct shim_client *c, char *argv[])
{
    (void) argv;
    return take_over(c, SHIM_STEP_STOP);
}

static int
leave(struct shim_client *c, char *argv[])
{
    (void) argv;
    return take_over(c, SHIM_STEP_LEAVE);
}

static void
print_misses(const char *body, size_t size)
{
    for (size_t at = 0; at + sizeof(struct shim_flow_key) <= size;
         at += sizeof(struct shim_flow_key)) {
        char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN];
        struct shim_flow_key k;
        int family;

        memcpy(&k, body + at, sizeof k);
        family = k.family == 4 ? AF_INET : AF_INET6;
        inet_ntop(family, k.local, local, sizeof local);
        inet_ntop(family, k.remote, remote, sizeof remote);
        printf("miss %s %s %d %s %d\n", k.protocol == 6 ? "tcp" : "udp",
               local, ntohs(k.local_port), remote, ntohs(k.remote_port));
    }
    fflush(stdout);
}

static int
misses(struct shim_client *c, char *argv[])
{
    time_t end = time(NULL) + (atoi(argv[0]) + 999) / 1000;
    int error = ask(c, SHIM_SUBSCRIBE, NULL, 0);
    const struct shim_msg *msg;
    const void *body;

    while (!error && time(NULL) < end) {
        struct pollfd pfd = { .fd = shim_client_fd(c), .events = POLLIN };

        poll(&pfd, 1, 100);
        shim_client_run(c);
        while (!(error = shim_client_receive(c, &msg, &body))) {
            if (msg->type == SHIM_MISS) {
                print_misses(body, msg->length - sizeof *msg);
            }
        }
        error = error == EAGAIN ? 0 : error;
    }
    return error;
}

int
main(int argc, char *argv[])
{
    static const struct {
        const char *name;
        int n_args;
        int (*run)(struct shim_client *, char *argv[]);
    } commands[] = {
        { "lease", 2, lease }, { "slot", 4, slot },
        { "slot", 5, ranked_slot }, { "clear", 1, clear },
        { "flow", 6, flow }, { "delete", 5, delete }, { "rate", 1, rate },
        { "guard", 1, guard }, { "stop", 0, stop }, { "leave", 0, leave },
        { "misses", 1, misses },
    };
    struct shim_client *c;
    int error;

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (argc == commands[i].n_args + 3
            && !strcmp(argv[2], commands[i].name)) {
            error = shim_client_open(argv[1], &c);
            error = error ? error : commands[i].run(c, argv + 3);
            shim_client_close(c);
            if (error) {
                fprintf(stderr, "shim-client: %s: %s\n", argv[2],
                        strerror(error));
            }
            return error ? EXIT_FAILURE : EXIT_SUCCESS;
        }
    }
    fputs("usage: see the top of tests/lab/shim-client.c\n", stderr);
    return 2;
}
