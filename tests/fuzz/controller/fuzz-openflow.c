/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the messages of a compromised switch to the controller; each message
 * replies to the last request.  Packet-in messages may contain link probes.
 * Only the controller can create a valid probe; the test also delivers valid
 * probes, unchanged or modified, at the right or another port. */

#include <config.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "controller/southbound/drivers/flow-table.h"
#include "controller/southbound/drivers/openflow.h"
#include "controller/southbound/topology/link-check.h"
#include "controller/southbound/topology/topology.h"
#include "flow.h"
#include "openflow/openflow-common.h"
#include "openvswitch/json.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/vlog.h"
#include "tests/fuzz/must.h"

/* Two switches with a link between their ports 1, and the last probe sent by
 * each. */
struct world {
    struct link_check *lc;
    uint8_t frames[2][LLDP_MAX_SIZE];
    size_t sizes[2];
};

static char *
admit(const struct driver *d, uint64_t datapath, const char *peer, void *aux)
{
    must(!peer && aux);
    return NULL;
}

static bool
send_frame(const struct topology_port *from, const struct topology_port *to,
           const void *frame, size_t size, void *world_)
{
    struct world *w = world_;

    must(from->sw == !to->sw && size <= LLDP_MAX_SIZE);
    memcpy(w->frames[from->sw], frame, size);
    w->sizes[from->sw] = size;
    return true;
}

/* Delivers the packet from switch 0, and then twice a probe that was sent.
 * The first bytes of the packet select the probe, its receiving switch and
 * port, and the byte to modify. */
static void
take_packet(const struct driver *d, uint32_t port, const void *packet,
            size_t size, void *world_)
{
    struct world *w = world_;
    const uint8_t *p = packet;
    uint8_t frame[LLDP_MAX_SIZE];
    size_t n;

    link_check_receive(w->lc, 0, port, packet, size);
    if (size < 4) {
        return;
    }
    n = w->sizes[p[0] & 1];
    memcpy(frame, w->frames[p[0] & 1], n);
    if (p[0] & 2 && p[2] < n) {
        frame[p[2]] ^= p[3];
    }
    link_check_receive(w->lc, p[0] >> 2 & 1, p[1], frame, n);
    link_check_receive(w->lc, p[0] >> 3 & 1, 1, frame, n);
}

static const struct driver_events events = {
    .admit = admit,
    .packet = take_packet,
};

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
 * its header says, if there are enough. */
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
    static char name[] = "a";
    static struct topology_switch switches[] = {
        { .name = name, .datapath = 1 }, { .name = name, .datapath = 2 },
    };
    static struct topology_link link = { .ends = { { 0, 1 }, { 1, 1 } } };
    const struct topology t = {
        .switches = switches, .n_switches = 2, .links = &link, .n_links = 1,
    };
    const struct lldp_key key = { .bytes = "secret", .n = LLDP_MIN_KEY };
    struct world w = { .lc = link_check_create(&t, &key) };
    struct driver *d = openflow_create("unix:/nonexistent/switch", &events,
                                       &w);
    struct json *alarms = json_array_create_empty();

    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    want_something(d);
    link_check_run(w.lc, send_frame, &w);
    while (size >= sizeof(struct ofp_header)) {
        struct ofpbuf *msg = take_message(&data, &size);

        openflow_test_answer(d, msg);
        ofpbuf_delete(msg);
        check(d);
    }
    json_destroy(d->class->to_json(d));
    link_check_alarms(w.lc, alarms);
    must(alarms->array.n <= 2);
    json_destroy(alarms);
    json_destroy(link_check_to_json(w.lc));
    link_check_destroy(w.lc);
    d->class->destroy(d);
    return 0;
}
