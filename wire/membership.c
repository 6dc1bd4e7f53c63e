/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/membership.h"

#include <string.h>

#include "sha1.h"

enum membership
membership_check(const struct membership_owner *owner,
                 const struct membership_claim *claim)
{
    if (!claim->registered && !owner->trusts_environment) {
        return MEMBERSHIP_UNREGISTERED;
    }
    return (!owner->has_uid
                    || (claim->has_uid
                        && (claim->uid == owner->uid || claim->uid == 0))
                ? MEMBERSHIP_ADMITTED
                : MEMBERSHIP_OTHER_USER);
}

uint64_t
membership_namespace(const char *name)
{
    uint8_t digest[SHA1_DIGEST_SIZE];
    uint64_t number = 0;

    sha1_bytes(name, strlen(name), digest);
    for (int i = 0; i < 8; i++) {
        number = number << 8 | digest[i];
    }
    return number >> 2 | (uint64_t) 1 << 62;
}
