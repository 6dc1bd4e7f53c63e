/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>

#include <cap-ng.h>

const struct privilege privileges[N_PRIVILEGES] = {
    { CAP_NET_ADMIN, "CAP_NET_ADMIN",
      "keeping interfaces' queues, and joining the shim's in the kernel when "
      "it is gone" },
    { CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
      "reading the sockets of other network namespaces" },
    { CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
      "reading the environment and the open sockets of others' processes" },
    { CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
      "finding a cgroup by its id, and reading the logs of others' jobs" },
    { CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE",
      "removing the cgroups of others' jobs that have ended" },
};

bool
privilege_is_held(const struct privilege *privilege)
{
    return capng_have_capability(CAPNG_EFFECTIVE, privilege->capability);
}

/* Drops all capabilities that the agent does not need.  Returns 0 or a
 * positive errno value. */
int
privileges_drop(void)
{
    bool held[N_PRIVILEGES];
    bool bounding;

    if (capng_get_caps_process()) {
        return EPERM;
    }
    bounding = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
    for (size_t i = 0; i < N_PRIVILEGES; i++) {
        held[i] = capng_have_capability(CAPNG_PERMITTED,
                                        privileges[i].capability);
    }
    capng_clear(bounding ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS);
    for (size_t i = 0; i < N_PRIVILEGES; i++) {
        if (held[i]) {
            capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED
                         | CAPNG_BOUNDING_SET, privileges[i].capability);
        }
    }
    if (capng_apply(bounding ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS)) {
        return EPERM;
    }
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0;
}
