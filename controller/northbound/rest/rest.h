/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_H
#define REST_H 1

/* What the controller answers over HTTP.
 *
 *
 * Motivation
 * ==========
 *
 * Dashboards, probes, schedulers and scripts speak HTTP and JSON, not unixctl.
 * They read here what the control socket tells, from the same builders, so
 * that the two cannot differ, and write what the command line writes, by the
 * same edits.  docs/interfaces.md, "REST", has the rules and
 * docs/openapi.json the paths.
 *
 * The controller decides for a cluster in the same loop, so a client gets
 * little: connections are few, a request that is not complete in time ends its
 * connection, and when all connections are taken the one that has been quiet
 * for the longest makes room for the next.  Nothing waits for a client, and a
 * client that waits for a database waits in suspension.
 *
 *
 * Usage
 * =====
 *
 *    error = rest_create(&options, &ctl, &rest);
 *    rest_run(rest);                   // Accepts, reads, answers.
 *    rest_wait(rest);
 *    rest_destroy(rest);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The controller that is answered for must live longer.  Main thread only,
 * which is also where libmicrohttpd runs: it gets no thread of its own. */

#include "controller/northbound/rest/rest-listen.h"

struct controller;
struct rest;
struct svec;

struct rest_options {
    const struct svec *remotes; /* "unix:PATH", "pssl:PORT[:IP]", "none". */
    const char *intent;         /* Remote of the database to write into. */
    struct rest_tls tls;
};

char *rest_create(const struct rest_options *, struct controller *,
                  struct rest **);
void rest_set_intent(struct rest *, const char *remote);
void rest_destroy(struct rest *);

void rest_run(struct rest *);
void rest_wait(const struct rest *);

#endif /* controller/northbound/rest/rest.h */
