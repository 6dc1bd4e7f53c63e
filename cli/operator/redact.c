/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "openvswitch/dynamic-string.h"
#include "util.h"

#define REMOVED "[removed]"

/* Shorter values are not searched for elsewhere. */
#define MIN_SECRET 6

/* Parts of names of secrets. */
static const char *const words[] = {
    "token", "secret", "passwd", "password", "passphrase", "credential",
    "apikey", "api-key", "api_key", "privatekey", "private-key",
    "private_key", "access-key", "access_key", "authorization", "cookie",
};

void
redactor_init(struct redactor *r)
{
    sset_init(&r->secrets);
}

void
redactor_uninit(struct redactor *r)
{
    sset_destroy(&r->secrets);
}

static bool
is_name(char c)
{
    return isalnum((unsigned char) c) || c == '_' || c == '-';
}

/* Returns the number of bytes of the word of a secret at 's', or 0. */
static size_t
match_word(const char *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t n = strlen(words[i]);

        if (tolower((unsigned char) *s) == words[i][0]
            && !strncasecmp(s, words[i], n)) {
            return n;
        }
    }
    return 0;
}

static const char *
skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

/* Returns the end of a value that begins at 's', after 'quote' unless that is
 * 0, which a backslash precedes if 'escaped'. */
static const char *
find_end(const char *s, char quote, bool escaped)
{
    if (escaped) {
        return s + strcspn(s, "\\\n");
    } else if (quote) {
        while (*s && *s != quote && *s != '\n') {
            s += *s == '\\' && s[1] && s[1] != '\n' ? 2 : 1;
        }
        return s;
    }
    return s + strcspn(s, " \t\r\n\"',;}])");
}

static bool
is_file(const char *value, size_t n)
{
    char *path = xmemdup0(value, n);
    bool found = *path == '/' && !access(path, F_OK);

    free(path);
    return found;
}

/* Returns the start of the value of the name with the word at 'word', which
 * ends at 'end', and stores the end of the value; or NULL.
 * 'text' is the beginning of the text. */
static const char *
find_value(const char *text, const char *word, const char *end,
           const char **endp)
{
    const char *begin = word, *s;
    bool escaped;
    char quote;

    while (begin > text && is_name(begin[-1])) {
        begin--;
    }
    while (is_name(*end)) {
        end++;
    }
    s = end + (*end == '\\') + (end[*end == '\\'] == '"'
                                || end[*end == '\\'] == '\'');
    s = skip_blanks(s);
    if (*s == '=' || *s == ':') {
        s = skip_blanks(s + 1);
    } else if (strncmp(begin, "--", 2) || s == end) {
        return NULL;            /* Neither "NAME=" nor "--NAME VALUE". */
    }
    escaped = *s == '\\' && s[1] == '"';
    s += escaped;
    quote = *s == '"' || *s == '\'' ? *s : '\0';
    s += quote != '\0';
    if (!quote && (!strncasecmp(s, "Bearer ", 7)
                   || !strncasecmp(s, "Basic ", 6))) {
        s = skip_blanks(s + strcspn(s, " "));
    }
    *endp = find_end(s, quote, escaped);
    return *endp > s ? s : NULL;
}

static const char pem_begin[] = "-----BEGIN ";

/* Returns the end of a private key in PEM at 's', or NULL. */
static const char *
match_key(const char *s)
{
    const char *line, *end;

    if (strncmp(s, pem_begin, sizeof pem_begin - 1)) {
        return NULL;
    }
    line = s + strcspn(s, "\n");
    end = strstr(s, "PRIVATE KEY-----");
    if (!end || end > line) {
        return NULL;
    }
    end = strstr(end, "-----END ");
    return end ? end + strcspn(end, "\n") : s + strlen(s);
}

/* Returns the end of the user and the password of a URL at 's', "//", or NULL.
 */
static const char *
match_login(const char *s)
{
    const char *end = s + 2 + strcspn(s + 2, " \t\r\n/\"'<>@");
    const char *colon = memchr(s + 2, ':', end - s - 2);

    return *end == '@' && colon ? end : NULL;
}

/* Returns the end of a JSON web token at 's', or NULL. */
static const char *
match_jwt(const char *s)
{
    const char *end = s;

    while (is_name(*end) || *end == '.') {
        end++;
    }
    return !strncmp(s, "eyJ", 3) && end - s >= 20
           && memchr(s, '.', end - s) ? end : NULL;
}

static void
remember(struct redactor *r, const char *value, size_t n)
{
    if (n >= MIN_SECRET) {
        char *copy = xmemdup0(value, n);

        sset_add(&r->secrets, copy);
        free(copy);
    }
}

/* Returns the end of a secret at 's' that needs no name, or NULL. */
static const char *
match_form(const char *text, const char *s)
{
    return (*s == '-' ? match_key(s)
            : *s == 'e' && (s == text || !is_name(s[-1])) ? match_jwt(s)
            : NULL);
}

char *
redact_names(struct redactor *r, char *text, size_t *np)
{
    struct ds out = DS_EMPTY_INITIALIZER;
    const char *s = text;

    while (*s) {
        const char *end = match_form(text, s);
        const char *value = end ? s : NULL;
        size_t n;

        if (!value && !strncmp(s, "//", 2) && s > text && s[-1] == ':') {
            end = match_login(s);
            value = end ? s + 2 : NULL;
        } else if (!value && (n = match_word(s))) {
            value = find_value(text, s, s + n, &end);
            if (value && (is_file(value, end - value)
                          || !strncmp(value, REMOVED, end - value))) {
                value = NULL;
            } else if (value) {
                remember(r, value, end - value);
            }
        }
        if (value) {
            ds_put_buffer(&out, s, value - s);
            ds_put_cstr(&out, REMOVED);
            s = end;
            ++*np;
        } else {
            ds_put_char(&out, *s++);
        }
    }
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
redact_values(const struct redactor *r, char *text, size_t *np)
{
    const char *secret;

    SSET_FOR_EACH (secret, &r->secrets) {
        if (strstr(text, secret)) {
            text = remove_value(text, secret, np);
        }
    }
    return text;
}
