/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LLDP_H
#define LLDP_H 1

/* Probe frames that verify where a cable leads.
 *
 * A probe is an LLDP frame, so that no standard bridge forwards it, with a TLV
 * of our own: the sending switch and port, the controller's session, a
 * sequence number, and an HMAC-SHA256 of these.  Other LLDP frames are
 * ignored.  No state. */

#include <stddef.h>
#include <stdint.h>

#define LLDP_MAX_SIZE 160
#define LLDP_ETH_TYPE 0x88cc
#define LLDP_ETH_DST { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e }

/* A key: the whole content of a file, in bytes. */
#define LLDP_MIN_KEY 16
#define LLDP_MAX_KEY 4096
struct lldp_key {
    uint8_t bytes[LLDP_MAX_KEY + 1];    /* One more to find larger files. */
    size_t n;
};

struct lldp_probe {
    uint64_t datapath;          /* Datapath id of the sending switch. */
    uint32_t port;              /* OpenFlow port that it leaves by. */
    uint64_t session;           /* Random id of the controller's run. */
    uint64_t number;            /* Per port and session, from 1. */
};

enum lldp_kind {
    LLDP_OURS,
    LLDP_OTHERS,                /* Without our TLV. */
    LLDP_FORGED,                /* With our TLV and an invalid code. */
};

/* Reads a key.  Returns NULL, or an error message that the caller frees. */
char *lldp_key_read(const char *file, struct lldp_key *);

/* Encodes a probe.  Returns the size of the frame. */
size_t lldp_encode(const struct lldp_probe *, const struct lldp_key *,
                   uint8_t frame[LLDP_MAX_SIZE]);

/* Decodes a frame.  The probe is set if the frame is ours. */
enum lldp_kind lldp_decode(const void *frame, size_t size,
                           const struct lldp_key *, struct lldp_probe *);

#endif /* controller/southbound/topology/lldp.h */
