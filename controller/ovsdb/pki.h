/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PKI_H
#define PKI_H 1

/* Certificates of controllers, agents and clients of the HTTP server.
 *
 * OVSDB's access control limits the rows that a role may write, but not
 * connections, reads and locks.  So there are three CAs: databases trust the
 * controllers' CA only, agents reach only the relay and the telemetry
 * listener, which trust the agents' CA, and clients reach only the HTTP
 * server, which trusts no other CA than theirs.  The certificate of an agent
 * or a client is for clients of TLS only, because libopenvswitch does not
 * compare names: so a compromised host cannot impersonate a database or a
 * controller.
 *
 * A client's certificate has its role (controller/northbound/rest/peer.h) in
 * the organizational unit of its subject.
 *
 * A key and its certificate are in one file: libopenvswitch rereads them only
 * if both have changed at the same check, so with two files a new key that is
 * seen before its certificate would keep the old certificate in use until it
 * expires.
 *
 *  DIR/controllers-ca.pem, agents-ca.pem,   Keys and certificates of the
 *      clients-ca.pem                       CAs; not to be copied.
 *  DIR/controllers/NAME/                    To be copied to controller NAME:
 *      identity.pem                         Its key and certificate.
 *      controllers-ca.pem                   CA for its databases.
 *      agents-ca.pem                        CA for its relay.
 *      clients-ca.pem                       CA for its HTTP server.
 *      ca.pem                               The first two CAs, for its
 *                                           databases and telemetry.
 *  DIR/agents/NAME/                         To be copied to host NAME:
 *      identity.pem                         Its key and certificate.
 *      ca.pem                               The controllers' CA.
 *  DIR/clients/NAME/                        To be given to client NAME; as
 *                                           for an agent.
 *
 *    error = pki_init("/etc/stagecoach/pki");
 *    error = pki_issue("/etc/stagecoach/pki", PKI_AGENT, "h0", NULL, 90);
 *    error = pki_issue("/etc/stagecoach/pki", PKI_CLIENT, "eva", "read", 90);
 *    error = pki_list("/etc/stagecoach/pki", &entries, &n);
 *
 * No state.  Functions return NULL for success and otherwise an error message
 * that the caller frees. */

#include <stddef.h>
#include <stdint.h>

/* Default and maximum validity of certificates, in days. */
#define PKI_DAYS 90
#define PKI_MAX_DAYS 825

enum pki_role { PKI_CONTROLLER, PKI_AGENT, PKI_CLIENT, N_PKI_ROLES };

extern const char *const pki_role_names[N_PKI_ROLES];

struct pki_entry {
    enum pki_role role;
    char *name;                 /* The certificate's common name. */
    char *client_role;          /* What a client may do, "" of others. */
    int64_t expires;            /* Seconds since the epoch. */
};

/* Creates the CAs unless they exist. */
char *pki_init(const char *dir);

/* Creates a key and a certificate for 'name', valid for 'days', and replaces
 * previous ones in one step.  'client_role' is what a client may do, NULL or
 * "" for others. */
char *pki_issue(const char *dir, enum pki_role, const char *name,
                const char *client_role, double days);

/* Stores all issued certificates, by role and name, in '*entriesp', which
 * pki_list_free() frees, also after an error. */
char *pki_list(const char *dir, struct pki_entry **entriesp, size_t *np);
void pki_list_free(struct pki_entry *, size_t n);

#endif /* controller/ovsdb/pki.h */
