/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-shim: one host's data plane. */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/run-directory.h"
#include "shim/clock/clock.h"
#include "shim/control/show.h"
#include "shim/options.h"
#include "shim/ports/af-packet.h"
#include "shim/ports/eal.h"
#include "shim/ports/port-spec.h"
#include "shim/replay/command.h"
#include "shim/shim.h"

#define EXIT_BAD_USAGE 2
#define EXIT_NO_SHIM 3

/* Returns a message if the port's interface is missing or its MTU is larger
 * than the shim's, and what tags need. */
static char *
check_iface(const char *option, const struct port_spec *spec, uint32_t mtu)
{
    const char *iface = spec->iface;
    int has, most = mtu + (spec->slot_tags ? PORT_TAGS_BYTES : 0);

    if (!(spec->driver->flags & PORT_KERNEL)) {
        return NULL;
    }
    has = iface_mtu(iface);
    if (has < 0) {
        return message("%s: there is no interface \"%s\" here", option, iface);
    }
    if (has <= most) {
        return NULL;
    }
    return message("%s: %s has MTU %d; expected at most --mtu %" PRIu32 "%s",
                   option, iface, has, mtu, spec->slot_tags ? " + 8" : "");
}

/* Checks that no other user can replace the control socket. */
static char *
check_control(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? must(strndup(path, slash > path ? slash - path : 1))
                : duplicate(".");
    char *error = run_directory_check(dir);

    free(dir);
    return error;
}

/* Blocks SIGTERM and SIGINT in this and all later threads.  Returns a file
 * descriptor from which they can be read. */
static int
open_signal_fd(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
serve(struct shim *s, char *argv[], int argc)
{
    bool huge = eal_wants_huge(s->options.huge,
                               shim_pool_bytes(&s->options, true));
    const struct options *o = &s->options;
    struct eal_config eal = { .host = &o->host,
                              .uplink = &o->uplink,
                              .name = o->name,
                              .cpus = o->cpus,
                              .own_directory = o->take_over };
    char *error;

    s->signal_fd = open_signal_fd();
    if (getrandom(&s->boot_id, sizeof s->boot_id, 0) < 0) {
        s->boot_id = clock_now();
    }
    error = eal_init(&eal, huge, shim_pool_bytes(&s->options, huge));
    if (!error) {
        error = shim_create(s);
        error = error ? error : shim_run(s);
        shim_destroy(s);
        eal_uninit();
    }
    if (error && huge && s->options.huge == HUGE_AUTO) {
        /* Another process has taken the pages.  DPDK can be started only once
         * in a process, so execute the program again. */
        char **again = allocate(argc + 2, sizeof *again);

        shim_log(s, "%s; restarting without huge pages", error);
        memcpy(again, argv, argc * sizeof *again);
        again[argc] = (char *) "--no-huge";
        execv("/proc/self/exe", again);
        free(again);
    }
    if (error) {
        shim_log(s, "%s", error);
        free(error);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* Prints 'error'.  Returns 'status', or success if there is no error. */
static int
report_error(char *error, int status)
{
    if (!error) {
        return EXIT_SUCCESS;
    }
    fprintf(stderr, "%s\n", error);
    free(error);
    return status;
}

int
main(int argc, char *argv[])
{
    static struct shim shim;
    struct options *o = &shim.options;
    char *error = options_parse(argc, argv, o);

    if (!error && o->help) {
        options_usage(stdout);
        return EXIT_SUCCESS;
    }
    if (!error && o->version) {
        puts("stagecoach-shim " STAGECOACH_VERSION);
        return EXIT_SUCCESS;
    }
    if (!error && o->show) {
        return report_error(shim_show(o->show, stdout), EXIT_NO_SHIM);
    }
    if (!error && o->replay) {
        const struct replay_files files = {
            .in = o->replay, .rules = o->rules, .out = o->out,
            .to_host = o->to_host
        };
        uint64_t n;

        error = replay_command(&files, &n);
        return !error && interrupt_caught()
                   ? interrupt_say(interrupt_caught(), n, 0, "frame")
                   : report_error(error, EXIT_FAILURE);
    }
    error = error ? error : check_control(o->control);
    error = error ? error : check_iface("--host-port", &o->host, o->mtu);
    error = error ? error : check_iface("--uplink", &o->uplink, o->mtu);
    return (error ? report_error(error, EXIT_BAD_USAGE)
            : serve(&shim, argv, argc));
}
