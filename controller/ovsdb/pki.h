/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PKI_H
#define PKI_H 1

/* The certificates by which controllers and agents know each other.
 *
 *
 * Motivation
 * ==========
 *
 * OVSDB's access control says what a role may write, not who may connect, read
 * and take locks.  So there are two authorities: databases trust that of the
 * controllers alone, and agents reach only what trusts theirs, the relay and
 * the telemetry stream.  An agent's certificate is for clients: it is of no
 * use to somebody who wants to be taken for a controller.
 *
 * A key and its certificate are one file, because a program that reads them
 * again must never get one of the old and one of the new.
 *
 *    DIR/controllers-ca.pem, agents-ca.pem    Keys and certificates of the
 *                                             authorities; stay where they
 *                                             are.
 *    DIR/controllers/NAME/                    What goes to controller NAME:
 *        identity.pem                         its key and certificate,
 *        controllers-ca.pem                   whom its databases trust,
 *        agents-ca.pem                        whom its relay trusts,
 *        ca.pem                               and the controller: both.
 *    DIR/agents/NAME/                         What goes to host NAME:
 *        identity.pem
 *        ca.pem                               The controllers' authority.
 *
 *
 * Usage
 * =====
 *
 *    error = pki_init("/etc/stagecoach/pki");
 *    error = pki_issue("/etc/stagecoach/pki", PKI_AGENT, "h0", 90);
 *    error = pki_list("/etc/stagecoach/pki", &entries, &n);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Functions return NULL for success and otherwise a message that
 * the caller frees. */

#include <stddef.h>
#include <stdint.h>

/* How long certificates are valid unless somebody says otherwise. */
#define PKI_DAYS 90
#define PKI_MAX_DAYS 825

enum pki_role {
    PKI_CONTROLLER,
    PKI_AGENT,
    N_PKI_ROLES,
};

extern const char *const pki_role_names[N_PKI_ROLES];

struct pki_entry {
    enum pki_role role;
    char *name;                 /* The certificate's common name. */
    int64_t expires;            /* Seconds since the epoch. */
};

/* Makes the two authorities; those that are there stay. */
char *pki_init(const char *dir);

/* Makes a key and a certificate for 'name', valid for 'days'.  What 'name' had
 * before is replaced, in one step. */
char *pki_issue(const char *dir, enum pki_role, const char *name,
                double days);

/* Stores all that were issued, by role and name, in '*entriesp'. */
char *pki_list(const char *dir, struct pki_entry **entriesp, size_t *np);
void pki_list_free(struct pki_entry *, size_t n);

#endif /* controller/ovsdb/pki.h */
