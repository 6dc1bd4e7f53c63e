/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/tag.h"

#include <stdbool.h>
#include <string.h>

#include "shim/pipeline/classify.h"

/* The sum is the same in either byte order, so the words are taken as they
 * are, each in one access. */
static inline void
write_ipv4(uint8_t *ip, uint8_t dscp)
{
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    uint16_t old, check, new;
    int32_t sum;

    memcpy(&old, ip, sizeof old);
    memcpy(&check, ip + 10, sizeof check);
    new = little ? (old & 0x03ff) | dscp << 10 : (old & 0xff03) | dscp << 2;
    if (old == new) {
        return;
    }

    /* HC' = HC - ~m - m', in one's complement arithmetic: what is borrowed or
     * carried over at 16 bits is taken off or added at the other end. */
    sum = check + old - new;
    check = sum + (sum >> 16);
    memcpy(ip, &new, sizeof new);
    memcpy(ip + 10, &check, sizeof check);
}

void
tag_ipv4(uint8_t *ip, uint8_t dscp)
{
    write_ipv4(ip, dscp);
}

void
tag_ipv6(uint8_t *ip, uint8_t dscp)
{
    /* Version, traffic class and flow label share the first four bytes. */
    ip[0] = (ip[0] & 0xf0) | dscp >> 2;
    ip[1] = (dscp & 3) << 6 | (ip[1] & 0x3f);
}

void
tag_frame(uint8_t *frame, size_t length, uint8_t dscp)
{
    struct parsed p;

    parse_frame(frame, length, true, &p);
    if (p.kind == PARSED_MALFORMED) {
        return;
    }
    if (p.family == 4) {
        tag_ipv4(frame + p.l3, dscp);
    } else if (p.family == 6) {
        tag_ipv6(frame + p.l3, dscp);
    }
}

/* Writes into each of the 'n' packets what its verdict says. */
void
tag_burst(const struct packet *packets, const struct verdict *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *ip = packets[i].data + v[i].l3;

        if (__builtin_expect(v[i].family == 4, 1)) {
            write_ipv4(ip, v[i].treatment.dscp);
        } else if (v[i].family == 6) {
            tag_ipv6(ip, v[i].treatment.dscp);
        }
    }
}
