/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_PROCESSES_H
#define PS_PROCESSES_H 1

/* Servers of the trainer, and others, as processes of a test, so that they can
 * be killed, and a proxy that cuts connections where a test wants it.
 *
 *    server = start_server(config);
 *    proxy = start_proxy(&server, cuts, n_cuts);
 *    ...connect to 127.0.0.1:proxy.port...
 *    await_end(server.pid);
 *    kill_process(proxy.pid);
 *
 * All of them end with the test, whatever happens, and none outlives TIMEOUT_S
 * seconds. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trainer/ps/client.h"
#include "trainer/ps/server.h"

#define TIMEOUT_S 50            /* Of a test, in case it hangs. */

struct server {
    pid_t pid;
    int port;
    int errors; /* What it ended with, if it failed; -1: those
                 * of this one are not asked for. */
};

/* How many bytes a connection carries before it is cut; 0: all. */
struct cut {
    size_t to_server, to_client;
};

/* Forks; returns 0 in the child. */
pid_t start_process(void);

/* The exit status, or 128 + signal. */
int await_end(pid_t);
void kill_process(pid_t);               /* Kills and awaits. */

/* Returns a port at which a process of the test may listen at 127.0.0.1.  The
 * kernel gives it to no other process until the test ends. */
uint16_t reserve_port(void);

/* A server that listens: at the config's port, under bsp unless the config has
 * another scheme. */
struct server start_server(struct ps_server_config);

/* Waits for a server's end.  Returns its exit status, and what it said. */
int await_server(const struct server *, char error[256]);

/* A group server of 'central'. */
struct server start_group_server(const struct server *central);

/* One connection after the other, cut as 'cuts' say, then uncut ones. */
struct server start_proxy(const struct server *, const struct cut cuts[],
                          int n_cuts);

/* A client of up to two servers, as 'config' has it, with updates that add
 * gradients. */
char *try_client(const struct server servers[], int n_servers,
                 struct ps_client_config config, struct ps_client **);

/* A connection to a server that blocks. */
int connect_blocking(const struct server *);

#endif /* tests/unit/trainer/ps/ps-processes.h */
