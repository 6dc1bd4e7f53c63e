/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_CONTROLLER_STATUS_H
#define CLI_CONTROLLER_STATUS_H 1

/* Prints what the servers in 'rundir' know of the clusters of 'databases'.
 * Returns NULL, or a message that the caller frees if one does not answer or
 * has no leader. */

#include <stdbool.h>
#include <stddef.h>

struct database;

char *controller_status(const char *rundir,
                        const struct database *const databases[], size_t n,
                        bool json);

#endif /* cli/operator/controller-status.h */
