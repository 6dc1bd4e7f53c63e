/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WAIT_HOSTS_H
#define WAIT_HOSTS_H 1

/* "--wait=hosts" of commands that change the order: they come back when it is
 * in force, as controller/northbound/views/rollout.h has it. */

#include <stdbool.h>
#include <stddef.h>

/* How long that may take. */
#define WAIT_HOSTS_MS 30000

/* Row of the option --wait, stored in a bool. */
#define WAIT_HOSTS_ROW(STRUCT, MEMBER)                                      \
    { "wait", OPTION_CUSTOM, OPTION_AT(STRUCT, MEMBER), .value = "hosts",   \
      .parse = wait_hosts_parse,                                            \
      .help = "wait until all hosts have applied the change" }

/* Sets the bool at 'wait' if 'text' is "hosts".  Returns NULL or a message. */
char *wait_hosts_parse(const char *text, void *wait);

/* Waits.  The 'n_args' 'args', none or three, are those of
 * "controller/rollout".  Returns an exit status, with a message if it is not
 * EXIT_OK that names the hosts that are behind. */
int wait_hosts(const char *command, const char *const args[], size_t n_args);

#endif /* cli/operator/wait-hosts.h */
