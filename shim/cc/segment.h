/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_SEGMENT_H
#define SHIM_CC_SEGMENT_H 1

/* TCP segments: parses them and changes their headers.
 *
 * segment_parse() checks all offsets once.  Each change updates the checksum
 * by the difference (RFC 1624), so that a wrong one stays wrong.  Segments
 * behind IPv6 extension headers and in fragments are not recognized.
 *
 *    if (segment_parse(data, length, true, &seg)) {
 *        segment_set_window(data, &seg, seg.window / 2);
 *    }
 *
 * Pure functions over the caller's memory. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/classify/parse.h"
#include "wire/shim-protocol.h"

enum {
    SEGMENT_FIN = 1,
    SEGMENT_SYN = 2,
    SEGMENT_RST = 4,
    SEGMENT_PSH = 8,
    SEGMENT_ACK = 16,
    SEGMENT_ECE = 64,
    SEGMENT_CWR = 128,
};

enum { SEGMENT_NOT_ECT = 0, SEGMENT_ECT_0 = 2, SEGMENT_CE = 3 };

struct segment {
    struct shim_flow_key key;
    uint16_t l3, l4;            /* Offsets in the frame. */
    uint8_t family;             /* 4 or 6. */
    uint8_t header;             /* Bytes of TCP header, with options. */
    uint8_t flags;              /* SEGMENT_*. */
    uint8_t ecn;                /* IP's two bits. */
    uint16_t window;            /* Not scaled. */
    uint32_t seq, ack;
    uint32_t payload;           /* Bytes. */
};

/* TCP options; 0 means that an option is missing. */
struct segment_options {
    uint16_t mss;
    uint16_t scale_at;          /* Offset of the scale in the frame. */
    uint8_t scale;
    bool has_timestamp;
    uint32_t ts_value, ts_echo;
    uint16_t hello_at;          /* Offset of the option of hello.h. */
    uint8_t hello_size;         /* Its bytes. */
};

/* Returns false if the frame is not a TCP segment with complete, valid
 * headers. */
bool segment_parse(const uint8_t *frame, size_t length, bool from_host,
                   struct segment *);

/* Reads the options up to the first that is malformed. */
void segment_options(const uint8_t *frame, const struct segment *,
                     struct segment_options *);

/* Writes 16 bits at 'at', an even number of bytes from the TCP header. */
void segment_set_16(uint8_t *frame, const struct segment *, uint16_t at,
                    uint16_t value);
void segment_set_window(uint8_t *frame, struct segment *, uint16_t window);

/* Writes a byte of the TCP header. */
void segment_set_byte(uint8_t *frame, const struct segment *, uint16_t at,
                      uint8_t value);

/* Writes the two ECN bits of IP. */
void segment_set_ecn(uint8_t *frame, struct segment *, uint8_t ecn);

/* Limit of the receive window that a TCP sender sees.  Whatever its congestion
 * control, a sender may not send beyond the right edge (acknowledgment number
 * + window) that its receiver has advertised.  So the receiver's shim limits
 * the bytes in flight by lowering the window in its host's ACKs, by these
 * rules:
 *
 *   - The right edge never moves left: a lower limit takes effect as data
 *     arrive, within a round trip.
 *   - A window is never lowered to 0: the sender would wait for its persist
 *     timer (200 ms).  The host's own 0 is not changed.
 *   - If a SYN was missed, the window scale is not known, and nothing is
 *     changed.
 *   - A window scale above CC_WINDOW_MAX_SHIFT is lowered in the SYN, and each
 *     later window is translated: one unit of a coarse scale may be more than
 *     a flow's share.
 *
 * 'w' is initially all zeros. */
#define CC_WINDOW_LARGEST_SHIFT 14 /* RFC 7323, section 2.3. */
#define CC_WINDOW_MAX_SHIFT 10
#define CC_WINDOW_ANY UINT32_MAX

struct cc_window {
    uint32_t edge; /* Farthest right edge advertised. */
    bool has_edge; /* 'edge' is valid. */
    bool host_syn_seen, remote_syn_seen;
    bool host_scales, remote_scales; /* The SYN had a window scale. */
    uint8_t host_shift;              /* Window scale that the host uses. */
    uint8_t wire_shift; /* Window scale that the remote end uses. */
};

/* Learns the host's window scale, and lowers it in the SYN. */
void cc_window_syn(struct cc_window *, uint8_t *frame, struct segment *,
                   const struct segment_options *);
void cc_window_remote_syn(struct cc_window *, const struct segment_options *);

/* Returns true if both SYNs were seen. */
bool cc_window_known(const struct cc_window *);

/* Returns true if the window scale on the wire differs from the host's, so
 * that windows must be rewritten. */
bool cc_window_translates(const struct cc_window *);

/* Limits the window in a segment of the host, not a SYN, to 'limit' bytes,
 * CC_WINDOW_ANY for no limit.  Returns true if it was lowered. */
bool cc_window_apply(struct cc_window *, uint8_t *frame, struct segment *,
                     uint32_t limit);

/* Returns the checksum of a header with 'sum' in which 'old' becomes 'new'. */
uint16_t checksum_change(uint16_t sum, uint16_t old, uint16_t new);

/* Returns the checksum of bytes and of 'start', a sum of words. */
uint16_t checksum_of(const void *, size_t, uint32_t start);

static inline uint32_t
get_be32(const uint8_t *p)
{
    return (uint32_t) get_be16(p) << 16 | get_be16(p + 2);
}

static inline uint64_t
get_be64(const uint8_t *p)
{
    return (uint64_t) get_be32(p) << 32 | get_be32(p + 4);
}

static inline void
put_be16(uint8_t *p, uint16_t value)
{
    p[0] = value >> 8;
    p[1] = value;
}

static inline void
put_be32(uint8_t *p, uint32_t value)
{
    put_be16(p, value >> 16);
    put_be16(p + 2, value);
}

static inline void
put_be64(uint8_t *p, uint64_t value)
{
    put_be32(p, value >> 32);
    put_be32(p + 4, value);
}

#endif /* shim/cc/segment.h */
