/* SPDX-License-Identifier: Apache-2.0 */

/* State of congestion control from an old shim: a body that passes the check
 * does no harm, neither at once nor with later frames, and can be saved again.
 * The input is a body with up to three elements of each kind, then the input
 * of give_all(). */

#include "shim/cc/takeover-state.h"
#include "tests/fuzz/shim/cc-frames.h"

#define MAX_EACH 4

static void
must_be_good(struct cc *cc)
{
    void *body = malloc(CC_TAKEOVER_BYTES);
    size_t size;

    must(body);
    size = cc_save(cc, body);
    must(size <= CC_TAKEOVER_BYTES);
    must(!takeover_state_check(body, size));
    free(body);
}

static void
succeed(const void *body, const uint8_t *frames, size_t size)
{
    struct job_slots *slots = job_slots_create();
    struct cc *cc = create_cc(slots);
    uint64_t now = 1000 * MS;

    cc_restore(cc, body, now);
    must_be_good(cc);
    now = give_all(cc, frames, size, now);
    must_be_good(cc);
    destroy_cc(cc, now);
    job_slots_destroy(slots);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct takeover_state head;
    size_t body_size;
    void *body = copy_bytes(data, size);

    takeover_state_check(body, size);
    free(body);
    if (size < sizeof head) {
        return 0;
    }
    memcpy(&head, data, sizeof head);
    head.n_remotes %= MAX_EACH;
    head.n_connections %= MAX_EACH;
    body_size = takeover_state_size(head.n_remotes, head.n_connections);
    if (size >= body_size) {
        body = copy_bytes(data, body_size);
        memcpy(body, &head, sizeof head);
        if (!takeover_state_check(body, body_size)) {
            succeed(body, data + body_size, size - body_size);
        }
        free(body);
    }
    return 0;
}
