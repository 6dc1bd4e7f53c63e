/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/tag.h"

void
tag_ipv4(uint8_t *ip, uint8_t dscp)
{
    uint16_t old_word = ip[0] << 8 | ip[1];
    uint8_t tos = dscp << 2 | (ip[1] & 3);
    uint16_t new_word = ip[0] << 8 | tos;
    uint32_t sum;

    if (old_word == new_word) {
        return;
    }

    /* HC' = ~(~HC + ~m + m'), in one's complement arithmetic. */
    sum = (uint16_t) ~(ip[10] << 8 | ip[11]);
    sum += (uint16_t) ~old_word;
    sum += new_word;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~sum;

    ip[1] = tos;
    ip[10] = sum >> 8;
    ip[11] = sum;
}

void
tag_ipv6(uint8_t *ip, uint8_t dscp)
{
    /* Version, traffic class and flow label share the first four bytes. */
    ip[0] = (ip[0] & 0xf0) | dscp >> 2;
    ip[1] = (dscp & 3) << 6 | (ip[1] & 0x3f);
}
