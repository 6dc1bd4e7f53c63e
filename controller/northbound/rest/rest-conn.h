/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_CONN_H
#define REST_CONN_H 1

/* Connections of HTTP clients: one request after the other, in time.
 *
 *
 * Motivation
 * ==========
 *
 * libmicrohttpd calls the functions here for each connection, for each piece
 * of a request, and for its end.  A request has REST_REQUEST_MS from its first
 * byte to its answer's last; a connection that follows events has as long for
 * each of them.  A request whose change waits for the database, and a stream
 * in which nothing happens, are suspended: then they cost nothing.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A connection lives from one call of rest_conn_changed() to the other; a
 * change in the intent writer that outlives it finds that it has.  Main
 * thread only. */

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "controller/northbound/views/metrics.h"
#include "openvswitch/list.h"
#include "svec.h"

#define REST_MAX_CONNS 64       /* Connections at a time. */
#define REST_MAX_STREAMS 24     /* Of them, that follow events; all, ... */
#define REST_MAX_STREAMS_EACH 12        /* ... and of one name. */
#define REST_REQUEST_MS 10000

/* The server, shared with rest.c. */
struct rest {
    struct controller *ctl;
    struct intent_writer *writer;
    struct event_stream *events;
    struct svec clients;        /* Names that TLS certificates may have. */
    struct ovs_list listeners;
    struct ovs_list conns;      /* Of struct rest_conn, soonest deadline
                                 * first. */
    struct rest_counts counts;
    bool again;                 /* There is room since the last run. */
};

/* For libmicrohttpd; 'aux' is the struct rest. */
enum MHD_Result rest_conn_handle(void *aux, struct MHD_Connection *,
                                 const char *path, const char *method,
                                 const char *version, const char *piece,
                                 size_t *piece_size, void **requestp);
void rest_conn_changed(void *aux, struct MHD_Connection *, void **connp,
                       enum MHD_ConnectionNotificationCode);
void rest_conn_completed(void *aux, struct MHD_Connection *, void **requestp,
                         enum MHD_RequestTerminationCode);

void rest_conn_hang_up_slow(struct rest *);
void rest_conn_resume_all(struct rest *);
void rest_conn_wait(const struct rest *);

#endif /* controller/northbound/rest/rest-conn.h */
