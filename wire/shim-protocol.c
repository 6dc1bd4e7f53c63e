/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/shim-protocol.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

/* Each checks one element of a body, which is aligned.  Returns true if its
 * values are allowed. */

static bool
check_lease(const void *lease_)
{
    const struct shim_lease *lease = lease_;

    return lease->default_dscp <= 63;
}

static bool
check_slot(const void *slot_)
{
    const struct shim_slot *slot = slot_;

    return (slot->slot && slot->slot < SHIM_MAX_SLOTS
            && slot->level < SHIM_N_LEVELS && slot->dscp <= 63
            && memchr(slot->name, '\0', sizeof slot->name));
}

static bool
check_slot_number(const void *slot_)
{
    const uint16_t *slot = slot_;

    return *slot && *slot < SHIM_MAX_SLOTS;
}

static bool
check_key(const void *key_)
{
    static const uint8_t zeros[12];
    const struct shim_flow_key *key = key_;

    return (!key->pad
            && (key->protocol == IPPROTO_TCP || key->protocol == IPPROTO_UDP)
            && (key->family == 6
                || (key->family == 4
                    && !memcmp(key->local + 4, zeros, sizeof zeros)
                    && !memcmp(key->remote + 4, zeros, sizeof zeros))));
}

static bool
check_flow(const void *flow_)
{
    const struct shim_flow *flow = flow_;

    return flow->slot < SHIM_MAX_SLOTS && !flow->pad && check_key(&flow->key);
}

static bool
check_rate(const void *rate_)
{
    const struct shim_rate *rate = rate_;

    return rate->bps >= SHIM_MIN_RATE && rate->bps <= SHIM_MAX_RATE;
}

static bool
check_min_share(const void *min_share_)
{
    const struct shim_min_share *min_share = min_share_;

    return (min_share->share <= SHIM_MIN_SHARE_UNIT
            || min_share->share == SHIM_MIN_SHARE_DEFAULT);
}

static bool
check_take_over(const void *take_over_)
{
    const struct shim_take_over *take_over = take_over_;

    return (take_over->step == SHIM_STEP_STOP
            || take_over->step == SHIM_STEP_LEAVE);
}

static bool
check_capture(const void *capture_)
{
    const struct shim_capture *c = capture_;

    return (c->slot < SHIM_MAX_SLOTS && c->all <= 1 && !(c->all && c->slot)
            && c->snap && c->snap <= SHIM_MAX_SNAP);
}

static bool
is_congestion_share(uint32_t share)
{
    return share <= SHIM_CONGESTION_UNIT || share == SHIM_CONGESTION_DEFAULT;
}

static bool
check_congestion(const void *congestion_)
{
    const struct shim_congestion *c = congestion_;

    return (is_congestion_share(c->gamma) && is_congestion_share(c->beta)
            && is_congestion_share(c->floor)
            && c->gamma >= SHIM_CONGESTION_UNIT / 2);
}

static bool
check_bins(const void *bins_)
{
    const struct shim_bins_since *b = bins_;

    return (b->slot && b->slot < SHIM_MAX_SLOTS && !b->pad[0] && !b->pad[1]
            && !b->pad[2]);
}

struct body_rule {
    size_t size;                /* Of an element; 0: no body. */
    bool is_array;              /* Any number of elements, not only one. */
    bool (*check)(const void *element); /* NULL: all values are allowed. */
};

/* Returns the rule for requests of 'type', NULL if there are none. */
static const struct body_rule *
find_rule(uint16_t type)
{
    static const struct body_rule no_body = { .size = 0 };
    static const struct body_rule rules[] = {
        [SHIM_LEASE] = { sizeof(struct shim_lease), false, check_lease },
        [SHIM_SLOT_SET] = { sizeof(struct shim_slot), true, check_slot },
        [SHIM_SLOT_CLEAR] = { sizeof(uint16_t), true, check_slot_number },
        [SHIM_FLOW_ADD] = { sizeof(struct shim_flow), true, check_flow },
        [SHIM_FLOW_DELETE] = { sizeof(struct shim_flow_key), true, check_key },
        [SHIM_RATE] = { sizeof(struct shim_rate), false, check_rate },
        [SHIM_FLOW_PAGE] = { sizeof(struct shim_cursor), false, NULL },
        [SHIM_MIN_SHARE] = { sizeof(struct shim_min_share), false,
                             check_min_share },
        [SHIM_TAKE_OVER] = { sizeof(struct shim_take_over), false,
                             check_take_over },
        [SHIM_CAPTURE] = { sizeof(struct shim_capture), false,
                           check_capture },
        [SHIM_CONGESTION] = { sizeof(struct shim_congestion), false,
                              check_congestion },
        [SHIM_BINS] = { sizeof(struct shim_bins_since), false, check_bins },
    };

    switch (type) {
    case SHIM_HELLO:
    case SHIM_SLOT_LIST:
    case SHIM_FLOW_LIST:
    case SHIM_STATS:
    case SHIM_SUBSCRIBE:
    case SHIM_PORTS:
    case SHIM_CONNECTIONS:
        return &no_body;
    default:
        return (type < sizeof rules / sizeof *rules && rules[type].size
                ? &rules[type] : NULL);
    }
}

int
protocol_check_body(uint16_t type, const void *body, size_t length)
{
    const struct body_rule *rule = find_rule(type);
    _Alignas(8) char element[sizeof(struct shim_slot)];

    if (!rule) {
        return EOPNOTSUPP;
    }
    if (rule->is_array ? length % rule->size : length != rule->size) {
        return EPROTO;
    }
    for (size_t at = 0; at < length && rule->check; at += rule->size) {
        memcpy(element, (const char *) body + at, rule->size);
        if (!rule->check(element)) {
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
