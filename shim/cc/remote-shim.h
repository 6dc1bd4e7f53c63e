/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_REMOTE_SHIM_H
#define SHIM_CC_REMOTE_SHIM_H 1

/* Table of the remote hosts, and which of them have a shim.
 *
 * A message to another shim needs the two addresses and the Ethernet header of
 * this host's packets to it, and the nonce that the remote shim expects.  It
 * may be sent only after a valid hello of that shim.  The nonce that this shim
 * expects differs between remote shims, so that none can pose as another.
 *
 * All flows between two hosts share a record and its round trip: the paths of
 * a fabric differ by less than the time that packets wait in the sender's
 * shim.  The table is bounded.  A new host replaces one without packets for a
 * minute, or gets no record: then only windows limit its flows.
 *
 * The table owns its records, which do not move.  One thread.  Nothing is
 * allocated after the start. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/cc/estimate.h"
#include "shim/cc/grant-message.h"
#include "shim/cc/hello.h"
#include "shim/cc/takeover-state.h"
#include "wire/shim-protocol.h"

#define CC_MAX_REMOTES 512

struct remote_shim {
    struct takeover_remote kept;        /* Survives a takeover.  'family' 0:
                                         * the record is free. */
    uint64_t last;              /* Time of the last packet. */
    uint64_t hello_at;          /* Time of the last hello on an ACK to it. */
    uint8_t n_hellos;           /* Hellos on ACKs without a reply. */
    struct cc_rtt rtt;          /* Of all its flows. */
    bool silent;                /* It has not answered GRANT_WAITING, and has
                                 * sent no grant since. */
    bool due;                   /* Grants are to be sent to it. */
    struct grant_message message;       /* Being written. */
};

/* All zeros initially, except 'seed'. */
struct remote_shims {
    struct remote_shim records[CC_MAX_REMOTES];
    uint64_t seed;              /* Random: of hashes and nonces. */
};

/* Returns the record for a flow's remote host, NULL if there is none and,
 * unless 'add', none is added, or there is no space. */
struct remote_shim *remote_shims_find(struct remote_shims *,
                                      const struct shim_flow_key *,
                                      uint64_t now, bool add);

/* Notes a packet of a flow that has the record.  Returns false if the record
 * has become that of another host. */
bool remote_shim_seen(struct remote_shim *, const struct shim_flow_key *,
                      uint64_t now);

/* A valid hello has arrived. */
void remote_shim_verify(struct remote_shim *, uint8_t flags, uint32_t nonce);

/* Keeps the Ethernet header of a frame to the host, the first 'l3' bytes. */
void remote_shim_learn_l2(struct remote_shim *, const uint8_t *frame,
                          uint16_t l3);

#endif /* shim/cc/remote-shim.h */
