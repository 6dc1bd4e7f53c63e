/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/redact.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "openvswitch/dynamic-string.h"
#include "util.h"

#define REMOVED "[removed]"

/* Shorter values are not searched for elsewhere. */
#define MIN_SECRET 6

/* A private key in PEM, to the end of the text if its own is missing. */
#define KEY                             \
    "-----BEGIN [^\n]*PRIVATE KEY-----" \
    "(?s:.*?)(?:-----END [^\n]*|\\z)"

/* User and password in a URL. */
#define LOGIN "(?<=:)//\\K[^\\s/\"'<>@:]*:[^\\s/\"'<>@]*(?=@)"

/* A JSON web token. */
#define JWT "(?<![\\w-])eyJ(?=[\\w.-]{17})[\\w-]*\\.[\\w.-]*"

/* The value of a name that has one of these words: "NAME=VALUE",
 * "\"NAME\": \"VALUE\"", also within a string, or "--NAME VALUE".  It sets the
 * only group. */
#define WORDS                                                             \
    "token|secret|passw(?:or)?d|passphrase|credential|(?:api|private|acc" \
    "ess)[_-]?key|authorization|cookie"
#define NAMED                                                        \
    "(?i)(?<![\\w-])(?=[\\w-]*(?:" WORDS "))"                        \
    "(?:--[\\w-]+[ \t]+(?![=:])|[\\w-]+\\\\?[\"']?[ \t]*[=:][ \t]*)" \
    "()(?:\\\\\"\\K[^\\\\\n]+"                                       \
    "|\"\\K(?:\\\\.|[^\"\\\\\n])+"                                   \
    "|'\\K(?:\\\\.|[^'\\\\\n])+"                                     \
    "|(?:bearer|basic) +\\K[^\\s\"',;}\\])]+"                        \
    "|(?!\\[removed\\])\\K[^\\s\"',;}\\])]+)"

static bool
is_file(const char *value, size_t n)
{
    char *path = xmemdup0(value, n);
    bool found = *path == '/' && !access(path, F_OK);

    free(path);
    return found;
}

char *
redact_names(char *text, struct sset *secrets, size_t *np)
{
    int error, n;
    PCRE2_SIZE at;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR) KEY "|" LOGIN "|" JWT "|" NAMED,
                      PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(data);
    struct ds out = DS_EMPTY_INITIALIZER;
    size_t length = strlen(text), copied = 0, from = 0;

    while (
        (n = pcre2_match(code, (PCRE2_SPTR) text, length, from, 0, data, NULL))
        > 0) {
        const char *value = text + found[0];
        size_t size = found[1] - found[0];

        from = found[1];
        if (n > 1 && is_file(value, size)) {
            continue;
        } else if (n > 1 && size >= MIN_SECRET) {
            sset_add_and_free(secrets, xmemdup0(value, size));
        }
        ds_put_buffer(&out, text + copied, found[0] - copied);
        ds_put_cstr(&out, REMOVED);
        copied = from;
        ++*np;
    }
    /* What the expression gives up at may hide anything. */
    ds_put_cstr(&out, n == PCRE2_ERROR_NOMATCH ? text + copied : REMOVED);
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    free(text);
    return ds_steal_cstr(&out);
}

/* Removes all occurrences of 'secret' from 'text', which it frees. */
static char *
remove_value(char *text, const char *secret, size_t *np)
{
    struct ds out = DS_EMPTY_INITIALIZER;
    const char *s = text, *found;

    while ((found = strstr(s, secret))) {
        ds_put_buffer(&out, s, found - s);
        ds_put_cstr(&out, REMOVED);
        s = found + strlen(secret);
        ++*np;
    }
    ds_put_cstr(&out, s);
    free(text);
    return ds_steal_cstr(&out);
}

char *
redact_values(char *text, const struct sset *secrets, size_t *np)
{
    const char *secret;

    SSET_FOR_EACH (secret, secrets) {
        text = remove_value(text, secret, np);
    }
    return text;
}
