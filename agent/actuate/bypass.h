/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BYPASS_H
#define BYPASS_H 1

/* Kernel bypass of a shim that does not forward.
 *
 * A host must keep its network when its shim crashes or hangs.  The agent then
 * has the kernel join the shim's two interfaces (shim/ports/kernel-path.h),
 * and removes that when the shim forwards again.  Traffic in the bypass has no
 * priorities and keeps the DSCP that the host wrote.
 *
 * A shim that has exited is easy to detect, one that hangs is not.  If the
 * agent enables the bypass while the shim forwards, every frame is duplicated;
 * if it does not while the shim hangs, the host has no network.  The decision
 * uses three sources.  Only the last one is the shim's own code:
 *
 *   - the kernel reports whether the process exists;
 *   - the kernel reports whether the process's main thread, which forwards,
 * has run.  This is read only while the shim does not reply, which can also
 *     happen on a busy machine;
 *   - the shim's replies contain the age of its last poll.
 *
 * The bypass belongs to the kernel, so it survives the agent too; an agent
 * that starts finds out by enabling or disabling it.  A shim that starts
 * removes it itself when it begins to forward, so frames are duplicated only
 * for a moment.
 *
 *    error = bypass_ports_parse("scl-node-h0:host,uplink", &ports);
 *    bypass = bypass_create(&ports, now);          // Or NULL.
 *
 *    bypass_connected(bypass, fd, now);            // To a shim.
 *    bypass_requested(bypass, now);                // Sent SHIM_PORTS.
 *    bypass_received(bypass, &reply);
 *    bypass_disconnected(bypass, now);             // And not reconnected.
 *    bypass_run(bypass, now);
 *    bypass_wait(bypass, now);
 *
 * The replies of a shim name its two interfaces, and its process has their
 * network namespace.  The argument of bypass_create() is for the time before
 * the first connection, or for an agent that cannot see the shim's process.
 *
 * Arguments are copied.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct bypass;
struct shim_ports;

struct bypass_ports {
    char netns[64];             /* Name in /run/netns, "" for the agent's. */
    char iface[16], other[16];  /* The two interfaces to join. */
};

/* Parses "[NETNS:]IFACE,IFACE".  Returns NULL or a malloc()'d message. */
char *bypass_ports_parse(const char *, struct bypass_ports *);

struct bypass *bypass_create(const struct bypass_ports *, long long now);
void bypass_destroy(struct bypass *);

void bypass_connected(struct bypass *, int fd, long long now);
void bypass_requested(struct bypass *, long long now);
void bypass_received(struct bypass *, const struct shim_ports *);
void bypass_disconnected(struct bypass *, long long now);

void bypass_run(struct bypass *, long long now);
void bypass_wait(const struct bypass *, long long now);

bool bypass_is_active(const struct bypass *);

/* How a bypass decides, for its test too.  Plain data of the caller; times are
 * in milliseconds. */

#define WATCHDOG_HUNG_MS                             \
    500 /* Age of a poll above which the shim hangs; \
         * an idle loop sleeps 20 ms at most. */
#define WATCHDOG_CHECK_MS                            \
    100 /* Between checks of a process that does not \
         * reply. */

enum watchdog_verdict { WATCHDOG_UNSURE, WATCHDOG_FORWARDS, WATCHDOG_FAILS };

struct watchdog {
    long long since; /* Time of the last connect or disconnect. */
    bool known;      /* A shim has connected since the start. */
    bool exists;     /* Its process has not exited. */
    bool connected;
    long long requested; /* Time of the oldest pending request, or 0. */
    bool polls;          /* Last reply: the loop polls. */
    bool stuck;          /* Last reply: the last poll is too old. */

    /* The kernel's data about a process that does not reply. */
    long long checked; /* Time of the last check, 0 if none yet. */
    long long ran;     /* Time when the thread was last seen to have
                        * run. */
    uint64_t steps;    /* 'steps' of the last watchdog_progress(). */
};

void watchdog_init(struct watchdog *, long long now);

void watchdog_connected(struct watchdog *, long long now);
void watchdog_requested(struct watchdog *, long long now);
void watchdog_received(struct watchdog *, uint64_t polls,
                       uint64_t poll_age_ns);
void watchdog_disconnected(struct watchdog *, long long now);

/* Returns true if it is time to check whether the shim's thread has run; then
 * watchdog_progress() reports 'steps', any number that changes when the thread
 * runs. */
bool watchdog_wants_progress(const struct watchdog *, long long now);
void watchdog_progress(struct watchdog *, long long now, uint64_t steps);

enum watchdog_verdict watchdog_judge(const struct watchdog *, long long now);

/* Returns the time at which the verdict may change without an event, LLONG_MAX
 * if never. */
long long watchdog_next(const struct watchdog *, long long now);

#endif /* agent/actuate/bypass.h */
