/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CNI_REQUEST_H
#define CNI_REQUEST_H 1

/* What a container runtime asks a CNI plug-in.
 *
 *
 * Motivation
 * ==========
 *
 * A runtime starts a plug-in with a command and the container in environment
 * variables and the network's configuration on standard input, and takes what
 * it prints for the result (github.com/containernetworking/cni, SPEC.md).  We
 * stand behind the plug-ins that make the network: their result comes as
 * "prevResult" and must go on exactly as it came.  A member that we do not
 * know is none of our business.
 *
 *
 * Usage
 * =====
 *
 *    error = cni_request_read(text, size, &environment, &request, &code);
 *    if (!error && request.identity.job[0]) {
 *        ...request.netns is its...
 *    }
 *    ...cni_request_result(&request)...
 *    cni_request_uninit(&request);
 *
 * Configuration: {"cniVersion", "name", "type", "prevResult", "rundir"?,
 * "claim"?: "annotated" or "all" pods, "capabilities":
 * {"io.kubernetes.cri.pod-annotations": true}}; with that capability the
 * runtime adds the pod's annotations as "runtimeConfig".
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A request's strings are its own.  No other state. */

#include <jansson.h>
#include <stddef.h>

#include "agent/launch/pod-identity.h"

/* Codes of errors, of the specification. */
enum {
    CNI_BAD_VERSION = 1,
    CNI_BAD_ENVIRONMENT = 4,
    CNI_NOT_JSON = 6,
    CNI_BAD_CONFIG = 7,
};

/* The newest version of the protocol that we speak. */
#define CNI_VERSION "1.0.0"

enum cni_command {
    CNI_ADD,
    CNI_DEL,
    CNI_CHECK,
    CNI_VERSION_COMMAND,
};

/* Variables, NULL if they are not set. */
struct cni_environment {
    const char *command;        /* CNI_COMMAND. */
    const char *netns;          /* CNI_NETNS. */
    const char *args;           /* CNI_ARGS: "A=b;C=d". */
};

struct cni_request {
    enum cni_command command;
    json_t *config;
    const char *version;        /* Of the configuration. */
    const char *rundir;
    const char *netns;          /* NULL if there is none (any more). */
    char space[64];             /* The pod's namespace and name, as arguments */
    char name[256];             /* have it; empty if they do not. */
    struct pod_identity identity;
    char *warning;              /* What was passed over, or NULL. */
};

/* Returns NULL or a malloc()'d message, in which case '*code' is that of the
 * error.  '*request' is to be cleaned up by cni_request_uninit() either
 * way. */
char *cni_request_read(const char *text, size_t size,
                       const struct cni_environment *,
                       struct cni_request *request, int *code);
void cni_request_uninit(struct cni_request *);

/* What is to be printed, which the caller free()s, or NULL for nothing. */
char *cni_request_result(const struct cni_request *);
char *cni_error(const char *version, int code, const char *message);

#endif /* agent/launch/cni-request.h */
