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
 * Never waits.  No state. */

/* 'state' is such as "READY=1" or "MAINPID=4711".  Returns 0 if it was sent or
 * nobody wants it, else an errno value. */
int service_notify(const char *state);

#endif /* packaging/service-notify.h */
