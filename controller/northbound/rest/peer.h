/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PEER_H
#define PEER_H 1

/* The sender of an HTTP request, and what the sender may do.
 *
 *    read      sees everything that the server shows
 *    user      also announces and changes searches of its own, within the
 *              limits of the policy
 *    operator  also changes any search, for any user, with any weight
 *
 * The kernel tells the user at the other end of a Unix socket: root and the
 * user of this program are operators, others are users that act for their own
 * number only.  Over TLS the certificate has the role: the organizational unit
 * (OU) of its subject, which "stagecoach pki issue client" writes.  The
 * server's authority signs certificates of clients only, so hosts have no
 * role.  A service account of Kubernetes is a user (token-review.h); its
 * searches belong to its namespace, as its pods do.  The table of routes
 * (rest-routes.c) has the role that each request needs.
 *
 *    struct peer peer = peer_identify(mc);
 *
 *    if (peer.role >= PEER_USER) {
 *        error = peer_limit(&peer, policy, &edit);
 *        ...write 'edit' unless there is an error...
 *    }
 *    peer_uninit(&peer);
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct MHD_Connection;
struct cluster;
struct intent_edit;
struct policy;

/* Each role may do what those before it may. */
enum peer_role {
    PEER_NONE,
    PEER_READ,
    PEER_USER,
    PEER_OPERATOR,
    N_PEER_ROLES
};

extern const char *const peer_role_names[N_PEER_ROLES];

/* Names of the roles of certificates, as in --help. */
#define PEER_ROLES "read|user|operator"

struct peer {
    enum peer_role role; /* PEER_NONE: no request is allowed. */
    char *actor;         /* Name of the user, or common name of the
                          * certificate; NULL with PEER_NONE. */
    char *owner;         /* Of its searches, NULL: the actor. */
    uint64_t uid;        /* User of a Unix socket, or namespace; 0: root, or a
                          * certificate, which has no number. */
    bool certified;      /* 'actor' is of a certificate. */
};

struct peer peer_identify(struct MHD_Connection *);
void peer_uninit(struct peer *);

/* What peer_identify() returns for user 'uid' of a Unix socket, and for the
 * subject of a valid certificate.  'unit' is null without one. */
struct peer peer_of_user(uid_t uid);
struct peer peer_of_subject(const char *name, const char *unit);

/* Returns the service account 'name', "system:serviceaccount:NAMESPACE:NAME",
 * which the API server has named.  Other users have no role. */
struct peer peer_of_account(const char *name);

/* Returns true if an operator has revoked the certificate of 'peer'. */
bool peer_is_revoked(const struct peer *, const struct cluster *);

/* Sets what 'peer' may change by 'edit'; the 'owner' of the edit is its actor.
 * Returns NULL, or a message that the caller frees if 'edit' exceeds it. */
char *peer_limit(const struct peer *, const struct policy *,
                 struct intent_edit *);

/* Returns true if 'peer' may change a search of 'owner', a user with the
 * number 'uid', 0 without one.  'owner' is null if it is unknown. */
bool peer_may_change(const struct peer *, const char *owner, uint64_t uid);

#endif /* controller/northbound/rest/peer.h */
