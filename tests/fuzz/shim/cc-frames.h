/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FUZZ_CC_FRAMES_H
#define FUZZ_CC_FRAMES_H 1

/* Congestion control without the uplink's queues, which are replaced here,
 * with arbitrary frames. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cc/cc.h"
#include "shim/cc/message.h"
#include "shim/classify/classify.h"
#include "shim/classify/job-slot.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/rank-queue.h"
#include "tests/fuzz/must.h"

#define LINK UINT64_C(100000000)
#define N_QUEUES 8
#define MS UINT64_C(1000000)

static bool used[N_QUEUES], starts[N_QUEUES];

struct job_queues *
rank_queues_jobs(struct rank_queues *rq)
{
    return (struct job_queues *) rq;
}

uint16_t
job_queues_flow_new(struct job_queues *jq, uint16_t slot)
{
    for (uint16_t i = 1; i < N_QUEUES; i++) {
        if (!used[i]) {
            used[i] = true;
            return i;
        }
    }
    return 0;
}

void
job_queues_flow_free(struct job_queues *jq, uint16_t queue)
{
    must(queue && queue < N_QUEUES && used[queue]);
    used[queue] = false;
}

void
rank_queues_flow_rate(struct rank_queues *rq, uint64_t now, uint16_t queue,
                      uint64_t bps)
{
    must(queue && queue < N_QUEUES && used[queue]);
    starts[queue] = false;
}

void
job_queues_flow_start(struct job_queues *jq, uint64_t now, uint16_t queue,
                      uint32_t bytes)
{
    must(bytes && queue && queue < N_QUEUES && used[queue]);
    starts[queue] = true;
}

/* The first bytes of a burst have always left. */
bool
job_queues_flow_started(const struct job_queues *jq, uint64_t now,
                        uint16_t queue)
{
    must(queue && queue < N_QUEUES && used[queue]);
    return starts[queue];
}

bool
job_queues_flow_empty(const struct job_queues *jq, uint16_t queue)
{
    must(queue && queue < N_QUEUES && used[queue]);
    return true;
}

uint64_t
job_queues_flow_late(const struct job_queues *jq, uint64_t now, uint16_t queue)
{
    must(queue && queue < N_QUEUES && used[queue]);
    return queue % 2 * 10000000;
}

static inline void
send_message(void *aux, const uint8_t *frame, size_t length)
{
    must(frame && length > 14 && length < 700);
}

/* Passes on a copy of the frame, so that accesses beyond it are detected. */
static inline void
give(struct cc *cc, const uint8_t *data, size_t size, uint8_t how,
     uint64_t now)
{
    uint8_t *memory = malloc(HELLO_BYTES + size);
    struct cc_frame frame = {
        .data = memory + HELLO_BYTES,
        .length = size,
        .headroom = HELLO_BYTES,
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
         == memory + HELLO_BYTES + size);
    free(memory);
}

static inline struct cc *
create_cc(const struct job_slots *slots)
{
    struct cc_config config = {
        .slots = slots,
        .downlink_bps = LINK,
        .uplink_bps = LINK,
        .secret = { 1 },
        .mtu = 1500,
        .max_flows = 8,
        .control_ports = { 7000 },
        .send = send_message,
    };
    struct cc *cc = cc_create(&config);

    must(slots && cc);
    return cc;
}

/* Passes on a sequence of frames.  Each has a head of three bytes: two of its
 * length, one of its direction and delay.  Returns the time of the last. */
static inline uint64_t
give_all(struct cc *cc, const uint8_t *data, size_t size, uint64_t now)
{
    while (size >= 3) {
        size_t n = (data[0] << 8 | data[1]) % 2048;
        uint8_t how = data[2];

        data += 3;
        size -= 3;
        n = n < size ? n : size;
        give(cc, data, n, how, now);
        now += (how >> 2) * MS / 4;
        cc_poll(cc, now);
        data += n;
        size -= n;
    }
    return now;
}

/* After three silent hours all queues must have been released. */
static inline void
destroy_cc(struct cc *cc, uint64_t now)
{
    for (int i = 0; i < 3; i++) {
        now += 10800000 * MS;
        cc_poll(cc, now);
    }
    for (int i = 0; i < N_QUEUES; i++) {
        must(!used[i]);
    }
    cc_destroy(cc);
}

#endif /* tests/fuzz/shim/cc-frames.h */
