/* SPDX-License-Identifier: Apache-2.0 */

/* An arbitrary capture in the shim's pipeline: each lost frame is counted,
 * only the DSCP and the header checksum of a frame change, a right checksum
 * stays right, frames leave in the order of time, and all packet buffers are
 * freed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/capture/file.h"
#include "shim/classify/parse.h"
#include "shim/ports/eal.h"
#include "shim/replay/replay.h"
#include "shim/replay/rules.h"
#include "tests/fuzz/must.h"

static const char text[] =
    "{\"host\": {\"addresses\": [\"10.0.0.1\", \"fd00::/16\"],"
    " \"macs\": [\"02:00:00:00:00:01\"]}, \"rate\": \"10Mbit\","
    " \"jobs\": [{\"name\": \"a/b\", \"level\": 1, \"dscp\": 46, \"flows\":"
    " [{\"remote_port\": 5001}, {\"local_port\": 5001}]}, {\"name\": \"c\","
    " \"level\": 6, \"flows\": [{\"protocol\": \"udp\"}]}]}";

static struct replay_rules *rules;
static struct replay *replay;

/* Sums of the hashes of all frames that entered less those that left; sums,
 * since levels change the order. */
static struct {
    uint64_t sum, right;        /* Of all frames, of those with right
                                 * checksums. */
    uint64_t n, n_out, now;
} seen;

/* Returns the offset of the IP header, 0 if it is missing or cut. */
static size_t
find_ip(const uint8_t *frame, uint32_t size, uint8_t *family)
{
    struct parsed p;

    parse_frame(frame, size, true, &p);
    *family = p.family;
    return p.kind == PARSED_MALFORMED ? 0 : p.l3;
}

static bool
has_right_checksum(const uint8_t *ip)
{
    uint32_t sum = 0;

    for (int i = 0; i < (ip[0] & 0xf) * 4; i += 2) {
        sum += ip[i] << 8 | ip[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

/* Returns a hash of the parts of 'frame' that the shim must not change. */
static uint64_t
hash(const struct capture_frame *frame, bool *is_right)
{
    uint8_t *whole = calloc(1, frame->length + 1), family;
    uint64_t h = frame->length;
    size_t ip;

    must(whole);
    memcpy(whole, frame->data, frame->captured);
    ip = find_ip(whole, frame->length, &family);
    *is_right = ip && family == 4 && has_right_checksum(whole + ip);
    if (ip && family == 4) {
        whole[ip + 1] &= 3;
        whole[ip + 10] = whole[ip + 11] = 0;
    } else if (ip) {
        whole[ip] &= 0xf0;
        whole[ip + 1] &= 0x3f;
    }
    for (uint32_t i = 0; i < frame->length; i++) {
        h = (h ^ whole[i]) * 0x100000001b3;
        h ^= h >> 31;
    }
    free(whole);
    return h * 0x9e3779b97f4a7c15;
}

static void
leave(const struct capture_frame *frame, bool to_host, void *aux)
{
    bool is_right;
    uint64_t h;

    must(frame->time >= seen.now);
    seen.now = frame->time;
    must(frame->number && frame->captured <= frame->length);

    /* The bytes that were not captured must be zeros. */
    h = hash(frame, &is_right);
    seen.sum -= h;
    seen.right -= is_right ? h : 0;
    seen.n_out++;
}

static void
prepare(void)
{
    must(!replay_rules_parse("rules", text, &rules));
    must(!eal_init_offline(replay_memory(rules)));
    must(!replay_create(rules, leave, NULL, &replay));
    atexit(eal_uninit);         /* Removes its folder. */
}

static void
put(const struct capture_frame *frame)
{
    struct replay_counts before, after;
    bool is_right;
    uint64_t h = 0;

    replay_counts(replay, &before);
    if (frame->length <= 2000) {
        h = hash(frame, &is_right);
        seen.sum += h;
        seen.right += is_right ? h : 0;
    }
    replay_frame(replay, frame);
    seen.n++;
    replay_counts(replay, &after);
    if (h && (after.skipped + after.too_long
              != before.skipped + before.too_long)) {
        seen.sum -= h;
        seen.right -= is_right ? h : 0;
    }
}

static void
check(void)
{
    struct replay_counts c;

    replay_finish(replay);
    replay_counts(replay, &c);
    must(c.in == seen.n && !c.queued && c.sent + c.delivered == seen.n_out);
    must(c.in == c.sent + c.delivered + c.skipped + c.too_long
         + c.queue_dropped + c.port_dropped);
    if (!c.queue_dropped && !c.port_dropped) {
        /* With drops the sums are not known. */
        must(!seen.sum && !seen.right);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct capture_reader *reader;
    struct capture_frame frame;
    char *error;
    FILE *stream;

    if (!size) {
        return 0;
    }
    if (!replay) {
        prepare();
    }
    if (seen.n) {               /* Slower than most inputs. */
        replay_rewind(replay, rules);
    }
    memset(&seen, 0, sizeof seen);
    stream = fmemopen((void *) (uintptr_t) data, size, "r");
    must(stream);
    error = capture_open_stream("in", stream, &reader);
    while (!error && !(error = capture_next(reader, &frame)) && frame.data) {
        put(&frame);
    }
    if (error) {
        must_be_message(error, "in: ");
        free(error);
    }
    check();
    capture_close(reader);
    return 0;
}
