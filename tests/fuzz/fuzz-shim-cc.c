/* SPDX-License-Identifier: Apache-2.0 */

/* Frames of a hostile host and a hostile network through congestion control:
 * it reads and writes nothing beyond them, moves their beginning by no more
 * than its option, and lets go of every queue that it took.  The input is a
 * sequence of frames, each after two bytes of its length and one that says
 * where it comes from and how much later. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cc/cc.h"
#include "shim/cc/hello.h"
#include "shim/pipeline/classify.h"
#include "shim/pipeline/job-slot.h"
#include "tests/fuzz/must.h"

#define LINK UINT64_C(100000000)
#define N_QUEUES 8
#define MS UINT64_C(1000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool used[N_QUEUES];

static uint16_t
flow_queue(void *aux, uint16_t slot)
{
    (void) aux;
    (void) slot;
    for (uint16_t i = 1; i < N_QUEUES; i++) {
        if (!used[i]) {
            used[i] = true;
            return i;
        }
    }
    return 0;
}

static void
flow_free(void *aux, uint16_t queue)
{
    (void) aux;
    must(queue && queue < N_QUEUES && used[queue]);
    used[queue] = false;
}

static void
flow_rate(void *aux, uint16_t queue, uint64_t bps)
{
    (void) aux;
    (void) bps;
    must(queue && queue < N_QUEUES && used[queue]);
}

static void
send_message(void *aux, const uint8_t *frame, size_t length)
{
    (void) aux;
    must(frame && length > 14 && length < 700);
}

/* Gives a frame of its own memory, so that what is beyond it is found out. */
static void
give(struct cc *cc, const uint8_t *data, size_t size, uint8_t how,
     uint64_t now)
{
    uint8_t *memory = malloc(HELLO_ROOM + size);
    struct cc_frame frame = {
        .data = memory + HELLO_ROOM,
        .length = size,
        .room = HELLO_ROOM,
    };
    struct verdict v = { .is_ip = true, .slot = how % 4 };

    memcpy(frame.data, data, size);
    if (how & 1) {
        cc_from_host(cc, &frame, &v, now);
        must(v.queue < N_QUEUES && (!v.queue || used[v.queue]));
    } else {
        cc_from_uplink(cc, &frame, how % 4, now);
    }
    must(frame.data >= memory && frame.data + frame.length
         == memory + HELLO_ROOM + size);
    free(memory);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job_slots *slots = job_slots_create();
    struct cc_config config = {
        .slots = slots, .downlink_bps = LINK, .seed = 1, .mtu = 1500,
        .max_flows = 8,
        .control_ports = { 7000 },
        .flow_queue = flow_queue, .flow_free = flow_free,
        .flow_rate = flow_rate, .send = send_message,
    };
    struct cc *cc = cc_create(&config);
    uint64_t now = 1000 * MS;

    must(slots && cc);
    while (size >= 3) {
        size_t n = (data[0] << 8 | data[1]) % 2048;
        uint8_t how = data[2];

        data += 3;
        size -= 3;
        n = n < size ? n : size;
        give(cc, data, n, how, now);
        now += (how >> 2) * MS / 4;
        cc_turn(cc, now);
        data += n;
        size -= n;
    }

    /* All flows are silent for three hours. */
    for (int i = 0; i < 3; i++) {
        now += 10800000 * MS;
        cc_turn(cc, now);
    }
    for (int i = 0; i < N_QUEUES; i++) {
        must(!used[i]);
    }
    cc_destroy(cc);
    job_slots_destroy(slots);
    return 0;
}
