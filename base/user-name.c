/* SPDX-License-Identifier: Apache-2.0 */

#include "base/user-name.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

char *
user_name_of(uid_t uid)
{
    struct passwd pw, *found;
    char buffer[1024];

    if (getpwuid_r(uid, &pw, buffer, sizeof buffer, &found) || !found) {
        snprintf(buffer, sizeof buffer, "uid-%lu", (unsigned long) uid);
        return duplicate(buffer);
    }
    return duplicate(pw.pw_name);
}

uid_t
user_id(void)
{
    const char *sudo = getuid() ? NULL : getenv("SUDO_UID");

    return sudo ? strtoul(sudo, NULL, 10) : getuid();
}

char *
user_name(void)
{
    const char *sudo = getuid() ? NULL : getenv("SUDO_USER");

    return sudo && *sudo ? duplicate(sudo) : user_name_of(getuid());
}
