/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TELEMETRY_ACCESS_H
#define TELEMETRY_ACCESS_H 1

/* Decides which telemetry connections and messages are allowed.
 *
 * Without TLS, every client that reaches the port could speak for every host,
 * so TCP is only allowed on the loopback interface.  With TLS, the common name
 * of the client's certificate is the only host it may speak for.  No state;
 * the caller frees messages. */

/* Returns NULL if 'passive', such as "pssl:6643", is allowed as the address of
 * the telemetry server, otherwise a message. */
char *telemetry_check_remote(const char *passive);

/* Checks a message from 'host'.  'certificate' is the common name of the
 * client, NULL without TLS.  'known' is the host of the connection's earlier
 * messages, NULL before the first.  Returns NULL if the message is allowed,
 * otherwise an error message. */
char *telemetry_check_host(const char *certificate, const char *known,
                           const char *host);

#endif /* controller/hosts/telemetry-access.h */
