/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ADDRESS_H
#define ADDRESS_H 1

/* TCP sockets for addresses as people write them: "10.77.0.1:4000",
 * "h0:4000", "[::1]:4000".
 *
 * Functions return NULL or a message. */

#include <stdint.h>

/* Listens at 'port'; 0 lets the kernel choose.  '*portp' is the port used. */
char *address_listen(const char *address, uint16_t port, int *fdp,
                     uint16_t *portp);

/* Begins to connect to 'target' ("HOST:PORT").  The nonblocking socket becomes
 * writable when the attempt is over; address_connected() returns its result,
 * 0 or an errno. */
char *address_connect(const char *target, int *fdp);
int address_connected(int fd);

/* Parses "HOST[:PORT],..." into at most 'max' names "HOST:PORT"; 'port' is the
 * default.  The caller frees the '*np' names, also after a failure. */
char *address_list(const char *text, int port, int max, char *names[],
                   int *np);

/* The port of such a name. */
int address_port(const char *name);

/* "HOST:PORT" of the other end of 'fd', or "unknown address"; the caller frees
 * it. */
char *address_of_peer(int fd);

#endif /* trainer/net/address.h */
