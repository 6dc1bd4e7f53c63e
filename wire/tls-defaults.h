/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TLS_DEFAULTS_H
#define TLS_DEFAULTS_H 1

/* TCP ports of a controller's machine that agents connect to with TLS. */

#define RELAY_PORT 6640         /* Relay of the hosts database. */
#define TELEMETRY_PORT 6650     /* Telemetry of the controller. */

/* Directory for the key and certificates of a machine: identity.pem and
 * ca.pem. */
#define TLS_DIRECTORY "/etc/stagecoach/tls"

#endif /* wire/tls-defaults.h */
