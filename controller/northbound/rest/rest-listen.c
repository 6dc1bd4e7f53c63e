/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest-listen.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json-check.h"
#include "base/user-name.h"
#include "fatal-signal.h"
#include "socket-util.h"
#include "svec.h"
#include "util.h"

#define MAX_NAME 256            /* Bytes of a certificate's CN. */

bool
rest_listen_is_tls(const char *remote)
{
    return !strncmp(remote, "pssl:", 5);
}

/* Returns NULL if the server can listen on 'remote' with the options 'tls',
 * otherwise an error message that the caller frees. */
char *
rest_listen_check(const char *remote, const struct rest_tls *tls)
{
    if (!rest_listen_is_tls(remote)) {
        return (!strncmp(remote, "unix:", 5) && remote[5] ? NULL
                : xasprintf("--rest: \"%s\" is no address to listen on, "
                            "unix:PATH, pssl:PORT[:IP] or none is allowed",
                            remote));
    } else if (!tls->key || !tls->certificate || !tls->ca_cert) {
        return xasprintf("--rest: \"%s\" needs TLS, --private-key, "
                         "--certificate and --ca-cert are required", remote);
    } else if (svec_is_empty(tls->clients)) {
        return xasprintf("--rest: \"%s\" allows no client, --rest-client with "
                         "the name of a certificate is required",
                         remote);
    }
    return NULL;
}

/* Listens on 'remote', a Unix socket for the same user only.  Returns a file
 * descriptor or a negative errno value.  Stores the path of a Unix socket,
 * which the caller frees, or NULL in '*path'. */
int
rest_listen_open(const char *remote, int backlog, char **path)
{
    bool tls = rest_listen_is_tls(remote);
    int fd;

    *path = tls ? NULL : abs_file_name(NULL, remote + 5);
    fd = (tls ? inet_open_passive(SOCK_STREAM, remote + 5, 0, NULL, 0, true)
          : make_unix_socket(SOCK_STREAM, true, *path, NULL));
    if (fd >= 0 && ((*path && chmod(*path, 0600)) || listen(fd, backlog))) {
        int error = errno;

        if (*path) {
            fatal_signal_unlink_file_now(*path);
        }
        close(fd);
        return -error;
    }
    return fd;
}

/* Reads the files of 'tls' into 'pem', which must be zeroed.  Returns NULL, or
 * an error message that the caller frees. */
char *
rest_pem_read(const struct rest_tls *tls, struct rest_pem *pem)
{
    char *error = json_read_file(tls->key, &pem->key);

    error = error ? error : json_read_file(tls->certificate,
                                           &pem->certificate);
    return error ? error : json_read_file(tls->ca_cert, &pem->ca_cert);
}

bool
rest_pem_equals(const struct rest_pem *a, const struct rest_pem *b)
{
    return (!strcmp(a->key, b->key) && !strcmp(a->certificate, b->certificate)
            && !strcmp(a->ca_cert, b->ca_cert));
}

void
rest_pem_uninit(struct rest_pem *pem)
{
    free(pem->key);
    free(pem->certificate);
    free(pem->ca_cert);
}

/* Returns the CN of the client's certificate if it is valid, otherwise
 * NULL. */
static char *
certificate_name(gnutls_session_t session)
{
    const gnutls_datum_t *chain;
    gnutls_x509_crt_t crt;
    unsigned int n, status;
    char name[MAX_NAME];
    size_t size = sizeof name;
    char *result = NULL;

    if (gnutls_certificate_verify_peers2(session, &status) || status) {
        return NULL;
    }
    chain = gnutls_certificate_get_peers(session, &n);
    if (!chain || !n || gnutls_x509_crt_init(&crt)) {
        return NULL;
    }
    if (!gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER)
        && !gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME,
                                          0, 0, name, &size)) {
        result = xmemdup0(name, size);
    }
    gnutls_x509_crt_deinit(crt);
    return result;
}

static char *
peer_user(int fd)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    return (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) ? NULL
            : user_name_of(cred.uid));
}

/* Returns the name of the client of 'mc': its user on a Unix socket, or the CN
 * of its certificate over TLS.  Returns NULL if the CN is not in 'clients'. */
char *
rest_peer_name(struct MHD_Connection *mc, const struct svec *clients)
{
    const union MHD_ConnectionInfo *tls = MHD_get_connection_info(
        mc, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    char *name;

    if (!tls || !tls->tls_session) {
        return peer_user(MHD_get_connection_info(
            mc, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
    }
    name = certificate_name(tls->tls_session);
    for (size_t i = 0; name && i < clients->n; i++) {
        if (!strcmp(name, clients->names[i])) {
            return name;
        }
    }
    free(name);
    return NULL;
}
