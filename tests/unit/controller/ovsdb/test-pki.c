/* SPDX-License-Identifier: Apache-2.0 */

/* The trust between certificates and CA files, verified by OpenSSL. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "controller/ovsdb/pki.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static char dir[] = "/tmp/stagecoach-pki-XXXXXX";

static X509 *
read_cert(const char *name)
{
    char *file = xasprintf("%s/%s", dir, name);
    FILE *stream = fopen(file, "r");
    X509 *cert = stream ? PEM_read_X509(stream, NULL, NULL, NULL) : NULL;

    assert_non_null(cert);
    fclose(stream);
    free(file);
    return cert;
}

/* Returns true if a program that trusts 'ca' accepts 'identity' as
 * "sslserver" or "sslclient" at time 'when'. */
static bool
accepts(const char *ca, const char *identity, const char *as, time_t when)
{
    char *file = xasprintf("%s/%s", dir, ca);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509 *cert = read_cert(identity);
    bool ok;

    assert_int_equal(X509_STORE_load_locations(store, file, NULL), 1);
    assert_int_equal(X509_STORE_CTX_init(ctx, store, cert, NULL), 1);
    assert_int_equal(X509_STORE_CTX_set_purpose(
                         ctx, !strcmp(as, "sslserver")
                         ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT),
                     1);
    X509_STORE_CTX_set_time(ctx, 0, when);
    ok = X509_verify_cert(ctx) == 1;
    X509_free(cert);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    free(file);
    return ok;
}

int
unit_test_set_up(void **state)
{
    if (!mkdtemp(dir)) {
        return -1;
    }
    assert_no_error(pki_init(dir));
    assert_no_error(pki_issue(dir, PKI_CONTROLLER, "c1", NULL, 90));
    assert_no_error(pki_issue(dir, PKI_AGENT, "h0", NULL, 90));
    assert_no_error(pki_issue(dir, PKI_CLIENT, "eva", "read", 90));
    return 0;
}

int
unit_test_tear_down(void **state)
{
    char *command = xasprintf("rm -r '%s'", dir);
    int status = system(command);

    free(command);
    return status;
}

UNIT_TEST(databases_accept_controllers_only)
{
    time_t now = time(NULL);
    const char *ca = "controllers/c1/controllers-ca.pem";

    assert_true(accepts(ca, "controllers/c1/identity.pem", "sslclient", now));
    assert_false(accepts(ca, "agents/h0/identity.pem", "sslclient", now));
}

UNIT_TEST(relays_accept_agents_only)
{
    time_t now = time(NULL);
    const char *ca = "controllers/c1/agents-ca.pem";

    assert_true(accepts(ca, "agents/h0/identity.pem", "sslclient", now));
    assert_false(accepts(ca, "controllers/c1/identity.pem", "sslclient",
                         now));
}

/* A client reaches no other server, and no other certificate is a client's:
 * ca.pem is the authority of telemetry. */
UNIT_TEST(http_servers_accept_clients_only)
{
    static const char *const others[] = {
        "controllers-ca.pem",
        "agents-ca.pem",
        "ca.pem",
    };
    const char *ca = "controllers/c1/clients-ca.pem";
    time_t now = time(NULL);

    assert_true(accepts(ca, "clients/eva/identity.pem", "sslclient", now));
    assert_false(accepts(ca, "agents/h0/identity.pem", "sslclient", now));
    assert_false(accepts(ca, "controllers/c1/identity.pem", "sslclient", now));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        char *other = xasprintf("controllers/c1/%s", others[i]);

        assert_false(
            accepts(other, "clients/eva/identity.pem", "sslclient", now));
        free(other);
    }
    assert_false(accepts(ca, "clients/eva/identity.pem", "sslserver", now));
}

UNIT_TEST(an_agent_cannot_be_a_server)
{
    time_t now = time(NULL);

    assert_false(accepts("controllers/c1/ca.pem", "agents/h0/identity.pem",
                         "sslserver", now));
    assert_false(accepts("agents/h0/ca.pem", "agents/h0/identity.pem",
                         "sslserver", now));
    assert_true(accepts("agents/h0/ca.pem", "controllers/c1/identity.pem",
                        "sslserver", now));
}

UNIT_TEST(certificates_expire)
{
    const char *ca = "controllers/c1/ca.pem";
    time_t now = time(NULL);

    assert_true(accepts(ca, "agents/h0/identity.pem", "sslclient",
                        now + 89 * 86400));
    assert_false(accepts(ca, "agents/h0/identity.pem", "sslclient",
                         now + 91 * 86400));
}

UNIT_TEST(the_common_name_is_the_host)
{
    X509 *cert = read_cert("agents/h0/identity.pem");
    char name[64];

    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName,
                              name, sizeof name);
    assert_string_equal(name, "h0");
    X509_free(cert);
}

UNIT_TEST(keys_are_private)
{
    static const char *const files[] = {
        "controllers-ca.pem",       "agents-ca.pem",
        "clients-ca.pem",           "agents/h0/identity.pem",
        "clients/eva/identity.pem", "controllers/c1/identity.pem",
    };

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char *file = xasprintf("%s/%s", dir, files[i]);
        struct stat st;

        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        free(file);
    }
}

UNIT_TEST(issuing_again_replaces_the_certificate)
{
    X509 *old = read_cert("agents/h0/identity.pem");
    X509 *new;
    struct pki_entry *entries;
    size_t n;

    assert_no_error(pki_init(dir));
    assert_no_error(pki_issue(dir, PKI_AGENT, "h0", NULL, 2));
    new = read_cert("agents/h0/identity.pem");
    assert_int_not_equal(X509_cmp(old, new), 0);
    assert_true(accepts("controllers/c1/agents-ca.pem",
                        "agents/h0/identity.pem", "sslclient", time(NULL)));
    X509_free(old);
    X509_free(new);

    assert_no_error(pki_list(dir, &entries, &n));
    assert_int_equal(n, 3);
    assert_int_equal(entries[1].role, PKI_AGENT);
    assert_string_equal(entries[1].name, "h0");
    assert_string_equal(entries[1].client_role, "");
    assert_string_equal(entries[2].client_role, "read");
    assert_true(entries[1].expires < time(NULL) + 3 * 86400);
    pki_list_free(entries, n);
}

UNIT_TEST(names_are_checked)
{
    static const char *const bad[] = { "", "..", "a/b", "a b", "ü" };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_says(pki_issue(dir, PKI_AGENT, bad[i], NULL, 1),
                    "is not a name");
    }
    assert_says(pki_issue("/nonexistent", PKI_AGENT, "h0", NULL, 1),
                "controllers-ca.pem: ");
}
