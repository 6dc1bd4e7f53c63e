/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_FETCH_H
#define POD_FETCH_H 1

/* Fetches the list of pods from the kubelet.
 *
 *
 * Usage
 * =====
 *
 *    struct pod_source source = { .url = "https://127.0.0.1:10250/pods",
 *                                 .token = "/var/run/.../token" };
 *
 *    error = pod_fetch(&source, &text, &size);
 *
 * Limits: five seconds, 64 MiB.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * curl_global_init() must be called first.  Thread-safe. */

#include <stdbool.h>
#include <stddef.h>

struct pod_source {
    const char *url;            /* http, https or file. */
    const char *socket;         /* Unix socket to connect to instead of the
                                 * host of the URL, or NULL. */
    const char *token;          /* File with a bearer token, read for each
                                 * request, or NULL. */
    const char *ca;             /* File of certificates of authorities, NULL
                                 * for the system's. */
    bool insecure;              /* Accept any certificate. */
};

/* Returns NULL and stores the list in '*textp', which the caller frees, or
 * returns a malloc()'d message. */
char *pod_fetch(const struct pod_source *, char **textp, size_t *sizep);

#endif /* agent/launch/pod-fetch.h */
