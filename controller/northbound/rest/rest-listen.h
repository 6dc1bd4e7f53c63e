/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_LISTEN_H
#define REST_LISTEN_H 1

/* Listening sockets of the HTTP server, and the identity of its clients.
 *
 * A Unix socket identifies the client's user.  Other machines need TLS.  A
 * valid certificate is not sufficient: the same CA signs the certificates of
 * hosts, so the allowed names are configured too.
 *
 *    struct rest_tls tls = { key, certificate, ca_cert, &names };
 *
 *    error = rest_listen_check("pssl:6644:10.0.0.1", &tls);
 *    fd = rest_listen_open("unix:/run/x.sock", 64, &path);
 *    actor = rest_peer_name(mc, &names);       // NULL: not allowed.
 *
 * The caller frees returned strings.  Main thread only. */

#include <microhttpd.h>
#include <stdbool.h>

struct svec;

/* Options of the command line. */
struct rest_tls {
    const char *key, *certificate, *ca_cert;    /* Files, or NULL. */
    const struct svec *clients; /* Allowed CNs of certificates. */
};

/* The contents of the files. */
struct rest_pem {
    char *key, *certificate, *ca_cert;
};

bool rest_listen_is_tls(const char *remote);
char *rest_listen_check(const char *remote, const struct rest_tls *);
int rest_listen_open(const char *remote, int backlog, char **path);

char *rest_pem_read(const struct rest_tls *, struct rest_pem *);
bool rest_pem_equals(const struct rest_pem *, const struct rest_pem *);
void rest_pem_uninit(struct rest_pem *);

char *rest_peer_name(struct MHD_Connection *, const struct svec *clients);

#endif /* controller/northbound/rest/rest-listen.h */
