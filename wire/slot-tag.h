/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */

#ifndef SLOT_TAG_H
#define SLOT_TAG_H 1

/* The slot tag: the job of a frame, from a host to its shim.
 *
 * The host's kernel knows the socket of a packet, and so its job, before the
 * packet leaves; the shim sees only headers, which any process can write.  So
 * a program of the agent at the egress of the host's interface pushes an
 * 802.1Q tag (type 0x8100) on each frame for the shim, which removes it.  Bits
 * of the tag's control information:
 *
 *    0-9     job slot; 0: no job
 *    10      the packet is in the control class of that job
 *    11      do not learn: the packet's source is not an address of the
 *            interface, so its flow does not show the job of received packets
 *    12-15   priority and DEI: the writer sets 0, the reader ignores them
 *
 * 802.1Q reserves the identifier 4095, so a writer must not send it: no job
 * gets slot SLOT_TAG_SLOT.  A VLAN tag of the host itself is behind the slot
 * tag, and stays.
 *
 *    class = slot_tag_class(tci);
 *    if (slot_tag_learns(tci)) {
 *        ...received packets of this flow belong to class & SLOT_TAG_SLOT...
 *    }
 *
 * Plain C, for programs of the kernel too.  Pure functions. */

#include <linux/types.h>

#define SLOT_TAG_SLOT 0x3ff
#define SLOT_TAG_CONTROL 0x400
#define SLOT_TAG_NO_LEARN 0x800

/* Returns the slot, with SLOT_TAG_CONTROL for a packet of the job's control
 * class.  'tci' is in host byte order. */
static inline __u16
slot_tag_class(__u16 tci)
{
    return tci & (SLOT_TAG_SLOT | SLOT_TAG_CONTROL);
}

/* Returns nonzero if the flow's received packets belong to the same slot. */
static inline int
slot_tag_learns(__u16 tci)
{
    return !(tci & SLOT_TAG_NO_LEARN);
}

#endif /* wire/slot-tag.h */
