/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PRIVATE_H
#define SHIM_PRIVATE_H 1

/* A shim's actuator, for its own files: shim.c keeps the connection and tells
 * the shim what is wanted, shim-answers.c asks it and takes what it says. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/actuate/actuator.h"
#include "agent/actuate/flow-set.h"
#include "agent/actuate/slot-table.h"
#include "agent/actuate/traffic.h"
#include "agent/actuate/watched.h"
#include "wire/shim-protocol.h"

struct bypass;
struct shim_client;

struct shim_actuator {
    struct actuator up;
    char *path;
    const struct actuator_events *events;
    void *aux;

    struct shim_client *conn;    /* NULL while away. */
    int last_error;             /* Why it is away, so that each reason is
                                 * logged once; -1 before the first try. */
    unsigned int needs;         /* NEED_* of shim-answers.c: lists to come. */
    struct bypass *bypass;
    uint64_t page;              /* Of flows that is to come, 0: the first. */
    struct shim_hello hello;    /* Of this connection; the rate outlives it. */

    struct slot_table slots;
    struct flow_set flows;
    uint64_t queued_bytes;      /* In the shim, as it told last. */
    struct shim_stats stats;    /* The same. */
    struct traffic traffic;
    struct watched watched;
    bool slots_dirty;
    int n_unanswered;           /* Changes of tables without a reply yet. */

    long long lease_until;      /* LLONG_MIN before the first set_lease(). */
    uint8_t default_dscp;
    bool lease_dirty;           /* To be sent out of turn. */
    uint32_t guard;             /* As in struct shim_guard. */
    bool guard_dirty;
    struct shim_congestion congestion;
    bool congestion_dirty;

    long long next_connect, next_stats, next_lease, next_sync;
    long long heard;            /* Last message, or when none was owed. */

    /* Too large for the stack. */
    struct slot_changes slot_changes;
    struct flow_changes flow_changes;
};

/* The connection must be there. */
void shim_request(struct shim_actuator *, enum shim_msg_type,
                  const void *body, size_t size);

/* The same; 'now' is time_msec().  A positive errno value of shim_receive()
 * says that the connection is of no more use. */
void shim_ask_for_tables(struct shim_actuator *);
void shim_ask_for_counters(struct shim_actuator *, long long now);
int shim_receive(struct shim_actuator *, long long now);

#endif /* agent/actuate/shim-private.h */
