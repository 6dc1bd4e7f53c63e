/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_LISTEN_H
#define REST_LISTEN_H 1

/* Listening sockets of the HTTP server, its files of TLS and its names.
 *
 * Other machines need TLS, with the authority of clients; peer.h identifies
 * the client.
 *
 *    struct rest_tls tls = { key, certificate, ca_cert };
 *
 *    error = rest_listen_check("pssl:6644:10.0.0.1", &tls);
 *    fd = rest_listen_open("unix:/run/x.sock", 64, false, &path);
 *
 * The caller frees returned strings.  Main thread only. */

#include <stdbool.h>

/* Options of the command line. */
struct rest_tls {
    const char *key, *certificate, *ca_cert; /* Files, or NULL. */
};

/* The contents of the files. */
struct rest_pem {
    char *key, *certificate, *ca_cert;
};

bool rest_listen_is_tls(const char *remote);
char *rest_listen_check(const char *remote, const struct rest_tls *);
int rest_listen_open(const char *remote, int backlog, bool users, char **path);

char *rest_pem_read(const struct rest_tls *, struct rest_pem *);
bool rest_pem_equals(const struct rest_pem *, const struct rest_pem *);
void rest_pem_uninit(struct rest_pem *);

/* Returns true if 'host', the header Host, is a name of this server: an
 * address, "localhost" or, unless it is null, a name in 'certificate', in PEM.
 * The owner of another name could have a browser take this server for its own
 * (DNS rebinding), which is impossible with an address. */
bool rest_listen_has_name(const char *host, const char *certificate);

#endif /* controller/northbound/rest/rest-listen.h */
