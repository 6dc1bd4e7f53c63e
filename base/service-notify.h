/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H 1

/* What a service manager is told: that the program is ready, or that another
 * process is the service from now on.
 *
 * systemd starts what comes after a unit of Type=notify once its program has
 * sent "READY=1" to the datagram socket of $NOTIFY_SOCKET; the protocol is
 * documented as stable (sd_notify(3)) so that programs need not link a library
 * for one datagram, with all that that library brings into a program that
 * runs as root on each host.  Without the variable nothing happens.
 *
 * Never waits. */

/* 'state' is such as "READY=1" or "MAINPID=4711".  Returns 0 if it was sent or
 * nobody wants it, else an errno value. */
int service_notify(const char *state);

/* Says, at most once a second, that the loop of the program still turns:
 * what has WatchdogSec= in its unit and hangs is killed and started again.
 * 'now' is in milliseconds of a clock that does not go back.  Returns when
 * to call this again, LLONG_MAX if nobody wants to know.  For one loop. */
long long service_alive(long long now);

#endif /* base/service-notify.h */
