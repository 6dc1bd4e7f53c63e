/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/tls.h"

#include <stdlib.h>

#include "stream-ssl.h"
#include "timeval.h"
#include "util.h"

#define LOOK_MS 1000

static char *private_key, *certificate, *authority;     /* Or NULL. */
static long long next_look;     /* time_msec(). */

/* After detaching, a relative name would be of another directory. */
static void
set(char **filep, const char *file)
{
    free(*filep);
    *filep = abs_file_name(NULL, file);
}

void
tls_set_file(int option, const char *file)
{
    if (!private_key && !certificate && !authority) {
        stream_ssl_set_protocols("TLSv1.2");
    }
    if (option == 'p') {
        set(&private_key, file);
    } else if (option == 'c') {
        set(&certificate, file);
    } else {
        set(&authority, file);
    }
    next_look = 0;
    tls_run();
}

/* Reads what has changed.  A key goes with its certificate only: whoever
 * replaces them puts both into one file, or the certificate first. */
void
tls_run(void)
{
    if (time_msec() < next_look) {
        return;
    }
    next_look = time_msec() + LOOK_MS;
    if (private_key && certificate) {
        stream_ssl_set_key_and_cert(private_key, certificate);
    }
    if (authority) {
        stream_ssl_set_ca_cert_file(authority, false);
    }
}
