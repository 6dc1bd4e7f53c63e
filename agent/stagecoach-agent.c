/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-agent: one per host. */

#include <config.h>

#include <cap-ng.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "agent/actuate/tc.h"
#include "agent/agent.h"
#include "agent/identify/bpf/identity.h"
#include "base/run-directory.h"
#include "base/service-notify.h"
#include "command-line.h"
#include "daemon.h"
#include "fatal-signal.h"
#include "latch.h"
#include "lockfile.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovs-built.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"
#include "wire/daemon-options.h"

VLOG_DEFINE_THIS_MODULE(stagecoach_agent);

static struct latch exiting;
static struct latch reload;

static void
on_signal(int signr)
{
    latch_set(signr == SIGHUP ? &reload : &exiting);
}

static void
on_exit_command(struct unixctl_conn *conn, int argc OVS_UNUSED,
                const char *argv[] OVS_UNUSED, void *aux OVS_UNUSED)
{
    unixctl_command_reply(conn, NULL);
    latch_set(&exiting);
}

/* Two agents would undo each other's changes. */
static struct lockfile *
lock_host(const struct agent_config *c)
{
    char *path = xasprintf("%s/agent", c->rundir);
    struct lockfile *lockfile;
    int error = lockfile_lock(path, &lockfile);

    if (error == EAGAIN || error == EDEADLK) {
        ovs_fatal(
            0, "%s: an agent is running for this directory; expected only one",
            c->rundir);
    } else if (error) {
        ovs_fatal(error, "%s: cannot lock", path);
    }
    free(path);
    return lockfile;
}

/* Capabilities of root that the agent needs. */
static const struct privilege {
    int capability;             /* CAP_*. */
    const char *name;           /* Name as in capabilities(7). */
    const char *purpose;        /* Purpose: what does not work without it. */
} privileges[] = {
    { CAP_NET_ADMIN, "CAP_NET_ADMIN",
      "keeping interfaces' queues, and joining the shim's in the kernel when "
      "it is removed" },
    { CAP_BPF, "CAP_BPF", "the programs that know the job of each packet" },
    { CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "claims of network namespaces" },
    { CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
      "reading the environment of others' processes" },
    { CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE",
      "reading files of others' processes, and removing the cgroups of their "
      "jobs that have ended" },
    { CAP_SETUID, "CAP_SETUID", "reading the logs of jobs as their users" },
    { CAP_SETGID, "CAP_SETGID", "reading the logs of jobs as their groups" },
    { CAP_SYS_CHROOT, "CAP_SYS_CHROOT",
      "reading the logs of jobs in their mount namespaces" },
    { CAP_KILL, "CAP_KILL", "ending the readers of logs" },
};

/* Drops all other capabilities, permanently and also for programs that the
 * agent could start: it reads data of tenants.  Capabilities belong to a
 * thread, so no other may have been started.  Returns 0 or a positive errno
 * value. */
static int
drop_capabilities(void)
{
    bool held[ARRAY_SIZE(privileges)];
    bool bounding;

    if (capng_get_caps_process()) {
        return EPERM;
    }
    bounding = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
    for (size_t i = 0; i < ARRAY_SIZE(privileges); i++) {
        held[i] = capng_have_capability(CAPNG_PERMITTED,
                                        privileges[i].capability);
    }
    capng_clear(bounding ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS);
    for (size_t i = 0; i < ARRAY_SIZE(privileges); i++) {
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

static void
drop_privileges(void)
{
    int error = drop_capabilities();

    if (error) {
        VLOG_WARN("cannot give up privileges (%s), going on with all of them",
                  ovs_strerror(error));
    }
    for (size_t i = 0; i < ARRAY_SIZE(privileges); i++) {
        if (!capng_have_capability(CAPNG_EFFECTIVE,
                                   privileges[i].capability)) {
            VLOG_INFO("no %s: no %s", privileges[i].name,
                      privileges[i].purpose);
        }
    }
}

static struct unixctl_server *
open_unixctl(const struct agent_config *c)
{
    char *path = xasprintf("%s/agent.ctl", c->rundir);
    struct unixctl_server *server;
    int error = unixctl_server_create(path, &server);

    if (error) {
        ovs_fatal(error, "%s: cannot listen", path);
    }
    unixctl_command_register("exit", "", 0, 0, on_exit_command, NULL);
    free(path);
    return server;
}

int
main(int argc, char *argv[])
{
    static struct agent_config config;
    struct unixctl_server *unixctl;
    struct lockfile *lockfile;
    struct agent *agent;
    char *error;

    ovs_cmdl_proctitle_init(argc, argv);
    ovs_set_program_name(argv[0], STAGECOACH_VERSION);
    latch_init(&exiting);
    latch_init(&reload);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    signal(SIGHUP, on_signal);
    fatal_ignore_sigpipe();
    agent_options_parse(argc, argv, &config);
    if (config.unload) {
        tc_destroy(tc_create(config.tc, config.n_tc));
        error = identity_detach(config.pins);
        if (error) {
            ovs_fatal(0, "%s", error);
        }
        return EXIT_SUCCESS;
    }
    if (mkdir(config.rundir, 0755) && errno != EEXIST) {
        ovs_fatal(errno, "%s: cannot make the directory", config.rundir);
    }
    error = run_directory_check(config.rundir);
    if (error) {
        ovs_fatal(0, "%s", error);
    }
    DAEMONIZE_START();
    lockfile = lock_host(&config);
    drop_privileges();
    unixctl = open_unixctl(&config);
    error = agent_create(&config, &agent);
    if (error) {
        ovs_fatal(0, "%s", error);
    }
    agent_control_register(agent);
    daemonize_complete();
    service_notify("READY=1");
    VLOG_INFO("agent of host %s, jobs below cgroup %s",
              config.host, config.cgroup);

    while (!latch_is_set(&exiting)) {
        if (latch_poll(&reload)) {
            free(agent_load_readers(agent));
        }
        tls_run();
        agent_run(agent);
        unixctl_server_run(unixctl);
        agent_wait(agent);
        unixctl_server_wait(unixctl);
        latch_wait(&exiting);
        latch_wait(&reload);
        poll_timer_wait_until(service_alive(time_msec()));
        poll_block();
    }

    unixctl_server_destroy(unixctl);
    agent_destroy(agent);
    lockfile_unlock(lockfile);
    latch_destroy(&exiting);
    latch_destroy(&reload);
    return EXIT_SUCCESS;
}
