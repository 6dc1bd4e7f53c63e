/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/daemon-options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/options.h"
#include "daemon.h"
#include "openvswitch/vlog.h"
#include "stream-ssl.h"
#include "stream.h"
#include "util.h"
#include "wire/tls.h"

VLOG_DEFINE_THIS_MODULE(daemon_options);

#define EXIT_USAGE 2

enum {
    FIRST = UCHAR_MAX,
    DAEMON_OPTION_ENUMS,
    VLOG_OPTION_ENUMS,
    SSL_OPTION_ENUMS,
};

static const struct option library_options[] = {
    DAEMON_LONG_OPTIONS,
    VLOG_LONG_OPTIONS,
    STREAM_SSL_LONG_OPTIONS,
    { NULL, 0, NULL, 0 },
};

static void
parse_library_option(int c, char *argument)
{
    switch (c) {
    DAEMON_OPTION_HANDLERS
    VLOG_OPTION_HANDLERS
    case 'p':
    case 'c':
    case 'C':
        tls_set_file(c, argument);
        break;
    case OPT_SSL_PROTOCOLS:
        stream_ssl_set_protocols(argument);
        break;
    case OPT_SSL_CIPHERS:
        stream_ssl_set_ciphers(argument);
        break;
    }
}

void
daemon_options_parse(const struct option_table *own, bool passive,
                     bool bootstrap, int argc, char *argv[], void *to)
{
    struct option_table table = *own;
    struct option_outcome outcome;
    char *error;

    table.others = library_options;
    table.parse_other = parse_library_option;
    error = option_table_parse(&table, argc, argv, to, &outcome);
    if (error) {
        fprintf(stderr, "%s: %s\n", program_name, error);
        free(error);
        exit(EXIT_USAGE);
    }
    if (outcome.help) {
        option_table_help(&table, stdout);
        stream_usage("REMOTE", true, passive, bootstrap);
        daemon_usage();
        vlog_usage();
        exit(EXIT_SUCCESS);
    }
    if (outcome.version) {
        puts(table.version);
        exit(EXIT_SUCCESS);
    }
}
