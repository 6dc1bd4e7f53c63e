/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/certificate.h"

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <time.h>

#include "util.h"

char *
certificate_read(const char *file, struct certificate *c)
{
    FILE *stream = fopen(file, "re");
    char name[256] = "";
    char *error = NULL;
    X509 *cert;
    struct tm tm;

    *c = (struct certificate) { .name = NULL };
    if (!stream) {
        return xasprintf("%s: %s", file, ovs_strerror(errno));
    }
    cert = PEM_read_X509(stream, NULL, NULL, NULL);
    if (!cert || !ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm)) {
        error = xasprintf("%s: no certificate in PEM with an end of validity",
                          file);
    } else {
        X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName,
                                  name, sizeof name);
        X509_NAME_get_text_by_NID(X509_get_subject_name(cert),
                                  NID_organizationalUnitName, c->role,
                                  sizeof c->role);
        c->name = xstrdup(name);
        c->expires = timegm(&tm);
    }
    X509_free(cert);
    fclose(stream);
    return error;
}
