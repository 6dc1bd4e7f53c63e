/* SPDX-License-Identifier: Apache-2.0 */

#ifndef API_SOURCE_H
#define API_SOURCE_H 1

/* Requests to an API server of Kubernetes, or to a kubelet.
 *
 *    curl = curl_easy_init();
 *    error = api_source_prepare(&source, curl, url, write, aux, why);
 *    ...add a body, then curl_easy_perform(curl)...
 *
 * A program that listens in the place of the server must not get the token,
 * and must not reply for it.  So only https is allowed, with a certificate
 * that an authority has signed, besides files and unix sockets.
 *
 * Thread-safe. */

#include <curl/curl.h>

struct api_source {
    const char *url;    /* https or file; http with 'socket'. */
    const char *socket; /* Unix socket to connect to instead of the
                         * host of the URL, or NULL. */
    const char *token;  /* File with a bearer token, read for each
                         * request, or NULL. */
    const char *ca;     /* File of certificates of authorities, NULL
                         * for the system's. */
};

/* Prepares a request for 'url', which is of the source; 'write' gets the reply
 * with 'aux', and 'why', of CURL_ERROR_SIZE bytes, the error.  Returns NULL,
 * or a malloc()'d message if there is no token. */
char *api_source_prepare(const struct api_source *, CURL *, const char *url,
                         curl_write_callback write, void *aux, char *why);

#endif /* wire/api-source.h */
