/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/tail/enter.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/tail/tail-protocol.h"

static int
limit(int resource, rlim_t soft, rlim_t hard)
{
    return setrlimit(resource, &(struct rlimit) { soft, hard });
}

static int
limit_all(void)
{
#ifndef __SANITIZE_ADDRESS__
    /* The sanitizer reserves terabytes. */
    if (limit(RLIMIT_AS, TAIL_ADDRESS_SPACE, TAIL_ADDRESS_SPACE)) {
        return -1;
    }
#endif
    return limit(RLIMIT_CPU, TAIL_CPU_S, TAIL_CPU_S + 1)
           || limit(RLIMIT_NOFILE, TAIL_OPEN_FILES, TAIL_OPEN_FILES)
           || limit(RLIMIT_FSIZE, 0, 0)
           || limit(RLIMIT_CORE, 0, 0)
           || limit(RLIMIT_NPROC, 0, 0)
           || limit(RLIMIT_MEMLOCK, 0, 0) ? -1 : 0;
}

/* Gives up all capabilities, which user 0 keeps when it changes its user. */
static int
drop_capabilities(void)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

    memset(none, 0, sizeof none);
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
           || syscall(SYS_capset, &header, none) ? -1 : 0;
}

static int
change_user(const struct tail_start *start)
{
    gid_t groups[TAIL_MAX_GROUPS];
    size_t n = start->n_groups <= TAIL_MAX_GROUPS ? start->n_groups : 0;

    for (size_t i = 0; i < n; i++) {
        groups[i] = start->groups[i];
    }
    return setgroups(n, groups)
           || setresgid(start->gid, start->gid, start->gid)
           || setresuid(start->uid, start->uid, start->uid) ? -1 : 0;
}

/* Returns true if this process has the rights of 'start' and no others. */
static bool
has_changed(const struct tail_start *start)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    uid_t uids[3];
    gid_t gids[3];

    return !getresuid(&uids[0], &uids[1], &uids[2])
           && !getresgid(&gids[0], &gids[1], &gids[2]) && uids[0] == start->uid
           && uids[1] == start->uid && uids[2] == start->uid
           && gids[0] == start->gid && gids[1] == start->gid
           && gids[2] == start->gid && !syscall(SYS_capget, &header, caps)
           && !caps[0].permitted && !caps[1].permitted
           && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
           && (!start->uid || setuid(0));
}

/* Returns a text that 'what' has failed by errno. */
static const char *
fail(const char *what)
{
    static char text[128];

    snprintf(text, sizeof text, "cannot %s (%s)", what, strerror(errno));
    return text;
}

const char *
tail_enter(const struct tail_start *start)
{
    setpriority(PRIO_PROCESS, 0, 10);
    if (limit_all()) {
        return fail("set its limits");
    }
    if (setns(TAIL_PROCESS, CLONE_NEWNS)) {
        return fail("enter the mount namespace of the job");
    }
    close(TAIL_PROCESS);
    if (change_user(start)) {
        return fail("become the user of the job");
    }
    if (drop_capabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) {
        return fail("give up its capabilities");
    }
    errno = EPERM;
    return has_changed(start) ? NULL : fail("give up its rights");
}
