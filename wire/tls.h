/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TLS_H
#define TLS_H 1

/* The keys and certificates of a daemon, which may be replaced while it runs.
 *
 *
 * Motivation
 * ==========
 *
 * Certificates end after some months, daemons do not.  libopenvswitch reads
 * its files again if it is asked to, so this remembers what to ask for.
 *
 *
 * Usage
 * =====
 *
 *    case TLS_FILE_OPTIONS: tls_set_file(c, optarg); break;
 *    ...
 *    tls_run();                        // Often; looks once a second.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One configuration a process, as libopenvswitch has it; main thread only. */

/* Of stream-ssl.h's options, in a switch. */
#define TLS_FILE_OPTIONS 'p': case 'c': case 'C'

/* Takes 'file' for option 'p' (private key), 'c' (certificate) or 'C'
 * (authority).  TLS is at least 1.2 from then on. */
void tls_set_file(int option, const char *file);
void tls_run(void);

#endif /* wire/tls.h */
