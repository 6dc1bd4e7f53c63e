/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest-listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json-check.h"
#include "fatal-signal.h"
#include "socket-util.h"
#include "util.h"

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
        return (!strncmp(remote, "unix:", 5) && remote[5]
                    ? NULL
                    : xasprintf(
                        "--rest: \"%s\" is no address to listen on; expected "
                        "unix:PATH, pssl:PORT[:IP] or none",
                        remote));
    } else if (!tls->key || !tls->certificate || !tls->ca_cert) {
        return xasprintf("--rest: \"%s\" needs TLS, --private-key, "
                         "--certificate and --rest-ca-cert are required",
                         remote);
    }
    return NULL;
}

/* Listens on 'remote', a Unix socket for the same user only unless 'users'.
 * Returns a file descriptor or a negative errno value.  Stores the path of a
 * Unix socket, which the caller frees, or NULL in '*path'. */
int
rest_listen_open(const char *remote, int backlog, bool users, char **path)
{
    mode_t mode = users ? 0666 : 0600;
    bool tls = rest_listen_is_tls(remote);
    int fd;

    *path = tls ? NULL : abs_file_name(NULL, remote + 5);
    fd = (tls ? inet_open_passive(SOCK_STREAM, remote + 5, 0, NULL, 0, true)
          : make_unix_socket(SOCK_STREAM, true, *path, NULL));
    if (fd >= 0 && ((*path && chmod(*path, mode)) || listen(fd, backlog))) {
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

static bool
is_address(const char *text)
{
    struct in6_addr address; /* Has room for the other family, too. */

    return (inet_pton(AF_INET, text, &address) == 1
            || inet_pton(AF_INET6, text, &address) == 1);
}

/* Returns true if 'certificate', in PEM, is for 'name'. */
static bool
is_certified(const char *certificate, const char *name)
{
    const gnutls_datum_t pem = {
        (unsigned char *) CONST_CAST(char *, certificate), strlen(certificate)
    };
    gnutls_x509_crt_t crt;
    bool certified;

    if (gnutls_x509_crt_init(&crt)) {
        return false;
    }
    certified = (!gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM)
                 && gnutls_x509_crt_check_hostname(crt, name));
    gnutls_x509_crt_deinit(crt);
    return certified;
}

bool
rest_listen_has_name(const char *host, const char *certificate)
{
    bool bracket = *host == '[';
    char *name =
        xmemdup0(host + bracket, strcspn(host + bracket, bracket ? "]" : ":"));
    bool has = (is_address(name) || !strcmp(name, "localhost")
                || (certificate && is_certified(certificate, name)));

    free(name);
    return has;
}
