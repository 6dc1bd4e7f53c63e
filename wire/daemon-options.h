/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H 1

/* Command line of a daemon that links libopenvswitch: its own table, and the
 * options of the library for daemons, logging and TLS.
 *
 *    daemon_options_parse(&table, true, false, argc, argv, &options);
 *    ...
 *    tls_run();                        // Often; checks once a second.
 *
 * Certificates expire after some months, while daemons keep running.
 * libopenvswitch reads its files again on request, so this module remembers
 * their names and requests that.
 *
 * Main thread only. */

#include <stdbool.h>

struct option_table;

/* Parses 'argv' by the table, without its 'others', into 'to'.  'passive' and
 * 'bootstrap' choose which remotes and TLS options --help describes.  TLS is
 * at least 1.2 if a file is given.  Ends the program after an error, --help or
 * --version. */
void daemon_options_parse(const struct option_table *, bool passive,
                          bool bootstrap, int argc, char *argv[], void *to);

/* Returns the absolute name of the file of option 'p' (private key), 'c'
 * (certificate) or 'C' (authority) of stream-ssl.h, or NULL. */
const char *tls_file(int option);

/* Sets those of these three files that no option has named, to identity.pem
 * (key and certificate) and ca.pem in 'directory'. */
void tls_set_default(const char *directory);

void tls_run(void);

#endif /* wire/daemon-options.h */
