/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/pki.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/name.h"
#include "util.h"
#include "wire/certificate.h"

#define CA_DAYS 3650

/* A new certificate is valid at once where the clock is late by up to this. */
#define CLOCK_SLACK_S 300

const char *const pki_role_names[N_PKI_ROLES] = { "controller", "agent",
                                                  "client" };

/* A key and the certificate for it. */
struct identity {
    EVP_PKEY *key;
    X509 *cert;
};

static void
identity_uninit(struct identity *id)
{
    EVP_PKEY_free(id->key);
    X509_free(id->cert);
}

static char *
ssl_error(const char *place, const char *what)
{
    unsigned long code = ERR_get_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    return xasprintf("%s: %s (%s)", place, what,
                     reason ? reason : "no reason is given");
}

static char *
ca_file(const char *dir, enum pki_role role)
{
    return xasprintf("%s/%ss-ca.pem", dir, pki_role_names[role]);
}

/* Atomically replaces 'file' with the text of 'bio'. */
static char *
write_file(const char *file, BIO *bio, mode_t mode)
{
    char *temporary = xasprintf("%s.new", file);
    char *text, *error = NULL;
    long n = BIO_get_mem_data(bio, &text);
    int fd;

    unlink(temporary);
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 || write(fd, text, n) != n || fsync(fd)
        || rename(temporary, file)) {
        error = xasprintf("%s: cannot be written (%s)", file,
                          ovs_strerror(errno));
        unlink(temporary);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(temporary);
    return error;
}

/* Writes 'key', unless it is null, and the 'n' certificates 'certs'. */
static char *
write_pem(const char *file, mode_t mode, EVP_PKEY *key, X509 *const *certs,
          size_t n)
{
    BIO *bio = BIO_new(BIO_s_mem());
    bool ok = bio && (!key || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0,
                                                       NULL, NULL));
    char *error;

    for (size_t i = 0; ok && i < n; i++) {
        ok = PEM_write_bio_X509(bio, certs[i]);
    }
    error = (ok ? write_file(file, bio, mode)
             : ssl_error(file, "cannot be encoded"));
    BIO_free(bio);
    return error;
}

/* Reads the certificate in 'file', and its key if 'with_key'. */
static char *
read_identity(const char *file, bool with_key, struct identity *id)
{
    FILE *stream = fopen(file, "re");
    char *error = NULL;

    *id = (struct identity) { .key = NULL };
    if (!stream) {
        return xasprintf("%s: %s", file, ovs_strerror(errno));
    }
    if (with_key) {
        id->key = PEM_read_PrivateKey(stream, NULL, NULL, NULL);
        rewind(stream);
    }
    id->cert = PEM_read_X509(stream, NULL, NULL, NULL);
    if (!id->cert || (with_key && !id->key)) {
        error = ssl_error(file, "no key and certificate in PEM");
        identity_uninit(id);
        *id = (struct identity) { .key = NULL };
    }
    fclose(stream);
    return error;
}

static bool
set_serial(X509 *cert)
{
    unsigned char bytes[16];
    BIGNUM *number;
    bool ok;

    if (RAND_bytes(bytes, sizeof bytes) != 1) {
        return false;
    }
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    number = BN_bin2bn(bytes, sizeof bytes, NULL);
    ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return ok;
}

static bool
add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX context;
    bool ok;

    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ok = extension && X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    return ok;
}

static bool
add_name(X509 *cert, const char *field, const char *value)
{
    return X509_NAME_add_entry_by_txt(
        X509_get_subject_name(cert), field, MBSTRING_ASC,
        (const unsigned char *) value, -1, -1, 0);
}

/* Sets the subject; 'unit' may be null or "". */
static bool
set_name(X509 *cert, const char *name, const char *unit)
{
    char cn[CERTIFICATE_NAME_SIZE];

    name_shorten(name, cn, sizeof cn);
    return (add_name(cert, "O", "Stagecoach")
            && (!unit || !*unit || add_name(cert, "OU", unit))
            && add_name(cert, "CN", cn));
}

static bool
set_times(X509 *cert, double days)
{
    time_t now = time(NULL);
    time_t from = now - CLOCK_SLACK_S;
    time_t to = now + (time_t) (days * 86400);

    return ASN1_TIME_set(X509_getm_notBefore(cert), from)
           && ASN1_TIME_set(X509_getm_notAfter(cert), to);
}

/* Creates a key and a certificate for 'name' of 'unit', which may be null,
 * signed by 'ca', or a CA of its own if 'ca' is null.  'usage' is the extended
 * key usage of a certificate that is not a CA.  Returns false on failure. */
static bool
identity_make(const char *name, const char *unit, double days,
              const struct identity *ca, const char *usage,
              struct identity *id)
{
    X509 *issuer;

    id->key = EVP_EC_gen("P-256");
    id->cert = X509_new();
    if (!id->key || !id->cert) {
        return false;
    }
    issuer = ca ? ca->cert : id->cert;
    return X509_set_version(id->cert, 2) && set_serial(id->cert)
           && set_name(id->cert, name, unit) && set_times(id->cert, days)
           && X509_set_pubkey(id->cert, id->key)
           && X509_set_issuer_name(id->cert, X509_get_subject_name(issuer))
           && add_extension(id->cert, issuer, NID_basic_constraints,
                            ca ? "critical,CA:FALSE"
                               : "critical,CA:TRUE,pathlen:0")
           && add_extension(id->cert, issuer, NID_key_usage,
                            ca ? "critical,digitalSignature"
                               : "critical,keyCertSign,cRLSign")
           && (!ca
               || add_extension(id->cert, issuer, NID_ext_key_usage, usage))
           && add_extension(id->cert, issuer, NID_subject_key_identifier,
                            "hash")
           && add_extension(id->cert, issuer, NID_authority_key_identifier,
                            "keyid")
           && X509_sign(id->cert, ca ? ca->key : id->key, EVP_sha256());
}

/* Writes a new identity to 'file'; the other arguments are those of
 * identity_make(). */
static char *
write_identity(const char *file, const char *name, const char *unit,
               double days, const struct identity *ca, const char *usage)
{
    struct identity id = { .key = NULL };
    char *error = (identity_make(name, unit, days, ca, usage, &id)
                       ? write_pem(file, 0600, id.key, &id.cert, 1)
                       : ssl_error(file, "cannot be made"));

    identity_uninit(&id);
    return error;
}

static char *
make_private_directory(const char *path)
{
    return (!mkdir(path, 0700) || errno == EEXIST ? NULL
            : xasprintf("%s: cannot be created (%s)", path,
                        ovs_strerror(errno)));
}

static char *
init_authority(const char *dir, enum pki_role role)
{
    char *file = ca_file(dir, role);
    char *error = NULL;

    if (access(file, F_OK)) {
        char *name = xasprintf("%ss' authority", pki_role_names[role]);

        error = write_identity(file, name, NULL, CA_DAYS, NULL, NULL);
        free(name);
    }
    free(file);
    return error;
}

char *
pki_init(const char *dir)
{
    char *error = make_private_directory(dir);

    for (int role = 0; !error && role < N_PKI_ROLES; role++) {
        char *sub = xasprintf("%s/%ss", dir, pki_role_names[role]);

        error = make_private_directory(sub);
        error = error ? error : init_authority(dir, role);
        free(sub);
    }
    return error;
}

static char *
write_trust(const char *dir, enum pki_role role,
            const struct identity cas[N_PKI_ROLES])
{
    X509 *const all[] = { cas[PKI_CONTROLLER].cert, cas[PKI_AGENT].cert,
                          cas[PKI_CLIENT].cert };
    const struct {
        const char *name;
        X509 *const *certs;
        size_t n;
        bool for_all;
    } files[] = {
        { "ca.pem", all, role == PKI_CONTROLLER ? 2 : 1, true },
        { "controllers-ca.pem", all + PKI_CONTROLLER, 1, false },
        { "agents-ca.pem", all + PKI_AGENT, 1, false },
        { "clients-ca.pem", all + PKI_CLIENT, 1, false },
    };
    char *error = NULL;

    for (size_t i = 0; !error && i < ARRAY_SIZE(files); i++) {
        if (role == PKI_CONTROLLER || files[i].for_all) {
            char *file = xasprintf("%s/%s", dir, files[i].name);

            error = write_pem(file, 0644, NULL, files[i].certs, files[i].n);
            free(file);
        }
    }
    return error;
}

/* Checks the name of a directory and of a host or controller in the
 * databases. */
static char *
check_name(enum pki_role role, const char *name)
{
    if (role == PKI_CLIENT ? name_is_valid_user(name) : name_is_valid(name)) {
        return NULL;
    }
    return xasprintf("NAME: \"%s\" is not %s", name,
                     role == PKI_CLIENT ? USER_NAME_RULE : NAME_RULE);
}

static char *
issue(const char *dir, enum pki_role role, const char *name,
      const char *client_role, double days,
      const struct identity cas[N_PKI_ROLES])
{
    const char *usage = (role == PKI_CONTROLLER ? "serverAuth,clientAuth"
                         : "clientAuth");
    char *sub = xasprintf("%s/%ss/%s", dir, pki_role_names[role], name);
    char *file = xasprintf("%s/identity.pem", sub);
    char *error = make_private_directory(sub);

    if (!error) {
        error = write_trust(sub, role, cas);
    }
    if (!error) {
        error =
            write_identity(file, name, client_role, days, &cas[role], usage);
    }
    free(file);
    free(sub);
    return error;
}

char *
pki_issue(const char *dir, enum pki_role role, const char *name,
          const char *client_role, double days)
{
    struct identity cas[N_PKI_ROLES] = { { .key = NULL } };
    char *error = check_name(role, name);

    for (int i = 0; !error && i < N_PKI_ROLES; i++) {
        char *file = ca_file(dir, i);

        error = read_identity(file, i == role, &cas[i]);
        free(file);
    }
    error = error ? error : issue(dir, role, name, client_role, days, cas);
    for (int i = 0; i < N_PKI_ROLES; i++) {
        identity_uninit(&cas[i]);
    }
    return error;
}

static int
is_visible(const struct dirent *de)
{
    return de->d_name[0] != '.';
}

static char *
list_role(const char *dir, enum pki_role role, struct pki_entry **entriesp,
          size_t *np)
{
    char *sub = xasprintf("%s/%ss", dir, pki_role_names[role]);
    struct dirent **names = NULL;
    char *error = NULL;
    int n = scandir(sub, &names, is_visible, alphasort);

    if (n < 0) {
        error = xasprintf("%s: %s, \"stagecoach pki init\" makes it", sub,
                          ovs_strerror(errno));
    }
    for (int i = 0; i < n; i++) {
        char *file = xasprintf("%s/%s/identity.pem", sub, names[i]->d_name);
        struct certificate cert = { .name = NULL };

        error = error ? error : certificate_read(file, &cert);
        if (!error) {
            *entriesp = xrealloc(*entriesp, (*np + 1) * sizeof **entriesp);
            (*entriesp)[(*np)++] = (struct pki_entry){
                .role = role,
                .name = xstrdup(names[i]->d_name),
                .client_role = xstrdup(cert.role),
                .expires = cert.expires,
            };
        }
        free(cert.name);
        free(file);
        free(names[i]);
    }
    free(names);
    free(sub);
    return error;
}

char *
pki_list(const char *dir, struct pki_entry **entriesp, size_t *np)
{
    char *error = NULL;

    *entriesp = NULL;
    *np = 0;
    for (int role = 0; !error && role < N_PKI_ROLES; role++) {
        error = list_role(dir, role, entriesp, np);
    }
    return error;
}

void
pki_list_free(struct pki_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(entries[i].name);
        free(entries[i].client_role);
    }
    free(entries);
}
