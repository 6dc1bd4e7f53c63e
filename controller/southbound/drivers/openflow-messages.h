/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OPENFLOW_MESSAGES_H
#define OPENFLOW_MESSAGES_H 1

/* The messages that the OpenFlow driver sends, apart from changes.
 *
 * Each is the caller's.  Changes are made by flow-table.h, as a list, around
 * which the last two put what makes one transaction of them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openflow/openflow-common.h"

struct ofpbuf;
struct ovs_list;

struct ofpbuf *openflow_features_request(enum ofp_version);

/* Asks to be primary as the leader of 'generation'. */
struct ofpbuf *openflow_role_request(enum ofp_version, uint64_t generation);

/* Ask to be told when a port changes or another controller becomes primary,
 * and, if 'packets', of packets that a flow sends us, and of nothing else.  The
 * second one is what makes Open vSwitch
 * tell anything at all to who connected to its listener. */
struct ofpbuf *openflow_set_async(enum ofp_version, bool packets);
struct ofpbuf *openflow_set_config(enum ofp_version);

/* Has 'packet' sent out of 'port'. */
struct ofpbuf *openflow_packet_out(enum ofp_version, uint32_t port,
                                   const void *packet, size_t size);

/* Ask for all groups, and for our flows. */
struct ofpbuf *openflow_groups_request(enum ofp_version);
struct ofpbuf *openflow_flows_request(enum ofp_version);

/* Makes 'messages' a bundle, all of which is done, in its order, or nothing;
 * needs OpenFlow 1.4. */
void openflow_bundle(struct ovs_list *messages, enum ofp_version,
                     uint32_t id);

/* Appends a barrier. */
void openflow_barrier(struct ovs_list *messages, enum ofp_version);

#endif /* controller/southbound/drivers/openflow-messages.h */
