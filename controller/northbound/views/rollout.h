/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ROLLOUT_H
#define ROLLOUT_H 1

/* How far what is wanted is in force: on hosts and in switches.
 *
 *
 * Motivation
 * ==========
 *
 * Between a command and its effect on a host are a database, an order, another
 * database and an agent.  Who goes on only when all of that is done (a script
 * that measures, an operator who drains a host) asks for it instead of
 * sleeping.
 *
 *
 * Usage
 * =====
 *
 * "controller/rollout [COJOB RUNG begun|ended]" of the control socket answers
 * at once, with "done" false until the order follows from all that is known,
 * each host that has an agent has put its part in force and each switch that
 * is connected has its flows.  A stage that is given must have begun or ended
 * too: so a client that has written to the intent database knows that the
 * controller has read that.  The command line asks again until it is done.
 *
 * Main thread only. */

#include <stdbool.h>

struct controller;
struct json;

/* Returns {"done", "version", "hosts" (with an agent), "hosts_applied",
 * "behind": [names], "applied" (part of these hosts, 0 to 1),
 * "switches_applied" (part of what they shall have)}. */
struct json *rollout_to_json(const struct controller *);

/* 'ctl' must live as long as the program answers. */
void rollout_register(struct controller *ctl);

#endif /* controller/northbound/views/rollout.h */
