/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TC_PROGRAM_H
#define TC_PROGRAM_H 1

/* Attaches a program to an interface, beside those of others.
 *
 * Since kernel 6.6 by TCX: a link, which is pinned, so that it stays when the
 * agent ends and is replaced without a gap.  Before, by a filter of clsact,
 * which belongs to the interface: it is recognised by its handle, stays until
 * somebody removes it, and needs no pin.
 *
 *    error = tc_program_attach(fd, ifindex, place, pin);
 *    if (!tc_program_is_attached(ifindex, place, pin)) {
 *        ...attach it again...
 *    }
 *    tc_program_detach(ifindex, place, pin);
 *
 * No state.  Functions return 0 or a positive errno. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tc_program_place {
    TC_PROGRAM_EGRESS,
    TC_PROGRAM_INGRESS,
    TC_PROGRAM_NETKIT, /* What the other end sends, at the host's end of
                        * netkit; EACCES at another end. */
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

#endif /* agent/identify/bpf/tc-program.h */
