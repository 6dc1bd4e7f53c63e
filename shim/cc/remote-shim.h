/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_REMOTE_SHIM_H
#define SHIM_CC_REMOTE_SHIM_H 1

/* Table of the remote hosts, and which of them have a shim that is believed.
 *
 * A message to another shim needs the two addresses and the Ethernet header of
 * this host's packets to it, the nonce that the remote shim expects, and a key
 * that only the two have.  Where the agent gives keys (SHIM_KEYS), the pair of
 * hosts has one, by the controller: a host without one is not believed, and a
 * host that has one can only write messages about flows between the two.  A
 * new key is used when a message with it has arrived or REMOTE_USE_NS have
 * passed, and the previous one counts for REMOTE_OLD_NS, since both hosts do
 * not get it at the same time.
 *
 * Without a controller the two nonces are the key, and they are the previous
 * one of shims that are verified when the first keys come.  A shim's nonce is
 * the SipHash of the two addresses and the time under a random key of its own,
 * so that none follows from others.  It is in hellos and messages to the
 * remote host: a process that sees these can forge messages between the two.
 *
 * A shim is verified once a message with the right hash and this shim's nonce
 * has arrived.  A hello in a segment makes this shim ask by such a message.
 * The number of a message must be new: larger than all before, or one of the
 * last 64 that has not arrived.  Numbers continue after a takeover and begin
 * at the time of the clock, so that no message of an earlier shim is new.  The
 * remote shim's nonce changes only by a message with a larger number.
 *
 * A verified shim is believed to pace by its grants.  If more than 1.25 times
 * as much arrives for 200 ms, only windows limit its flows for 10 s.
 *
 * All flows between two hosts share a record and its round trip: the paths of
 * a fabric differ by less than the time that packets wait in the sender's
 * shim, and queues make samples longer, never shorter, so that the shortest
 * one of the last seconds counts.  The table is bounded, and the jobs share it
 * (record-table.h): a record counts for the one of its jobs that has the
 * fewest.  The record of a host without packets for a minute is removed.  If
 * there is no space, only windows limit the flows.
 *
 * One thread, but for keys and lists, which remote_shims_run() takes and
 * gives.  Nothing is allocated after the start.  Times are nanoseconds of a
 * monotonic clock. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/cc/cc.h"
#include "shim/cc/message.h"
#include "shim/cc/record-table.h"
#include "shim/cc/takeover-state.h"
#include "wire/shim-protocol.h"

#define MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define REMOTE_USE_NS (5 * NS_PER_S)
#define REMOTE_OLD_NS (60 * NS_PER_S)

struct cc_rtt {
    uint64_t min, older; /* Shortest in this period, in the last one. */
    uint64_t since;      /* Start of this period. */
};

/* Adds a sample unless it is 0. */
void cc_rtt_sample(struct cc_rtt *, uint64_t rtt, uint64_t now);

/* Returns the shortest recent round trip, a default before the first. */
uint64_t cc_rtt_get(const struct cc_rtt *);

/* Data of a remote host and its grants, in bytes, by periods. */
struct obedience {
    uint64_t since;    /* Start of the period. */
    double arrived;    /* In this period. */
    double granted[3]; /* In this period and those before. */
    uint8_t exceeded;  /* Periods with more than was granted, less
                        * those without. */
    uint64_t until;    /* End of the distrust, 0: it is trusted. */
};

struct remote_shim {
    struct record record;
    struct takeover_remote kept; /* Survives a takeover. */
    uint64_t hello_at;           /* Time of the last hello on an ACK to it. */
    uint8_t n_hellos;            /* Hellos on ACKs without a reply. */
    uint64_t hint;      /* Nonce of its last hello in a segment, or of a
                         * message that had an old one; 0: none. */
    uint8_t asks;       /* GRANT_HELLO that may still be sent. */
    uint64_t asked_at;  /* Time of the last one. */
    struct cc_rtt rtt;  /* Of all its flows. */
    bool silent;        /* It has not answered GRANT_WAITING, and has
                         * sent no grant since. */
    bool due;           /* Grants are to be sent to it. */
    uint32_t refused;   /* Messages with a wrong hash. */
    uint32_t disobeyed; /* How often it was distrusted. */
    struct obedience obedience;
    struct grant_message message;     /* Of the list that is being written. */
    bool is_writing;                  /* A list is being written. */
    struct remote_shim *next_writing; /* Next one with a list, or NULL. */
};

/* Keys of remote addresses. */
struct key_table {
    size_t n;
    struct shim_key keys[2 * CC_MAX_PEERS];
};

struct remote_shims {
    struct record_table table;      /* Contains struct remote_shim. */
    uint8_t secret[SHIM_KEY_BYTES]; /* Random: of nonces. */
    uint64_t number;                /* Of the first message to a new host, at
                                     * time 0; it grows by 1 in a microsecond. */
    bool managed;                   /* Keys have come. */
    uint64_t n_refused, n_repeated; /* Messages with a wrong hash, and ones
                                     * that were not new: counters. */
    struct key_table keys;          /* In force, sorted. */

    struct key_table all; /* Of the control thread: the newest last. */

    /* Between the threads, under 'lock'; 'asked': the thread of the records is
     * to do something there. */
    pthread_mutex_t lock;
    bool asked;
    bool has_keys, wants_list, has_list;
    struct key_table new_keys; /* Sorted. */
    uint32_t n_list;
    struct shim_peer list[CC_MAX_PEERS];
};

void remote_shims_init(struct remote_shims *, const struct cc_config *);
void remote_shims_uninit(struct remote_shims *);

static inline struct remote_shim *
remote_at(const struct remote_shims *p, uint32_t i)
{
    return (struct remote_shim *) record_at(&p->table, i);
}

/* Return the record for the remote host of a flow, or NULL.  _add() adds one,
 * for the job of 'slot'. */
struct remote_shim *remote_shims_find(const struct remote_shims *,
                                      const struct shim_flow_key *);
struct remote_shim *remote_shims_add(struct remote_shims *,
                                     const struct shim_flow_key *,
                                     uint16_t slot, uint64_t now);

/* Notes a packet of a flow of 'slot' that has the record. */
static inline void
remote_shims_share(struct remote_shims *p, struct remote_shim *rs,
                   uint16_t slot, uint64_t now)
{
    const struct shares_user *users = p->table.users;

    rs->record.last = now;
    if (slot != rs->record.slot
        && users[slot].n + 1 < users[rs->record.slot].n) {
        record_table_move(&p->table, &rs->record, slot);
    }
}

/* Takes keys, gives lists, and checks the next few records: one that is old is
 * removed.  Returns a record of a shim that must be asked for an answer, or
 * NULL. */
struct remote_shim *remote_shims_run(struct remote_shims *, uint64_t now);

/* Returns true if messages to the shim and its pacing count. */
static inline bool
remote_shim_is_trusted(const struct remote_shim *rs)
{
    return rs->kept.verified && rs->kept.l2_size && !rs->obedience.until;
}

/* A hello was seen.  'again': the remote shim does not know this one. */
void remote_shim_hint(struct remote_shim *, uint64_t nonce, bool again);

/* Returns true if the shim is to be asked for an answer now: a few times after
 * a hint or a new key. */
bool remote_shim_asks(struct remote_shim *, uint64_t now);

/* Stores the key for a message to the shim with the nonce 'to'.  Returns false
 * without a key. */
bool remote_shim_key(const struct remote_shim *, uint64_t to, uint64_t now,
                     uint8_t key[SHIM_KEY_BYTES]);

/* Returns true if 'm', a message of 'bytes', is right and new: then the shim
 * is verified.  Counts others. */
bool remote_shim_check(struct remote_shims *, struct remote_shim *,
                       const uint8_t *bytes, const struct grant_message *m,
                       uint64_t now);

/* Counts 'arrived' and 'granted' bytes of its flows.  With 'mtu', checks the
 * period if it has ended: returns true if the shim is no longer trusted. */
bool remote_shim_count(struct remote_shim *, double arrived, double granted,
                       uint32_t mtu, uint64_t now);

/* Keeps the Ethernet header of a frame to the host, the first 'l3' bytes. */
void remote_shim_learn_l2(struct remote_shim *, const uint8_t *frame,
                          uint16_t l3);

/* The control thread: remote_shims_set_keys() adds, replaces and removes keys,
 * and remote_shims_list() copies the remote hosts, as of an earlier call, to
 * an array of CC_MAX_PEERS.  Returns false before the first list. */
void remote_shims_set_keys(struct remote_shims *, const struct shim_key *,
                           size_t n);
bool remote_shims_list(struct remote_shims *, struct shim_peer *, size_t *n);

#endif /* shim/cc/remote-shim.h */
