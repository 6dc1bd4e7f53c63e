/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_FETCH_H
#define POD_FETCH_H 1

/* Gets the kubelet's list of pods.
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
 * It waits for at most five seconds, and takes at most 64 MiB.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * curl_global_init() comes first.  Thread-safe then. */

#include <stdbool.h>
#include <stddef.h>

struct pod_source {
    const char *url;            /* http, https or file. */
    const char *socket;         /* A unix socket to ask instead of the URL's
                                 * host, or NULL. */
    const char *token;          /* A file with a bearer token, read each time,
                                 * or NULL. */
    const char *ca;             /* A file of certificates that sign the
                                 * kubelet's, NULL for the system's. */
    bool insecure;              /* Take any certificate. */
};

/* Returns NULL, with '*textp' for the caller to free, or a malloc()'d
 * message. */
char *pod_fetch(const struct pod_source *, char **textp, size_t *sizep);

#endif /* agent/launch/pod-fetch.h */
