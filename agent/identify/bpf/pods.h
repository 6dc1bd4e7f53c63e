/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PODS_H
#define PODS_H 1

/* Keeps a program at the host's end of each pod's interface.
 *
 * A packet loses its socket on its way from a pod to the uplink, where it is
 * routed, bridged or put into a tunnel.  At the host's end of the pod's veth
 * it still has it, and so a program there writes the slot into the mark (see
 * identity.h).  netkit has a place of its own, which is before Cilium's if
 * ours is there first.  Every veth and netkit of the agent's network namespace
 * counts as the end of a pod's interface, and every tap as one of a virtual
 * machine, but those that are uplinks.  A tap's packets have the tap as their
 * socket, which is of the cgroup of the process that has opened it.  The
 * kernel reports new interfaces, so the first packet of a pod is marked.
 *
 * A packet that was received with GRO at the host's end, or by an XDP program
 * of the driver, has no socket.  Both are off by default; GRO of a veth is
 * switched off, and the doctor (doctor.h) names XDP.
 *
 *    error = pods_create(identity, &pods);
 *    pods_run(pods);
 *    pods_wait(pods);
 *
 * pods_run() and pods_wait() do nothing for NULL.  Main thread only. */

struct identity;
struct pods;

/* After identity_add_uplink().  Returns NULL or a malloc()'d message. */
char *pods_create(struct identity *, struct pods **);
void pods_destroy(struct pods *);

void pods_run(struct pods *);
void pods_wait(const struct pods *);

#endif /* agent/identify/bpf/pods.h */
