/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CERTIFICATE_H
#define CERTIFICATE_H 1

/* Name, role and end of validity of a certificate in a file. */

#include <stdint.h>

/* X.509 limits a common name to 64 characters.  A host or user with a longer
 * name has its shorter form, by name_shorten(). */
#define CERTIFICATE_NAME_SIZE 65

struct certificate {
    char *name;                 /* Common name, "" without one. */
    char role[16];              /* Organizational unit, in which a client's
                                 * certificate has its role; "" without. */
    int64_t expires;            /* Seconds since the epoch. */
};

/* Reads the first certificate of 'file', which may begin with a key.  Returns
 * NULL, or a malloc()'d message that begins with 'file'; then '*c' has no name
 * and 0.  The caller frees 'c->name'. */
char *certificate_read(const char *file, struct certificate *c);

#endif /* wire/certificate.h */
