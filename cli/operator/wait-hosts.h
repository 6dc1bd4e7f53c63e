/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WAIT_HOSTS_H
#define WAIT_HOSTS_H 1

/* Option "--wait=hosts": waits until the hosts have applied a change of the
 * order (controller/northbound/views/control.h). */

#include <stdbool.h>
#include <stddef.h>

/* Timeout. */
#define WAIT_HOSTS_MS 30000

/* Row of the option --wait, stored in a bool. */
#define WAIT_HOSTS_ROW(STRUCT, MEMBER)                                      \
    { "wait", OPTION_CUSTOM, OPTION_AT(STRUCT, MEMBER), .value = "hosts",   \
      .parse = wait_hosts_parse,                                            \
      .help = "wait until all hosts have applied the change" }

/* Sets the bool at 'wait' if 'text' is "hosts".  Returns NULL or a message. */
char *wait_hosts_parse(const char *text, void *wait);

/* Waits.  'args' are the arguments of "controller/rollout"; 'n_args' is 0 or
 * 3.  Returns an exit status, after a message with the lagging hosts unless it
 * is EXIT_OK. */
int wait_hosts(const char *command, const char *const args[], size_t n_args);

#endif /* cli/operator/wait-hosts.h */
