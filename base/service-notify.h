/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H 1

/* Notifications to the service manager: readiness, main process, watchdog.
 *
 * systemd starts the units after a unit of Type=notify when its program has
 * sent "READY=1" to the datagram socket $NOTIFY_SOCKET.  The protocol is
 * documented as stable (sd_notify(3)), so a program that runs as root on each
 * host does not need a library for one datagram.  Without the variable, these
 * functions do nothing.  They never wait. */

/* Sends 'state', such as "READY=1" or "MAINPID=4711".  Returns 0 if it was
 * sent or there is no service manager, else a positive errno value. */
int service_notify(const char *state);

/* Notifies the watchdog (WatchdogSec= of the unit), at most once a second,
 * that the program's main loop runs.  'now' is in milliseconds of a monotonic
 * clock. Returns the time of the next call, LLONG_MAX without a watchdog. */
long long service_alive(long long now);

#endif /* base/service-notify.h */
