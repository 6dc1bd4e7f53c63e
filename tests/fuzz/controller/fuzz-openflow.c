/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the messages of a compromised switch to the controller; each message
 * replies to the last request. */

#include <config.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "controller/southbound/drivers/flow-table.h"
#include "controller/southbound/drivers/openflow.h"
#include "flow.h"
#include "openflow/openflow-common.h"
#include "openvswitch/json.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/vlog.h"
#include "tests/fuzz/must.h"

static char *
admit(const struct driver *d, uint64_t datapath, const char *peer, void *aux)
{
    must(!peer && !aux);
    return NULL;
}

static void
want_something(struct driver *d)
{
    static const uint32_t ports[] = { 10, 11 };
    struct flow_table *ft = flow_table_create();
    struct driver_want want = { .generation = 1, .flows = ft };
    struct ofpbuf ofpacts;
    struct match match;

    match_init_catchall(&match);
    ofpbuf_init(&ofpacts, 64);
    ofpact_put_GROUP(&ofpacts)->group_id = FLOW_GROUP(1);
    flow_table_add_group(ft, FLOW_GROUP(1), ports, 2);
    flow_table_add_flow(ft, 0, 100, FLOW_COOKIE(FLOW_LEVEL, 8), &match,
                        &ofpacts);
    ofpbuf_uninit(&ofpacts);
    d->class->want(d, &want);
    flow_table_destroy(want.flows);
}

static void
check(const struct driver *d)
{
    struct driver_status status = d->class->get_status(d);

    must(status.n_wanted == 2 && status.n_applied <= 2);
    must(status.state != DRIVER_IN_SYNC || status.n_applied == 2);
}

/* Removes one message from the input, as a connection does: as many bytes as
 * its header has, if there are enough. */
static struct ofpbuf *
take_message(const uint8_t **data, size_t *size)
{
    const struct ofp_header *oh = (const void *) *data;
    struct ofp_header head;
    struct ofpbuf *msg;
    size_t length;

    memcpy(&head, oh, sizeof head);
    length = ntohs(head.length);
    length = length < sizeof head ? sizeof head : length;
    length = length > *size ? *size : length;
    msg = ofpbuf_clone_data(*data, length);
    head.version = head.version & 1 ? OFP14_VERSION : OFP13_VERSION;
    head.length = htons(length);
    memcpy(msg->data, &head, sizeof head);
    *data += length;
    *size -= length;
    return msg;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct driver *d =
        openflow_create("unix:/nonexistent/switch", admit, NULL);

    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    want_something(d);
    while (size >= sizeof(struct ofp_header)) {
        struct ofpbuf *msg = take_message(&data, &size);

        openflow_test_reply(d, msg);
        ofpbuf_delete(msg);
        check(d);
    }
    json_destroy(d->class->to_json(d));
    d->class->destroy(d);
    return 0;
}
