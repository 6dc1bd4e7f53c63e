/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/prefix.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

bool
prefix_parse(const char *text, struct address_prefix *p)
{
    char address[INET6_ADDRSTRLEN + 1];
    size_t n = strcspn(text, "/");
    unsigned int max, bits;
    char end;

    if (n >= sizeof address) {
        return false;
    }
    memcpy(address, text, n);
    address[n] = '\0';
    memset(p, 0, sizeof *p);
    if (inet_pton(AF_INET, address, p->address) == 1) {
        p->family = 4;
    } else if (inet_pton(AF_INET6, address, p->address) == 1) {
        p->family = 6;
    } else {
        return false;
    }
    bits = max = p->family == 4 ? 32 : 128;
    if (text[n] && (strspn(text + n + 1, "0123456789") > 3
                    || sscanf(text + n, "/%3u%c", &bits, &end) != 1)) {
        return false;
    }
    p->bits = bits;
    return bits <= max;
}

bool
prefix_fits(const struct address_prefix *p, uint8_t family,
            const uint8_t *address)
{
    uint8_t whole = p->bits / 8, rest = p->bits % 8;

    if (!p->family) {
        return true;
    }
    return (p->family == family && !memcmp(p->address, address, whole)
            && (!rest || !((p->address[whole] ^ address[whole])
                           >> (8 - rest))));
}

bool
prefix_list_has(const struct prefix_list *list, uint8_t family,
                const uint8_t *address)
{
    for (int i = 0; i < list->n; i++) {
        if (prefix_fits(&list->prefixes[i], family, address)) {
            return true;
        }
    }
    return false;
}
