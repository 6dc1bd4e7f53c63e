/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_LISTEN_H
#define REST_LISTEN_H 1

/* Where HTTP is answered, and who is there.
 *
 *
 * Motivation
 * ==========
 *
 * On the machine itself a unix socket says which user asks.  Beyond it there
 * is only TLS, and a certificate is not enough: the same authority signs those
 * of hosts, whose root may be anybody, so that the names of those who may ask
 * are given too.
 *
 *
 * Usage
 * =====
 *
 *    struct rest_tls tls = { key, certificate, ca_cert, &names };
 *
 *    error = rest_listen_check("pssl:6644:10.0.0.1", &tls);
 *    fd = rest_listen_open("unix:/run/...", &path);
 *    actor = rest_peer_name(mc, &tls);         // NULL: not allowed.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Strings that are returned are the caller's.  Main thread only. */

#include <microhttpd.h>
#include <stdbool.h>

struct svec;

/* As of the command line; NULL where there is none. */
struct rest_tls {
    const char *key, *certificate, *ca_cert;    /* Files. */
    const struct svec *clients; /* Names that certificates may have. */
};

/* What the files say. */
struct rest_pem {
    char *key, *certificate, *ca_cert;
};

bool rest_listen_is_tls(const char *remote);
char *rest_listen_check(const char *remote, const struct rest_tls *);
int rest_listen_open(const char *remote, int backlog, char **path);

char *rest_pem_read(const struct rest_tls *, struct rest_pem *);
void rest_pem_uninit(struct rest_pem *);

char *rest_peer_name(struct MHD_Connection *, const struct svec *clients);

#endif /* controller/northbound/rest/rest-listen.h */
