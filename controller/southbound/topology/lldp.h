/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LLDP_H
#define LLDP_H 1

/* The frames by which the controller looks where a cable goes.
 *
 * They are LLDP's, so that no bridge of the standard forwards them, with a
 * field of our own: which controller sent the frame and the how manieth it is,
 * and a code over all of it (HMAC-SHA256) that nobody without the key can
 * make.  What is in the frame of another is of no interest.
 *
 * No state. */

#include <stddef.h>
#include <stdint.h>

#define LLDP_MAX_SIZE 160
#define LLDP_ETH_TYPE 0x88cc
#define LLDP_ETH_DST { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e }

/* A key: what is in a file, all of it. */
#define LLDP_MIN_KEY 16
#define LLDP_MAX_KEY 4096
struct lldp_key {
    uint8_t bytes[LLDP_MAX_KEY];
    size_t n;
};

/* What a frame says. */
struct lldp_probe {
    uint64_t datapath;          /* Whom it was given to, */
    uint32_t port;              /* to be sent from here. */
    uint64_t session;           /* Of the controller that sent it. */
    uint64_t number;            /* 1 for the port's first in the session. */
};

enum lldp_kind {
    LLDP_OURS,
    LLDP_OTHERS,                /* Nobody says that it is ours. */
    LLDP_FORGED,                /* Somebody says so, and it is not. */
};

/* Reads a key.  Returns NULL, or a message "FILE: what is wrong and what is
 * allowed" that the caller frees. */
char *lldp_key_read(const char *file, struct lldp_key *);

/* Returns the size of the frame. */
size_t lldp_encode(const struct lldp_probe *, const struct lldp_key *,
                   uint8_t frame[LLDP_MAX_SIZE]);

/* Fills in the probe if the frame is ours. */
enum lldp_kind lldp_decode(const void *frame, size_t size,
                           const struct lldp_key *, struct lldp_probe *);

#endif /* controller/southbound/topology/lldp.h */
