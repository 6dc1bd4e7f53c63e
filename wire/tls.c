/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/tls.h"

#include <stdlib.h>

#include "stream-ssl.h"
#include "timeval.h"
#include "util.h"

#define CHECK_MS 1000

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

/* Detaching changes the working directory, so the name is made absolute. */
void
tls_set_file(int option, const char *file)
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
