/* SPDX-License-Identifier: Apache-2.0 */

/* Arbitrary bytes from a process of the host to the control socket.  The
 * server is the real one; its slots never contain invalid values, and its
 * replies are a sequence of messages. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/classify/bursts.h"
#include "shim/classify/flow-cache.h"
#include "shim/classify/job-slot.h"
#include "shim/control/server.h"
#include "tests/fuzz/must.h"
#include "wire/shim-protocol.h"

static uint64_t rate;
static struct server *server;
static char path[64];

static void
get_stats(void *aux, struct shim_stats *stats)
{
    stats->tx_packets = 1;
}

static uint64_t
get_rate(void *aux)
{
    return rate;
}

static void
set_min_share(void *aux, uint32_t share)
{
    must(share <= SHIM_MIN_SHARE_UNIT || share == SHIM_MIN_SHARE_DEFAULT);
}

static int
get_connections(void *aux, void *body, size_t *size)
{
    static bool stopped;

    stopped = !stopped;
    memset(body, 0, 1000);
    *size = 1000;
    return stopped ? 0 : EINVAL;
}

static uint64_t
get_now(void)
{
    return 1000000000;
}

static void
get_ports(void *aux, struct shim_ports *ports)
{
    ports->polls++;
}

static void
get_about(void *aux, char *text, size_t size)
{
    memset(text, 0, size);
}

static int
take_over(void *aux, uint32_t step, struct shim_state *state)
{
    state->rate_bps = rate;
    return step == SHIM_STEP_STOP ? 0 : EBUSY;
}

static struct server_config config = {
    .boot_id = 7,
    .mtu = 9000,
    .get_stats = get_stats,
    .get_rate = get_rate,
    .set_min_share = set_min_share,
    .now = get_now,
    .get_ports = get_ports,
    .get_about = get_about,
    .take_over = take_over,
    .get_connections = get_connections,
};

/* Checks the functions of the protocol, on memory that ends with the bytes. */
static void
check_protocol(const uint8_t *data, size_t size)
{
    void *copy = copy_bytes(data, size);
    struct shim_msg msg;

    if (!protocol_next(copy, size, &msg)) {
        must(msg.length >= sizeof msg && msg.length <= size);
    }
    for (uint16_t type = 0; type <= SHIM_ABOUT + 1; type++) {
        protocol_check_body(type, copy, size);
    }
    free(copy);
}

static int
connect_to_server(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    strcpy(address.sun_path, path);
    must(fd >= 0);
    must(!connect(fd, (struct sockaddr *) &address, sizeof address));
    return fd;
}

/* Reads the replies and checks that they are whole messages. */
static void
check_replies(int fd)
{
    static uint8_t replies[8u << 20];
    size_t have = 0, at = 0;
    struct shim_msg msg;
    ssize_t n;

    while ((n = recv(fd, replies + have, sizeof replies - have, 0)) > 0) {
        have += n;
    }
    while (!protocol_next(replies + at, have - at, &msg)) {
        must(msg.status < 4096);
        at += msg.length;
    }
    must(at == have);
}

static void
check_slots(void)
{
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        struct shim_slot slot;

        if (job_slots_get(config.slots, i, &slot)) {
            must(!protocol_check_body(SHIM_SLOT_SET, &slot, sizeof slot));
        }
    }
}

static void
talk(const uint8_t *data, size_t size)
{
    int fd = connect_to_server();
    size_t half = size / 2;

    must(send(fd, data, half, MSG_NOSIGNAL) == (ssize_t) half);
    server_run(server);
    send(fd, data + half, size - half, MSG_NOSIGNAL);   /* It may be closed. */
    server_run(server);
    server_run(server);
    for (int i = 0; i < 100; i++) {
        bursts_count(config.bursts, i % 3, BURSTS_TX, 64, i * 1000000);
    }
    server_run(server);
    check_replies(fd);
    close(fd);
    server_run(server);
}

static void
finish(void)
{
    server_destroy(server);
    flow_cache_destroy(config.flows);
    bursts_destroy(config.bursts);
    job_slots_destroy(config.slots);
}

/* Once, since creating a server for each input would dominate the run time. */
static void
prepare(void)
{
    snprintf(path, sizeof path, "/tmp/sct-fuzz-%d.sock", (int) getpid());
    config.slots = job_slots_create();
    config.bursts = bursts_create();
    config.flows = flow_cache_create(7);
    must(!server_create(path, &config, &server));
    atexit(finish);
}

/* So that each input starts without jobs. */
static void
empty_slots(void)
{
    for (int i = 1; i < SHIM_MAX_SLOTS; i++) {
        job_slots_clear(config.slots, i);
    }
    job_slots_lease(config.slots, get_now(), 0, 0);
    rate = 50000000;
    must(!job_slots_count(config.slots));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!server) {
        prepare();
    }
    empty_slots();
    check_protocol(data, size);
    talk(data, size);
    check_slots();
    return 0;
}
