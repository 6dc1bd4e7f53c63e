/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/peers.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "shim/ports/route-socket.h"
#include "util.h"
#include "wire/json-get.h"
#include "wire/json-put.h"
#include "wire/shim-protocol.h"

void
peers_uninit(struct peers *p)
{
    json_destroy(p->report);
    if (p->keys) {
        memset(p->keys, 0, PEERS_MAX_KEYS * sizeof *p->keys);
        free(p->keys);
    }
}

/* Returns true if the kernel delivers the local address here, or sends to it
 * elsewhere than to the remote one. */
static bool
is_own(struct route_socket *rs, const struct shim_peer *peer)
{
    int family = peer->family == 4 ? AF_INET : AF_INET6;
    struct route local, remote;

    return (
        !route_socket_get_route(rs, family, peer->local, &local)
        && (local.type == RTN_LOCAL
            || (local.type == RTN_UNICAST
                && !route_socket_get_route(rs, family, peer->remote, &remote)
                && local.ifindex != remote.ifindex)));
}

static void
format(uint8_t family, const uint8_t address[16], char text[INET6_ADDRSTRLEN])
{
    inet_ntop(family == 4 ? AF_INET : AF_INET6, address, text,
              INET6_ADDRSTRLEN);
}

/* Adds what was counted of a remote address. */
static void
add_remote(struct shash *remotes, const struct shim_peer *peer)
{
    char text[INET6_ADDRSTRLEN];
    struct shim_peer *sum;

    format(peer->family, peer->remote, text);
    sum = shash_find_data(remotes, text);
    if (!sum) {
        sum = xzalloc(sizeof *sum);
        shash_add(remotes, text, sum);
    }
    sum->refused += peer->refused;
    sum->disobeyed += peer->disobeyed;
}

static struct json *
make_report(const struct shash *own, const struct shash *remotes)
{
    struct json *json = json_object_create();
    struct json *addresses = json_array_create_empty();
    struct json *peers = json_array_create_empty();
    const struct shash_node *node;

    SHASH_FOR_EACH (node, own) {
        if (node->data) {
            json_array_add(addresses, json_string_create(node->name));
        }
    }
    SHASH_FOR_EACH (node, remotes) {
        const struct shim_peer *sum = node->data;
        struct json *peer = json_object_create();

        json_object_put_string(peer, "address", node->name);
        if (sum->refused) {
            json_put_integer(peer, "refused", sum->refused);
        }
        if (sum->disobeyed) {
            json_put_integer(peer, "disobeyed", sum->disobeyed);
        }
        json_array_add(peers, peer);
    }
    json_object_put(json, "own", addresses);
    json_object_put(json, "remote", peers);
    return json;
}

void
peers_take_list(struct peers *p, const struct shim_peer *list, size_t n)
{
    struct shash own = SHASH_INITIALIZER(&own);
    struct shash remotes = SHASH_INITIALIZER(&remotes);
    struct route_socket *rs;

    if (route_socket_open(-1, &rs)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char text[INET6_ADDRSTRLEN];
        struct shash_node *node;

        format(list[i].family, list[i].local, text);
        node = shash_find(&own, text);
        if (!node) { /* Its data is NULL unless it is own. */
            node = shash_add(&own, text, is_own(rs, &list[i]) ? p : NULL);
        }
        if (node->data) {
            add_remote(&remotes, &list[i]);
        }
    }
    route_socket_close(rs);
    json_destroy(p->report);
    p->report = make_report(&own, &remotes);
    shash_destroy(&own);
    shash_destroy_free_data(&remotes);
}

struct json *
peers_take_report(struct peers *p)
{
    struct json *report = p->report;

    p->report = NULL;
    return report;
}

/* Reads hexadecimal digits. */
static bool
read_digits(const char *text, uint8_t key[SHIM_KEY_BYTES])
{
    bool good = strlen(text) == 2 * SHIM_KEY_BYTES;

    for (size_t i = 0; good && i < SHIM_KEY_BYTES; i++) {
        key[i] = hexits_value(&text[2 * i], 2, &good);
    }
    return good;
}

/* Reads {"address", "key"?}. */
static bool
read_key(const struct json *json, struct shim_key *key)
{
    const struct json *address = json_get(json, "address", JSON_STRING);
    const struct json *digits = json_get(json, "key", JSON_STRING);
    const char *text = address ? json_string(address) : "";

    *key = (struct shim_key){ .removed = !digits };
    key->family = (inet_pton(AF_INET, text, key->remote) == 1    ? 4
                   : inet_pton(AF_INET6, text, key->remote) == 1 ? 6
                                                                 : 0);
    return (key->family
            && (!digits || read_digits(json_string(digits), key->key)));
}

/* Replaces the key of its address, or adds it in the place of the oldest. */
static void
store_key(struct peers *p, const struct shim_key *key)
{
    size_t i = 0;

    while (
        i < p->n_keys
        && (p->keys[i].family != key->family
            || memcmp(p->keys[i].remote, key->remote, sizeof key->remote))) {
        i++;
    }
    if (i == PEERS_MAX_KEYS) {
        i = 0;
    }
    if (i < p->n_keys) {
        p->n_keys--;
        memmove(&p->keys[i], &p->keys[i + 1],
                (p->n_keys - i) * sizeof *p->keys);
    }
    p->keys[p->n_keys++] = *key;
}

bool
peers_take_keys(struct peers *p, const struct json *keys)
{
    if (!keys || keys->type != JSON_ARRAY) {
        return false;
    }
    p->keys = p->keys ? p->keys : xzalloc(PEERS_MAX_KEYS * sizeof *p->keys);
    for (size_t i = 0; i < keys->array.n; i++) {
        struct shim_key key;

        if (!read_key(keys->array.elems[i], &key)) {
            return false;
        }
        store_key(p, &key);
    }
    return true;
}
