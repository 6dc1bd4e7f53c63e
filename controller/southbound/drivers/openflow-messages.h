/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OPENFLOW_MESSAGES_H
#define OPENFLOW_MESSAGES_H 1

/* OpenFlow messages that the driver sends, except changes of the flow table.
 *
 * The caller owns the messages.  flow_table_diff() makes a list of changes;
 * openflow_bundle() and openflow_barrier() add the messages that make the list
 * one transaction. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openflow/openflow-common.h"

struct ofpbuf;
struct ovs_list;

/* Requests the primary role for the leader of 'generation'. */
struct ofpbuf *openflow_role_request(enum ofp_version, uint64_t generation);

/* Request asynchronous messages about ports and roles and, if 'packets', about
 * packets that a flow sends to the controller, and no others.  Open vSwitch
 * sends none to a controller that connected to its listener until
 * openflow_set_config() has set miss_send_len. */
struct ofpbuf *openflow_set_async(enum ofp_version, bool packets);
struct ofpbuf *openflow_set_config(enum ofp_version);

/* Requests that the switch sends 'packet' out of 'port'. */
struct ofpbuf *openflow_packet_out(enum ofp_version, uint32_t port,
                                   const void *packet, size_t size);

/* Requests a dump of our flows. */
struct ofpbuf *openflow_flows_request(enum ofp_version);

/* Converts 'messages' into an ordered, atomic bundle.  Requires OpenFlow
 * 1.4. */
void openflow_bundle(struct ovs_list *messages, enum ofp_version,
                     uint32_t id);

/* Appends a barrier. */
void openflow_barrier(struct ovs_list *messages, enum ofp_version);

#endif /* controller/southbound/drivers/openflow-messages.h */
