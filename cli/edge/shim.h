/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_SHIM_H
#define CLI_SHIM_H 1

/* The commands "stagecoach shim ...", which ask a shim of this host. */

int shim_stats(int argc, char *argv[]);
int shim_capture(int argc, char *argv[]);

/* The control socket that is asked unless another one is named.  The caller
 * frees it. */
char *shim_default_socket(void);

#endif /* cli/edge/shim.h */
