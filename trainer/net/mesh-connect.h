/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MESH_CONNECT_H
#define MESH_CONNECT_H 1

/* The start of a mesh: a connection between every two peers.
 *
 * Peers start in any order, and may be late: many on one machine load their
 * data at the same time.  So no peer waits for another one before it connects
 * to a third, a connection without a hello delays no other, and the time
 * limit begins again with each peer that has connected.
 *
 *    error = mesh_connect(&config, listener, links);
 *
 * The caller owns the listener and the links, also those that are open after
 * an error. */

struct link;
struct peer_net_config;

/* Connects to the lower ranks and accepts the higher ones, all at once.  Opens
 * 'links' of all ranks but the own one.  Returns NULL or a message.  Blocks
 * until a signal, at most. */
char *mesh_connect(const struct peer_net_config *, int listener,
                   struct link *const links[]);

#endif /* trainer/net/mesh-connect.h */
