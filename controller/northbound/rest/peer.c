/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/peer.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/user-name.h"
#include "controller/intent/intent-edit.h"
#include "controller/model/cluster.h"
#include "policies/policy.h"
#include "util.h"
#include "wire/membership.h"

#define MAX_NAME 256 /* Bytes of a part of a subject. */

/* User that the kernel reports for all users outside the user namespace of
 * this program. */
#define UNKNOWN_UID 65534

const char *const peer_role_names[N_PEER_ROLES] = { "none", "read", "user",
                                                    "operator" };

void
peer_uninit(struct peer *peer)
{
    free(peer->actor);
    free(peer->owner);
}

struct peer
peer_of_user(uid_t uid)
{
    if (uid == UNKNOWN_UID) {
        return (struct peer){ .role = PEER_NONE };
    }
    return (struct peer){
        .role = uid && uid != geteuid() ? PEER_USER : PEER_OPERATOR,
        .actor = user_name_of(uid),
        .uid = uid,
    };
}

struct peer
peer_of_subject(const char *name, const char *unit)
{
    for (enum peer_role role = PEER_READ; unit && role < N_PEER_ROLES;
         role++) {
        if (!strcmp(unit, peer_role_names[role])) {
            return (struct peer){ .role = role,
                                  .actor = xstrdup(name),
                                  .certified = true };
        }
    }
    return (struct peer){ .role = PEER_NONE };
}

struct peer
peer_of_account(const char *name)
{
    static const char prefix[] = "system:serviceaccount:";
    const char *space = name + strlen(prefix);
    size_t n = strncmp(name, prefix, strlen(prefix)) ? 0 : strcspn(space, ":");
    struct peer peer = { .role = PEER_NONE };

    if (n && space[n]) {
        char *copy = xmemdup0(space, n);

        peer =
            (struct peer){ .role = PEER_USER,
                           .actor = xstrdup(name),
                           .owner = xasprintf(MEMBERSHIP_NAMESPACE "%s", copy),
                           .uid = membership_namespace(copy) };
        free(copy);
    }
    return peer;
}

/* Returns the part 'oid' of the subject of 'crt', or NULL. */
static char *
part_of(gnutls_x509_crt_t crt, const char *oid)
{
    char text[MAX_NAME];
    size_t size = sizeof text;

    return (gnutls_x509_crt_get_dn_by_oid(crt, oid, 0, 0, text, &size)
                ? NULL
                : xmemdup0(text, size));
}

static struct peer
peer_of_session(gnutls_session_t session)
{
    struct peer peer = { .role = PEER_NONE };
    const gnutls_datum_t *chain;
    unsigned int n, status;
    gnutls_x509_crt_t crt;

    if (gnutls_certificate_verify_peers2(session, &status) || status) {
        return peer;
    }
    chain = gnutls_certificate_get_peers(session, &n);
    if (!chain || !n || gnutls_x509_crt_init(&crt)) {
        return peer;
    }
    if (!gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER)) {
        char *name = part_of(crt, GNUTLS_OID_X520_COMMON_NAME);
        char *unit = part_of(crt, GNUTLS_OID_X520_ORGANIZATIONAL_UNIT_NAME);

        if (name) {
            peer = peer_of_subject(name, unit);
        }
        free(name);
        free(unit);
    }
    gnutls_x509_crt_deinit(crt);
    return peer;
}

struct peer
peer_identify(struct MHD_Connection *mc)
{
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(mc, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    struct ucred cred;
    socklen_t size = sizeof cred;
    int fd;

    if (tls && tls->tls_session) {
        return peer_of_session(tls->tls_session);
    }
    fd = MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CONNECTION_FD)
             ->connect_fd;
    return (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size)
                ? (struct peer){ .role = PEER_NONE }
                : peer_of_user(cred.uid));
}

bool
peer_is_revoked(const struct peer *peer, const struct cluster *c)
{
    return peer->certified && cluster_has_revoked(c, peer->actor);
}

char *
peer_limit(const struct peer *peer, const struct policy *policy,
           struct intent_edit *edit)
{
    if (peer->role == PEER_OPERATOR) {
        return NULL;
    } else if (edit->uid) {
        return xasprintf("/%s: %lld from a client of role %s; expected a "
                         "body without it, or role %s",
                         edit->uid > MEMBERSHIP_MAX_UID ? "namespace" : "uid",
                         edit->uid, peer_role_names[peer->role],
                         peer_role_names[PEER_OPERATOR]);
    } else if (edit->weight > policy->weight_limit) {
        return xasprintf("/weight: %g from a client of role %s; expected at "
                         "most %g, the policy's /weights/limit",
                         edit->weight, peer_role_names[peer->role],
                         policy->weight_limit);
    }
    edit->as_user = true;
    edit->uid = peer->uid;
    edit->total = policy->weight_total;
    return NULL;
}

bool
peer_may_change(const struct peer *peer, const char *owner, uint64_t uid)
{
    return (peer->role == PEER_OPERATOR
            || intent_is_owner(peer->actor, peer->uid, owner, uid));
}
