/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/api-source.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* Has requests carry the token in 'file'. */
static char *
use_token(CURL *curl, const char *file)
{
    char token[8192];
    FILE *stream = fopen(file, "re");
    size_t n = stream ? fread(token, 1, sizeof token - 1, stream) : 0;

    if (stream) {
        fclose(stream);
    }
    token[n] = '\0';
    token[strcspn(token, "\r\n")] = '\0';
    if (!token[0]) {
        return message(
            "%s: it cannot be read or is empty; expected a file with a "
            "token",
            file);
    }
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, token);
    return NULL;
}

char *
api_source_prepare(const struct api_source *s, CURL *curl, const char *url,
                   curl_write_callback write, void *aux, char *why)
{
    why[0] = '\0';
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR,
                     s->socket ? "http,https" : "https,file");
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, s->socket);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, aux);
    if (s->ca) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, s->ca);
    }
    return s->token ? use_token(curl, s->token) : NULL;
}
