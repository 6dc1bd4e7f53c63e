/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ADDRESS_H
#define ADDRESS_H 1

/* TCP sockets by the addresses that people write: "10.77.0.1:4000",
 * "h0:4000", "[::1]:4000".
 *
 * Functions return NULL or a message. */

#include <stdint.h>

/* Listens at 'port', 0 for the kernel's choice, which is then in '*portp'. */
char *address_listen(const char *address, uint16_t port, int *fdp,
                     uint16_t *portp);

/* Begins to connect to 'target' ("HOST:PORT").  The socket is nonblocking,
 * and writable when the attempt is over: address_connected() says how it
 * was. */
char *address_connect(const char *target, int *fdp);
int address_connected(int fd);

/* Reads "HOST[:PORT],...", of at most 'max', into 'names', as "HOST:PORT",
 * with 'port' for those without one.  The caller frees the '*np' names, also
 * after a failure. */
char *address_list(const char *text, int port, int max, char *names[],
                   int *np);

/* The port of such a name. */
int address_port(const char *name);

/* The other end of 'fd', for messages; the caller frees it. */
char *address_peer(int fd);

#endif /* trainer/net/address.h */
