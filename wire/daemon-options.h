/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H 1

/* Command line of a daemon that links libopenvswitch: its own table, and the
 * options of the library for daemons, logging and TLS.
 *
 *    daemon_options_parse(&table, true, false, argc, argv, &options);
 *
 * Main thread only. */

#include <stdbool.h>

struct option_table;

/* Parses 'argv' by the table, without its 'others', into 'to'.  'passive' and
 * 'bootstrap' choose which remotes and TLS options --help describes.  Ends the
 * program after an error, --help or --version. */
void daemon_options_parse(const struct option_table *, bool passive,
                          bool bootstrap, int argc, char *argv[], void *to);

#endif /* wire/daemon-options.h */
