/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACTUATE_SHIM_H
#define ACTUATE_SHIM_H 1

/* Actuator of a host with a shim.
 *
 *
 * Motivation
 * ==========
 *
 * Keeps a connection to the shim's control socket.  After each connect it
 * requests the shim's slots and flows and from then on sends only differences
 * to the desired state.  While there is no connection, bypass.h decides
 * whether the kernel forwards in place of the shim.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * See actuator.h. */

struct actuator;
struct actuator_events;
struct bypass_ports;

/* 'path' is the shim's control socket.  'bypass' may be NULL, see bypass.h.
 * 'events' must outlive the actuator. */
struct actuator *shim_actuator_create(const char *path,
                                      const struct bypass_ports *bypass,
                                      const struct actuator_events *events,
                                      void *aux);

#endif /* agent/actuate/shim.h */
