/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/shim-protocol.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* An element of a request's body, aligned. */
union element {
    struct shim_lease lease;
    struct shim_slot slot;
    struct shim_min_share min_share;
    struct shim_take_over take_over;
    struct shim_congestion congestion;
    struct shim_control control;
    struct shim_bins_since bins;
    struct shim_key key;
    uint16_t slot_number;
};

static bool
is_slot(uint16_t slot)
{
    return slot && slot < SHIM_MAX_SLOTS;
}

static bool
is_congestion_share(uint32_t share)
{
    return share <= SHIM_CONGESTION_UNIT || share == SHIM_CONGESTION_DEFAULT;
}

/* Returns true if the values of 'e', of a request of 'type', are allowed. */
static bool
check_element(uint16_t type, const union element *e)
{
    switch (type) {
    case SHIM_LEASE:
        return e->lease.default_dscp <= 63;
    case SHIM_SLOT_SET:
        return is_slot(e->slot.slot) && e->slot.level < SHIM_N_LEVELS
               && e->slot.dscp <= 63
               && memchr(e->slot.name, '\0', sizeof e->slot.name);
    case SHIM_SLOT_CLEAR:
        return is_slot(e->slot_number);
    case SHIM_MIN_SHARE:
        return e->min_share.share <= SHIM_MIN_SHARE_UNIT
               || e->min_share.share == SHIM_MIN_SHARE_DEFAULT;
    case SHIM_TAKE_OVER:
        return e->take_over.step == SHIM_STEP_STOP
               || e->take_over.step == SHIM_STEP_LEAVE;
    case SHIM_CONGESTION:
        return is_congestion_share(e->congestion.gamma)
               && is_congestion_share(e->congestion.beta)
               && is_congestion_share(e->congestion.floor)
               && e->congestion.gamma >= SHIM_CONGESTION_UNIT / 2;
    case SHIM_CONTROL:
        return (e->control.dscp && e->control.dscp <= 63 && !e->control.pad);
    case SHIM_BINS:
        return is_slot(e->bins.slot) && !e->bins.pad[0] && !e->bins.pad[1]
               && !e->bins.pad[2];
    case SHIM_KEYS:
        return (e->key.family == 4 || e->key.family == 6)
               && e->key.removed <= 1;
    default:
        return true;
    }
}

int
protocol_check_body(uint16_t type, const void *body, size_t length)
{
    static const struct {
        bool is_request;
        bool is_array;          /* Any number of elements, not only one. */
        size_t size;            /* Of an element; 0: no body. */
    } bodies[] = {
        [SHIM_HELLO] = { true, false, 0 },
        [SHIM_LEASE] = { true, false, sizeof(struct shim_lease) },
        [SHIM_SLOT_SET] = { true, true, sizeof(struct shim_slot) },
        [SHIM_SLOT_CLEAR] = { true, true, sizeof(uint16_t) },
        [SHIM_SLOT_LIST] = { true, false, 0 },
        [SHIM_STATS] = { true, false, 0 },
        [SHIM_MIN_SHARE] = { true, false, sizeof(struct shim_min_share) },
        [SHIM_CONGESTION] = { true, false, sizeof(struct shim_congestion) },
        [SHIM_PORTS] = { true, false, 0 },
        [SHIM_TAKE_OVER] = { true, false, sizeof(struct shim_take_over) },
        [SHIM_BINS] = { true, false, sizeof(struct shim_bins_since) },
        [SHIM_CONNECTIONS] = { true, false, 0 },
        [SHIM_CONTROL] = { true, false, sizeof(struct shim_control) },
        [SHIM_ABOUT] = { true, false, 0 },
        [SHIM_REFUSED] = { true, false, 0 },
        [SHIM_KEYS] = { true, true, sizeof(struct shim_key) },
        [SHIM_PEERS] = { true, false, 0 },
    };

    union element element;
    size_t size;

    if (type >= sizeof bodies / sizeof *bodies || !bodies[type].is_request) {
        return EOPNOTSUPP;
    }
    size = bodies[type].size;
    if (bodies[type].is_array ? length % size : length != size) {
        return EPROTO;
    }
    for (size_t at = 0; at < length; at += size) {
        memcpy(&element, (const char *) body + at, size);
        if (!check_element(type, &element)) {
            return EINVAL;
        }
    }
    return 0;
}

int
protocol_next(const void *data, size_t size, struct shim_msg *msg)
{
    struct shim_msg m;

    if (size < sizeof m) {
        return EAGAIN;
    }
    memcpy(&m, data, sizeof m);
    if (m.length < sizeof m || m.length > SHIM_MAX_MESSAGE
        || m.version != SHIM_PROTOCOL_VERSION) {
        return EPROTO;
    }
    if (size < m.length) {
        return EAGAIN;
    }
    *msg = m;
    return 0;
}
