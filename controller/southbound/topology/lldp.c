/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/lldp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "byte-order.h"
#include "unaligned.h"
#include "util.h"

/* Types and sizes of IEEE 802.1AB. */
#define ETH_SIZE 14
#define TLV_END 0
#define TLV_CHASSIS 1
#define TLV_PORT 2
#define TLV_TTL 3
#define TLV_OWN 127
#define SUBTYPE_LOCAL 7         /* Id of a chassis or port: a local name. */
#define TTL_SECONDS 20
#define MAC_SIZE 32

/* Start of our TLV: a locally administered organization id and a subtype. */
static const uint8_t own_head[] = { 0x02, 's', 't', 1 };

/* Size of our TLV: start, datapath, port, session, number, code. */
#define OWN_SIZE (sizeof own_head + 8 + 4 + 8 + 8 + MAC_SIZE)

char *
lldp_key_read(const char *file, struct lldp_key *key)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st)) {
        char *error = xasprintf("%s: %s, a file is allowed", file,
                                ovs_strerror(errno));

        if (fd >= 0) {
            close(fd);
        }
        return error;
    }
    n = read(fd, key->bytes, sizeof key->bytes);
    close(fd);
    key->n = n;
    if (n < LLDP_MIN_KEY || n > LLDP_MAX_KEY) {
        return xasprintf("%s: not a key, a file of %d to %d bytes is "
                         "allowed", file, LLDP_MIN_KEY, LLDP_MAX_KEY);
    } else if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        return xasprintf("%s: mode %04o, a key that its owner alone can read "
                         "(0400, 0600) is allowed", file,
                         (unsigned int) st.st_mode & 07777);
    }
    return NULL;
}

static uint8_t *
put_bytes(uint8_t *p, const void *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

static uint8_t *
put_u64(uint8_t *p, uint64_t value)
{
    ovs_be64 be = htonll(value);

    return put_bytes(p, &be, sizeof be);
}

static uint8_t *
put_tlv(uint8_t *p, unsigned int type, size_t size)
{
    ovs_be16 head = htons(type << 9 | size);

    return put_bytes(p, &head, sizeof head);
}

static uint8_t *
put_name(uint8_t *p, unsigned int type, const char *name)
{
    size_t n = strlen(name);

    p = put_tlv(p, type, 1 + n);
    *p++ = SUBTYPE_LOCAL;
    return put_bytes(p, name, n);
}

static void
make_code(const struct lldp_key *key, const uint8_t *data, size_t n,
          uint8_t code[MAC_SIZE])
{
    unsigned int size = MAC_SIZE;

    ovs_assert(HMAC(EVP_sha256(), key->bytes, key->n, data, n, code, &size));
}

/* Appends our TLV. */
static uint8_t *
put_own(uint8_t *p, const struct lldp_probe *probe,
        const struct lldp_key *key)
{
    ovs_be32 port = htonl(probe->port);
    uint8_t *start;

    p = put_tlv(p, TLV_OWN, OWN_SIZE);
    start = p;
    p = put_bytes(p, own_head, sizeof own_head);
    p = put_u64(p, probe->datapath);
    p = put_bytes(p, &port, sizeof port);
    p = put_u64(p, probe->session);
    p = put_u64(p, probe->number);
    make_code(key, start, p - start, p);
    return p + MAC_SIZE;
}

size_t
lldp_encode(const struct lldp_probe *probe, const struct lldp_key *key,
            uint8_t frame[LLDP_MAX_SIZE])
{
    static const uint8_t dst[] = LLDP_ETH_DST;
    ovs_be16 type = htons(LLDP_ETH_TYPE);
    ovs_be16 ttl = htons(TTL_SECONDS);
    uint8_t *p = frame;
    char name[24];

    p = put_bytes(p, dst, sizeof dst);
    *p++ = 0x02;                /* Locally administered address. */
    p = put_u64(p, probe->datapath << 24) - 3;
    p = put_bytes(p, &type, sizeof type);

    snprintf(name, sizeof name, "%016"PRIx64, probe->datapath);
    p = put_name(p, TLV_CHASSIS, name);
    snprintf(name, sizeof name, "%"PRIu32, probe->port);
    p = put_name(p, TLV_PORT, name);
    p = put_tlv(p, TLV_TTL, sizeof ttl);
    p = put_bytes(p, &ttl, sizeof ttl);
    p = put_own(p, probe, key);
    p = put_tlv(p, TLV_END, 0);
    return p - frame;
}

/* Decodes our TLV: 'size' bytes at 'p'. */
static enum lldp_kind
read_own(const uint8_t *p, size_t size, const struct lldp_key *key,
         struct lldp_probe *probe)
{
    uint8_t code[MAC_SIZE];

    if (size < sizeof own_head || memcmp(p, own_head, sizeof own_head)) {
        return LLDP_OTHERS;
    } else if (size != OWN_SIZE) {
        return LLDP_FORGED;
    }
    make_code(key, p, OWN_SIZE - MAC_SIZE, code);
    if (CRYPTO_memcmp(code, p + OWN_SIZE - MAC_SIZE, MAC_SIZE)) {
        return LLDP_FORGED;
    }
    p += sizeof own_head;
    probe->datapath = ntohll(get_unaligned_be64((const ovs_be64 *) p));
    probe->port = ntohl(get_unaligned_be32((const ovs_be32 *) (p + 8)));
    probe->session = ntohll(get_unaligned_be64((const ovs_be64 *) (p + 12)));
    probe->number = ntohll(get_unaligned_be64((const ovs_be64 *) (p + 20)));
    return LLDP_OURS;
}

enum lldp_kind
lldp_decode(const void *frame, size_t size, const struct lldp_key *key,
            struct lldp_probe *probe)
{
    const uint8_t *p = frame;
    const uint8_t *end = p + size;

    if (size < ETH_SIZE || p[12] != LLDP_ETH_TYPE >> 8
        || p[13] != (LLDP_ETH_TYPE & 0xff)) {
        return LLDP_OTHERS;
    }
    p += ETH_SIZE;
    while (end - p >= 2) {
        unsigned int type = p[0] >> 1;
        size_t n = (p[0] & 1) << 8 | p[1];

        p += 2;
        if (type == TLV_END || n > (size_t) (end - p)) {
            break;
        } else if (type == TLV_OWN) {
            enum lldp_kind kind = read_own(p, n, key, probe);

            if (kind != LLDP_OTHERS) {
                return kind;
            }
        }
        p += n;
    }
    return LLDP_OTHERS;
}
