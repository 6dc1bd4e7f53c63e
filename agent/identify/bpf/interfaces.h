/* SPDX-License-Identifier: Apache-2.0 */

#ifndef IDENTITY_INTERFACES_H
#define IDENTITY_INTERFACES_H 1

/* Attaches programs to interfaces, beside those of others, and keeps one at
 * the host's end of each pod's interface.
 *
 * Since kernel 6.6 by TCX: a link, which is pinned, so that it stays when the
 * agent ends and is replaced without a gap.  Before, by a filter of clsact,
 * which belongs to the interface: it is recognised by its handle, stays until
 * another program removes it, and needs no pin.
 *
 *    error = tc_program_attach(fd, ifindex, place, pin);
 *    if (!tc_program_is_attached(ifindex, place, pin)) {
 *        ...attach it again...
 *    }
 *    tc_program_detach(ifindex, place, pin);
 *
 * A packet loses its socket on its way from a pod to the uplink, where it is
 * routed, bridged or put into a tunnel.  At the host's end of the pod's veth
 * it still has it, and so a program there writes the slot into the mark (see
 * identity.h).  netkit has a hook of its own, at which our program runs before
 * Cilium's if it was attached first.  Every veth and netkit of the agent's
 * network namespace counts as the end of a pod's interface, and every tap as
 * one of a virtual machine, but those that are uplinks.  A tap's packets have
 * the tap as their socket, which is of the cgroup of the process that has
 * opened it.  The kernel reports new interfaces, so the first packet of a pod
 * is marked.
 *
 * A packet that was received with GRO at the host's end, or by an XDP program
 * of the driver, has no socket.  Both are off by default; GRO of a veth is
 * switched off, and the doctor (doctor.h) names XDP.
 *
 *    message = pods_create(identity, &pods);
 *    pods_run(pods);
 *    pods_wait(pods);
 *
 * pods_run() and pods_wait() do nothing for NULL.  Functions of programs have
 * no state, and return 0 or a positive errno.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tc_program_place {
    TC_PROGRAM_EGRESS,
    TC_PROGRAM_INGRESS,
    TC_PROGRAM_NETKIT, /* Packets that the other end sends, at the host's end
                        * of netkit; EACCES at the other end. */
};

/* Handle and preference of our filter of clsact: before others, and of a
 * handle that no other program is known to use. */
#define TC_PROGRAM_HANDLE 0x5363
#define TC_PROGRAM_PRIORITY 1

/* Attaches the program 'fd', or puts it in place of the one that is there. */
int tc_program_attach(int fd, int ifindex, enum tc_program_place,
                      const char *pin);
bool tc_program_is_attached(int ifindex, enum tc_program_place,
                            const char *pin);

/* Stores the ids of at most 'max' programs of TCX.  Returns their number. */
size_t tc_program_list(int ifindex, enum tc_program_place, uint32_t *ids,
                       size_t max);
void tc_program_detach(int ifindex, enum tc_program_place, const char *pin);

struct identity;
struct pods;

/* After identity_add_uplink().  Returns NULL or a malloc()'d message. */
char *pods_create(struct identity *, struct pods **);
void pods_destroy(struct pods *);

void pods_run(struct pods *);
void pods_wait(const struct pods *);

#endif /* agent/identify/bpf/interfaces.h */
