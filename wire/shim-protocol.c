/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/shim-protocol.h"

#include <errno.h>
#include <string.h>

/* Returns 0 if 'length' bytes are a body of whole elements of 'size'. */
static int
check_array(size_t length, size_t size)
{
    return length % size ? EPROTO : 0;
}

static int
check_exactly(size_t length, size_t size)
{
    return length == size ? 0 : EPROTO;
}

static int
check_lease(const struct shim_lease *lease)
{
    return lease->default_dscp > 63 ? EINVAL : 0;
}

static int
check_slot(const struct shim_slot *slot)
{
    return (slot->slot && slot->slot < SHIM_MAX_SLOTS
            && slot->level < SHIM_N_LEVELS && slot->dscp <= 63
            && memchr(slot->name, '\0', sizeof slot->name)) ? 0 : EINVAL;
}

static int
check_key(const struct shim_flow_key *key)
{
    static const uint8_t zeros[12];

    if (key->pad || (key->protocol != 6 && key->protocol != 17)) {
        return EINVAL;
    }
    if (key->family == 4) {
        return (memcmp(key->local + 4, zeros, sizeof zeros)
                || memcmp(key->remote + 4, zeros, sizeof zeros)) ? EINVAL : 0;
    }
    return key->family == 6 ? 0 : EINVAL;
}

static int
check_flow(const struct shim_flow *flow)
{
    return (flow->slot < SHIM_MAX_SLOTS && !flow->pad
            ? check_key(&flow->key) : EINVAL);
}

static int
check_rate(const struct shim_rate *rate)
{
    return (rate->bps >= SHIM_MIN_RATE && rate->bps <= SHIM_MAX_RATE
            ? 0 : EINVAL);
}

static int
check_guard(const struct shim_guard *guard)
{
    return (guard->share <= SHIM_GUARD_UNIT
            || guard->share == SHIM_GUARD_UNTOLD ? 0 : EINVAL);
}

static int
check_take_over(const struct shim_take_over *t)
{
    return (t->step == SHIM_STEP_STOP || t->step == SHIM_STEP_LEAVE
            ? 0 : EINVAL);
}

static int
check_capture(const struct shim_capture *c)
{
    return (c->slot < SHIM_MAX_SLOTS && c->all <= 1 && !(c->all && c->slot)
            && c->snap && c->snap <= SHIM_MAX_SNAP ? 0 : EINVAL);
}

static int
check_congestion(const struct shim_congestion *c)
{
    const uint32_t shares[] = { c->gamma, c->beta, c->floor };

    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        if (shares[i] > SHIM_CONGESTION_UNIT
            && shares[i] != SHIM_CONGESTION_UNTOLD) {
            return EINVAL;
        }
    }
    return c->gamma < SHIM_CONGESTION_UNIT / 2 ? EINVAL : 0;
}

static int
check_bins(const struct shim_bins_since *b)
{
    return (b->slot && b->slot < SHIM_MAX_SLOTS && !b->pad[0] && !b->pad[1]
            && !b->pad[2] ? 0 : EINVAL);
}

/* Copies each element to where it is aligned before it is looked at. */
#define CHECK_EACH(TYPE, CHECK)                                         \
    do {                                                                \
        int error_ = check_array(length, sizeof(TYPE));                 \
                                                                        \
        for (size_t i = 0; !error_ && i < length / sizeof(TYPE); i++) { \
            TYPE element_;                                              \
                                                                        \
            memcpy(&element_, (const char *) body + i * sizeof element_, \
                   sizeof element_);                                    \
            error_ = CHECK(&element_);                                  \
        }                                                               \
        return error_;                                                  \
    } while (0)

static int
check_slot_number(const uint16_t *slot)
{
    return *slot && *slot < SHIM_MAX_SLOTS ? 0 : EINVAL;
}

/* Checks the 'length' bytes at 'body' as the body of a request of 'type'.
 * Returns 0, EPROTO if its size is wrong, EINVAL if a value is, or EOPNOTSUPP
 * if there is no such request. */
int
protocol_check_body(uint16_t type, const void *body, size_t length)
{
    switch (type) {
    case SHIM_HELLO:
    case SHIM_SLOT_LIST:
    case SHIM_FLOW_LIST:
    case SHIM_STATS:
    case SHIM_SUBSCRIBE:
    case SHIM_PORTS:
    case SHIM_CONNECTIONS:
        return check_exactly(length, 0);
    case SHIM_LEASE:
        if (check_exactly(length, sizeof(struct shim_lease))) {
            return EPROTO;
        }
        CHECK_EACH(struct shim_lease, check_lease);
    case SHIM_SLOT_SET:
        CHECK_EACH(struct shim_slot, check_slot);
    case SHIM_SLOT_CLEAR:
        CHECK_EACH(uint16_t, check_slot_number);
    case SHIM_FLOW_ADD:
        CHECK_EACH(struct shim_flow, check_flow);
    case SHIM_FLOW_DELETE:
        CHECK_EACH(struct shim_flow_key, check_key);
    case SHIM_RATE:
        if (check_exactly(length, sizeof(struct shim_rate))) {
            return EPROTO;
        }
        CHECK_EACH(struct shim_rate, check_rate);
    case SHIM_FLOW_PAGE:
        return check_exactly(length, sizeof(struct shim_cursor));
    case SHIM_GUARD:
        if (check_exactly(length, sizeof(struct shim_guard))) {
            return EPROTO;
        }
        CHECK_EACH(struct shim_guard, check_guard);
    case SHIM_TAKE_OVER:
        if (check_exactly(length, sizeof(struct shim_take_over))) {
            return EPROTO;
        }
        CHECK_EACH(struct shim_take_over, check_take_over);
    case SHIM_CAPTURE:
        if (check_exactly(length, sizeof(struct shim_capture))) {
            return EPROTO;
        }
        CHECK_EACH(struct shim_capture, check_capture);
    case SHIM_CONGESTION:
        if (check_exactly(length, sizeof(struct shim_congestion))) {
            return EPROTO;
        }
        CHECK_EACH(struct shim_congestion, check_congestion);
    case SHIM_BINS:
        if (check_exactly(length, sizeof(struct shim_bins_since))) {
            return EPROTO;
        }
        CHECK_EACH(struct shim_bins_since, check_bins);
    default:
        return EOPNOTSUPP;
    }
}

/* Looks whether the 'size' bytes at 'data' begin with a whole message, and
 * copies its header to '*msg' if so.  Returns 0 if they do, EAGAIN if more
 * bytes are needed, or EPROTO if this can never become a message. */
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
