/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-fetch.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 5000L
#define MAX_SIZE (64 << 20)

struct body {
    char *text;
    size_t size;
};

static size_t
take(char *data, size_t one, size_t n, void *body_)
{
    struct body *body = body_;
    char *larger = (body->size + n <= MAX_SIZE
                    ? realloc(body->text, body->size + n + 1) : NULL);

    if (!larger) {
        return 0;
    }
    memcpy(larger + body->size, data, n);
    body->text = larger;
    body->size += n;
    return n;
}

/* Adds the header with the token in 'file'. */
static char *
add_token(const char *file, struct curl_slist **headers)
{
    char token[8192], header[8300];
    FILE *stream = fopen(file, "re");
    size_t n = stream ? fread(token, 1, sizeof token - 1, stream) : 0;
    char *error = NULL;

    if (stream) {
        fclose(stream);
    }
    token[n] = '\0';
    token[strcspn(token, "\r\n")] = '\0';
    if (!token[0]) {
        if (asprintf(&error, "%s: it cannot be read or is empty, a file with "
                     "a token is allowed", file) < 0) {
            abort();
        }
        return error;
    }
    snprintf(header, sizeof header, "Authorization: Bearer %s", token);
    *headers = curl_slist_append(*headers, header);
    return NULL;
}

static char *
get(CURL *curl, const struct pod_source *source, struct curl_slist *headers,
    struct body *body)
{
    char why[CURL_ERROR_SIZE] = "";
    char *error = NULL;
    CURLcode code;

    curl_easy_setopt(curl, CURLOPT_URL, source->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, source->socket);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
    if (source->ca) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, source->ca);
    }
    if (source->insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    code = curl_easy_perform(curl);
    if (code != CURLE_OK
        && asprintf(&error, "%s: no list of pods came (%s)", source->url,
                    why[0] ? why : curl_easy_strerror(code)) < 0) {
        abort();
    }
    return error;
}

char *
pod_fetch(const struct pod_source *source, char **textp, size_t *sizep)
{
    struct curl_slist *headers = NULL;
    struct body body = { NULL, 0 };
    CURL *curl = curl_easy_init();
    char *error = NULL;

    if (!curl) {
        abort();
    }
    if (source->token) {
        error = add_token(source->token, &headers);
    }
    if (!error) {
        error = get(curl, source, headers, &body);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    if (error) {
        free(body.text);
        return error;
    }
    *textp = body.text ? body.text : calloc(1, 1);
    *sizep = body.size;
    return NULL;
}
