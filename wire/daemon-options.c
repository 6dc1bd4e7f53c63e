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
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(daemon_options);

#define EXIT_USAGE 2
#define CHECK_MS 1000           /* Interval of checks of the TLS files. */

static char *private_key, *certificate, *authority;     /* Or NULL. */
static long long next_check;     /* time_msec(). */

static char **
find_file(int option)
{
    return option == 'p' ? &private_key
           : option == 'c' ? &certificate : &authority;
}

const char *
tls_file(int option)
{
    return *find_file(option);
}

/* Reads the files that have changed.  A key is used with its certificate only:
 * replace the certificate before the key, or keep both in one file. */
void
tls_run(void)
{
    if (time_msec() < next_check) {
        return;
    }
    next_check = time_msec() + CHECK_MS;
    if (private_key && certificate) {
        stream_ssl_set_key_and_cert(private_key, certificate);
    }
    if (authority) {
        stream_ssl_set_ca_cert_file(authority, false);
    }
}

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

/* Detaching changes the working directory, so the name is made absolute. */
static void
set_tls_file(int option, const char *file)
{
    char **filep = find_file(option);

    if (!private_key && !certificate && !authority) {
        stream_ssl_set_protocols("TLSv1.2");
    }
    free(*filep);
    *filep = abs_file_name(NULL, file);
    next_check = 0;
    tls_run();
}

void
tls_set_default(const char *directory)
{
    for (const char *option = "pcC"; *option; option++) {
        if (!tls_file(*option)) {
            char *file = xasprintf("%s/%s.pem", directory,
                                   *option == 'C' ? "ca" : "identity");

            set_tls_file(*option, file);
            free(file);
        }
    }
}

static void
parse_library_option(int c, char *argument)
{
    switch (c) {
    DAEMON_OPTION_HANDLERS
    VLOG_OPTION_HANDLERS
    case 'p':
    case 'c':
    case 'C':
        set_tls_file(c, argument);
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
