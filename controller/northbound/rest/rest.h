/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_H
#define REST_H 1

/* HTTP server of the controller: JSON views, changes, dashboard.
 *
 * Dashboards, probes, schedulers and scripts use HTTP and JSON, not unixctl.
 * They read the same views as the control socket offers, from the same
 * builders, and write the same edits as the command line.  docs/interfaces.md,
 * "REST", has the rules and docs/openapi.json the paths.
 *
 * The server shares the main loop with the controller's decisions, so clients
 * are limited: the number of connections is small, a request that takes longer
 * than REQUEST_MS closes its connection, and if all connections are in use,
 * the one with the soonest timeout is closed for the next client.  A request
 * that waits for the database or an API server is suspended, and then costs
 * nothing.
 *
 * Certificates expire after some months.  The server reads the files of TLS
 * once a second.  If they have changed and match, another daemon of
 * libmicrohttpd accepts connections from then on, because one cannot replace
 * its CA; open connections stay.
 *
 *    error = rest_create(&options, &ctl, &rest);
 *    rest_run(rest);                   // Does not block.
 *    rest_wait(rest);
 *    rest_destroy(rest);
 *
 * The options are copied; the struct controller must outlive the server.  Main
 * thread only: libmicrohttpd runs without threads of its own. */

#include "controller/northbound/rest/rest-listen.h"

struct controller;
struct rest;
struct svec;

struct rest_options {
    const struct svec *remotes; /* "unix:PATH", "pssl:PORT[:IP]", "none". */
    const char *intent;         /* Remote of the intent database. */
    bool users;                 /* All users may connect to Unix sockets. */
    const char *api_server;     /* That reviews tokens (token-review.h), NULL:
                                 * none count. */
    const char *api_account;    /* Folder for that. */
    struct rest_tls tls;
};

char *rest_create(const struct rest_options *, struct controller *,
                  struct rest **);
void rest_set_intent(struct rest *, const char *remote);
void rest_destroy(struct rest *);

void rest_run(struct rest *);
void rest_wait(const struct rest *);

#endif /* controller/northbound/rest/rest.h */
