/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/membership.h"

enum membership
membership_check(const struct membership_owner *owner,
                 const struct membership_claim *claim)
{
    if (!claim->registered && !owner->trusts_environment) {
        return MEMBERSHIP_UNREGISTERED;
    } else if (!owner->has_uid) {
        return MEMBERSHIP_ADMITTED;
    } else if (!claim->has_uid) {
        return (claim->registered ? MEMBERSHIP_ADMITTED
                : MEMBERSHIP_OTHER_USER);
    }
    return (claim->uid == owner->uid || claim->uid == 0
            ? MEMBERSHIP_ADMITTED : MEMBERSHIP_OTHER_USER);
}
