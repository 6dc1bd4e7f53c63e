/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TLS_H
#define TLS_H 1

/* Keys and certificates of a daemon, which may be replaced while it runs.
 *
 *
 * Motivation
 * ==========
 *
 * Certificates expire after some months, while daemons keep running.
 * libopenvswitch reads its files again on request, so this module remembers
 * their names and requests that.
 *
 *
 * Usage
 * =====
 *
 *    tls_set_file('p', argument);
 *    ...
 *    tls_run();                        // Often; checks once a second.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One configuration per process, as in libopenvswitch.  Main thread only. */

/* Sets the file of option 'p' (private key), 'c' (certificate) or 'C'
 * (authority) of stream-ssl.h.  TLS is at least 1.2 from then on. */
void tls_set_file(int option, const char *file);

/* Returns the absolute name of the file of 'option', or NULL. */
const char *tls_file(int option);

void tls_run(void);

#endif /* wire/tls.h */
