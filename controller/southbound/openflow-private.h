/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OPENFLOW_PRIVATE_H
#define OPENFLOW_PRIVATE_H 1

/* What the parts of the OpenFlow driver share: openflow.c connects and keeps
 * time, openflow-handle.c takes what the switch says, openflow-report.c tells
 * of it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bitmap.h"
#include "controller/southbound/openflow.h"
#include "openflow/openflow-common.h"
#include "openvswitch/ofp-msgs.h"
#include "openvswitch/types.h"
#include "util.h"

struct dial;
struct flow_table;
struct json;
struct ofpbuf;
struct rconn;
struct rconn_packet_counter;

enum openflow_state {
    ST_AWAY,                    /* Not connected. */
    ST_FEATURES,                /* Asked who it is. */
    ST_ROLE,                    /* Asked to be primary. */
    ST_PORTS,                   /* Asked for its ports.  Up to here it is
                                 * none of ours yet. */
    ST_IDLE,                    /* Primary; next dump at 'next'. */
    ST_GROUPS,                  /* Asked for its groups, */
    ST_FLOWS,                   /* then for its flows. */
    ST_REFUSED,                 /* One does not want the other. */
};

struct openflow {
    struct driver up;
    char *target;
    struct dial *dial;          /* Where connections come from, */
    struct rconn *rconn;        /* and what keeps the one that there is. */
    struct rconn_packet_counter *packets;       /* Sent, not yet gone. */
    struct driver_events events;
    void *aux;
    unsigned int seqno;         /* Of the connection 'state' speaks of. */
    bool active;                /* There was a want(), and no leave(). */
    uint64_t generation;
    uint64_t datapath;
    enum openflow_state state;
    char *reason;               /* Of ST_REFUSED. */
    ovs_be32 xid;               /* Of the request that 'state' waits for. */
    long long int deadline;     /* For its answer. */
    long long int next;         /* Dump, or try, depending on 'state'. */
    bool in_sync;               /* The last dump was as wanted. */
    unsigned int failed;        /* Dumps that showed that what was sent has
                                 * not got there, one after the other. */
    bool sent;                  /* Changes, since the last dump. */
    uint32_t bundle_id;         /* Of the last bundle. */
    struct flow_table *wanted;
    struct flow_table *there;   /* As the last dump has it. */
    size_t n_applied;           /* How many of 'wanted' are 'there'. */
    struct flow_table *dump;    /* That is coming in, or NULL. */
    unsigned int links;         /* Grows with each change of 'down'. */
    unsigned long down[BITMAP_N_LONGS(OPENFLOW_MAX_PORTS)];
};

static inline struct openflow *
openflow_cast(const struct driver *driver)
{
    return CONTAINER_OF(CONST_CAST(struct driver *, driver),
                        struct openflow, up);
}

enum ofp_version openflow_version(const struct openflow *);

/* Sends 'msg' and makes its answer the one that 'state' waits for. */
void openflow_request(struct openflow *, struct ofpbuf *msg,
                      enum openflow_state);

/* The type of answer that a state waits for, OFPTYPE_HELLO for none. */
enum ofptype openflow_answer_type(enum openflow_state);

/* Takes what the switch has said. */
void openflow_handle(struct openflow *, struct ofpbuf *msg);

void openflow_get_status(const struct driver *, struct driver_status *);
struct json *openflow_to_json(const struct driver *);

#endif /* controller/southbound/openflow-private.h */
