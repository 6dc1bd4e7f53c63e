/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CNI_REQUEST_H
#define CNI_REQUEST_H 1

/* Request of a container runtime to a CNI plug-in.
 *
 * A runtime starts a plug-in with a command and the container in environment
 * variables and the configuration of the network on standard input, and reads
 * the result from standard output (github.com/containernetworking/cni,
 * SPEC.md).  This plug-in runs after those that create the network: their
 * result arrives as "prevResult" and must be passed on unchanged.  Unknown
 * members are ignored.
 *
 * It only observes, so it must never keep a pod from starting or ending, or
 * make a node NotReady: STATUS and GC succeed without reading anything, and a
 * version that is not known is treated as the newest one, where the
 * specification wants an error.
 *
 *    error = cni_request_read(text, size, &environment, &request, &code);
 *    if (!error && request.identity.job[0]) {
 *        ...request.netns belongs to the job...
 *    }
 *    ...cni_request_result(&request)...
 *    cni_request_uninit(&request);
 *
 * Configuration: {"cniVersion", "name", "type", "prevResult", "rundir"?,
 * "claim"?: "annotated" or "all" pods, "capabilities":
 * {"io.kubernetes.cri.pod-annotations": true}}; with that capability the
 * runtime adds the annotations of the pod as "runtimeConfig".
 *
 * A request owns its strings.  No other state. */

#include <jansson.h>
#include <stddef.h>

#include "agent/launch/pod-identity.h"

/* Error codes of the specification. */
enum {
    CNI_BAD_ENVIRONMENT = 4,
    CNI_NOT_JSON = 6,
    CNI_BAD_CONFIG = 7,
};

/* Newest supported version of the protocol. */
#define CNI_VERSION "1.1.0"

enum cni_command {
    CNI_ADD,
    CNI_DEL,
    CNI_CHECK,
    CNI_STATUS,
    CNI_GC,
    CNI_VERSION_COMMAND,
};

/* Environment variables, NULL if not set. */
struct cni_environment {
    const char *command;        /* CNI_COMMAND. */
    const char *netns;          /* CNI_NETNS. */
    const char *args;           /* CNI_ARGS: "A=b;C=d". */
};

struct cni_request {
    enum cni_command command;
    json_t *config;             /* NULL for STATUS and GC. */
    const char *version;        /* Version in the configuration. */
    const char *rundir;
    const char *netns;          /* NULL if the container has none. */
    char name[256];             /* Name of the pod, empty if not passed. */
    struct pod_identity identity;
    char *warning;              /* Description of an ignored value, or NULL. */
};

/* Returns NULL or a malloc()'d message; then '*code' is its error code.  Call
 * cni_request_uninit() in either case. */
char *cni_request_read(const char *text, size_t size,
                       const struct cni_environment *,
                       struct cni_request *request, int *code);
void cni_request_uninit(struct cni_request *);

/* Returns the text to print, which the caller frees, or NULL for nothing. */
char *cni_request_result(const struct cni_request *);
char *cni_error(const char *version, int code, const char *message);

#endif /* agent/launch/cni-request.h */
