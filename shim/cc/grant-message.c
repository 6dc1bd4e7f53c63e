/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/grant-message.h"

#include <string.h>

#include "shim/cc/segment.h"

static const char magic[4] = { 'S', 'G', 'C', 'C' };

size_t
grant_message_write(const struct grant_message *m, uint8_t *p)
{
    memcpy(p, magic, sizeof magic);
    p[4] = GRANT_VERSION;
    p[5] = m->type;
    p[6] = m->flags;
    p[7] = m->n;
    put_be32(p + 8, m->to);
    put_be32(p + 12, m->from);
    p += GRANT_HEADER;
    for (int i = 0; i < m->n; i++, p += GRANT_SIZE) {
        const struct grant *g = &m->grants[i];

        memcpy(p, &g->sender_port, 2);
        memcpy(p + 2, &g->receiver_port, 2);
        put_be32(p + 4, g->ms);
        put_be32(p + 8, g->bps >> 32);
        put_be32(p + 12, g->bps);
    }
    return GRANT_HEADER + m->n * GRANT_SIZE;
}

bool
grant_message_read(const uint8_t *p, size_t size, struct grant_message *m)
{
    if (size < GRANT_HEADER || memcmp(p, magic, sizeof magic)
        || p[4] != GRANT_VERSION || p[7] > GRANT_MAX
        || size < GRANT_HEADER + (size_t) p[7] * GRANT_SIZE) {
        return false;
    }
    m->type = p[5];
    m->flags = p[6];
    m->n = p[7];
    m->to = get_be32(p + 8);
    m->from = get_be32(p + 12);
    p += GRANT_HEADER;
    for (int i = 0; i < m->n; i++, p += GRANT_SIZE) {
        struct grant *g = &m->grants[i];

        memcpy(&g->sender_port, p, 2);
        memcpy(&g->receiver_port, p + 2, 2);
        g->ms = get_be32(p + 4);
        g->bps = (uint64_t) get_be32(p + 8) << 32 | get_be32(p + 12);
    }
    return true;
}
