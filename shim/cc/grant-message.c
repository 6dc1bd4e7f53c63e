/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/grant-message.h"

#include <sodium.h>
#include <string.h>

#include "shim/cc/segment.h"

static const char magic[4] = { 'S', 'G', 'C', 'C' };

_Static_assert(SHIM_KEY_BYTES == crypto_shorthash_siphash24_KEYBYTES
                   && GRANT_HASH == crypto_shorthash_siphash24_BYTES,
               "keys and hashes are those of SipHash");

/* Stores the hash of 'size' bytes of a message. */
static void
hash_of(const uint8_t *p, size_t size, const struct grant_ends *ends,
        uint8_t hash[GRANT_HASH])
{
    uint8_t all[1 + 32 + GRANT_MAX_MESSAGE];

    all[0] = ends->family;
    memcpy(all + 1, ends->sender, 16);
    memcpy(all + 17, ends->receiver, 16);
    memcpy(all + 33, p, size);
    crypto_shorthash_siphash24(hash, all, 33 + size, ends->key);
}

/* Returns the size of a message without its hash. */
static size_t
size_of(const uint8_t *p)
{
    return GRANT_HEADER + p[7] * GRANT_SIZE;
}

size_t
grant_message_write(const struct grant_message *m,
                    const struct grant_ends *ends, uint8_t *message)
{
    uint8_t *p = message;

    memcpy(p, magic, sizeof magic);
    p[4] = GRANT_VERSION;
    p[5] = m->type;
    p[6] = m->flags;
    p[7] = m->n;
    put_be64(p + 8, m->to);
    put_be64(p + 16, m->from);
    put_be64(p + 24, m->number);
    p += GRANT_HEADER;
    for (int i = 0; i < m->n; i++, p += GRANT_SIZE) {
        const struct grant *g = &m->grants[i];

        memcpy(p, &g->sender_port, 2);
        memcpy(p + 2, &g->receiver_port, 2);
        put_be32(p + 4, g->ms);
        put_be64(p + 8, g->bps);
    }
    hash_of(message, p - message, ends, p);
    return p + GRANT_HASH - message;
}

bool
grant_message_read(const uint8_t *p, size_t size, struct grant_message *m)
{
    if (size < GRANT_HEADER || memcmp(p, magic, sizeof magic)
        || p[4] != GRANT_VERSION || p[7] > GRANT_MAX
        || size < size_of(p) + GRANT_HASH) {
        return false;
    }
    m->type = p[5];
    m->flags = p[6];
    m->n = p[7];
    m->to = get_be64(p + 8);
    m->from = get_be64(p + 16);
    m->number = get_be64(p + 24);
    p += GRANT_HEADER;
    for (int i = 0; i < m->n; i++, p += GRANT_SIZE) {
        struct grant *g = &m->grants[i];

        memcpy(&g->sender_port, p, 2);
        memcpy(&g->receiver_port, p + 2, 2);
        g->ms = get_be32(p + 4);
        g->bps = get_be64(p + 8);
    }
    return true;
}

bool
grant_message_is_right(const uint8_t *p, const struct grant_ends *ends)
{
    uint8_t hash[GRANT_HASH];

    hash_of(p, size_of(p), ends, hash);
    return !sodium_memcmp(hash, p + size_of(p), GRANT_HASH);
}
