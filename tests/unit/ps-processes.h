/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_PROCESSES_H
#define PS_PROCESSES_H 1

/* Parameter servers as processes of a test, and a proxy that cuts connections
 * where it is told to.
 *
 *    server = ps_processes_server(config);
 *    proxy = ps_processes_proxy(&server, cuts, n_cuts);
 *    ...connect to 127.0.0.1:proxy.port...
 *    ps_processes_await(server.pid);
 *    ps_processes_kill(proxy.pid);
 *
 * All of them end with the test, at the latest after PS_PROCESSES_LIMIT_S. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trainer/ps/server.h"

#define PS_PROCESSES_LIMIT_S 50

struct ps_process {
    pid_t pid;
    int port;
};

/* How many bytes a connection carries before it is cut; 0: all. */
struct ps_cut {
    size_t to_server, to_client;
};

/* fork(), in whose child 0 is returned. */
pid_t ps_processes_fork(void);

/* Address, scheme ("bsp" if NULL), threads and control are filled in. */
struct ps_process ps_processes_server(struct ps_server_config);

/* One connection after the other, cut as 'cuts' say, then uncut ones. */
struct ps_process ps_processes_proxy(const struct ps_process *server,
                                     const struct ps_cut cuts[], int n_cuts);

/* The exit status, or 128 + signal. */
int ps_processes_await(pid_t);
void ps_processes_kill(pid_t);          /* Kills and awaits. */

/* A connection to 'server' that blocks. */
int ps_processes_connect(const struct ps_process *server);

#endif /* tests/unit/ps-processes.h */
