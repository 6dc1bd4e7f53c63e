/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/tag.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shim/classify/classify.h"

/* The one's complement sum is the same in either byte order, so the words are
 * read and written without conversion. */
inline void
tag_ipv4(uint8_t *ip, uint8_t dscp)
{
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    uint16_t old, check, new;
    uint32_t becomes;
    int32_t sum;

    memcpy(&old, ip, sizeof old);
    memcpy(&check, ip + 10, sizeof check);
    becomes = (little ? (old & 0x03ff) | dscp << 10
               : (old & 0xff03) | dscp << 2);
    if (old == becomes) {
        return;
    }
    new = becomes;

    /* HC' = HC - ~m - m' in one's complement arithmetic, where a borrow or
     * carry of bit 15 goes to bit 0. */
    sum = check + old - becomes;
    check = sum + (sum >> 16);
    memcpy(ip, &new, sizeof new);
    memcpy(ip + 10, &check, sizeof check);
}

void
tag_ipv6(uint8_t *ip, uint8_t dscp)
{
    /* Version, traffic class and flow label share the first four bytes. */
    ip[0] = (ip[0] & 0xf0) | dscp >> 2;
    ip[1] = (dscp & 3) << 6 | (ip[1] & 0x3f);
}

/* Returns true if a packet that 't' applies to keeps the DSCP 'old'. */
static inline bool
keeps_dscp(struct treatment t, uint8_t old, uint64_t levels)
{
    return t.is_default && !((levels >> old | levels >> t.dscp) & 1);
}

static void
tag_ip(uint8_t *ip, uint8_t family, struct treatment t, uint64_t levels)
{
    if (family == 4 && !keeps_dscp(t, ip[1] >> 2, levels)) {
        tag_ipv4(ip, t.dscp);
    } else if (family == 6
               && !keeps_dscp(t, (ip[0] & 0xf) << 2 | ip[1] >> 6, levels)) {
        tag_ipv6(ip, t.dscp);
    }
}

void
tag_frame(uint8_t *frame, size_t length, struct treatment t, uint64_t levels)
{
    struct parsed p;

    parse_frame(frame, length, true, &p);
    if (p.kind != PARSED_MALFORMED) {
        tag_ip(frame + p.l3, p.family, t, levels);
    }
}

/* Returns true for IPv4 right after the Ethernet header. */
static inline bool
is_common(const struct verdict *v)
{
    static const struct verdict common = { .l3 = PARSE_COMMON_L3,
                                           .family = 4, .is_ip = true };

    return !memcmp(&v->l3, &common.l3, sizeof(uint32_t));
}

_Static_assert(offsetof(struct verdict, queue)
               == offsetof(struct verdict, l3) + sizeof(uint32_t),
               "is_common() compares three members");

/* Writes the DSCP of its verdict into each of 'n' packets, except of those
 * that keep theirs. */
void
tag_burst(const struct packet *packets, const struct verdict *v, uint32_t n,
          uint64_t levels)
{
    const struct packet *end = packets + n;

    for (; packets < end; packets++, v++) {
        if (__builtin_expect(is_common(v), 1)) {
            uint8_t *ip = packets->data + PARSE_COMMON_L3;

            if (!keeps_dscp(v->treatment, ip[1] >> 2, levels)) {
                tag_ipv4(ip, v->treatment.dscp);
            }
        } else {
            tag_ip(packets->data + v->l3, v->family, v->treatment, levels);
        }
    }
}
