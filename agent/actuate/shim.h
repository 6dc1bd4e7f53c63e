/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACTUATE_SHIM_H
#define ACTUATE_SHIM_H 1

/* Applies the controller's order to the shim of this host.
 *
 * Keeps a connection to the shim's control socket.  After each connect it
 * requests the shim's slots and from then on sends only differences to the
 * desired state.  Jobs have no slots before the first connect, as the tags of
 * the kernel (wire/slot-tag.h) must have the numbers that the shim has.  While
 * there is no connection, bypass.h decides whether the kernel forwards in
 * place of the shim.
 *
 *    actuator = shim_actuator_create(path, NULL, &events, aux);
 *
 * Use it by actuator.h. */

struct actuator;
struct actuator_events;
struct bypass_ports;

/* 'path' is the shim's control socket.  'bypass' may be NULL, see bypass.h. */
struct actuator *shim_actuator_create(const char *path,
                                      const struct bypass_ports *bypass,
                                      const struct actuator_events *,
                                      void *aux);

#endif /* agent/actuate/shim.h */
