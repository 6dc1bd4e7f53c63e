/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/telemetry-access.h"

#include <netinet/in.h>
#include <string.h>

#include "socket-util.h"
#include "util.h"

static bool
is_loopback(const struct sockaddr_storage *ss)
{
    if (ss->ss_family == AF_INET) {
        const struct sockaddr_in *sin
            = ALIGNED_CAST(const struct sockaddr_in *, ss);

        return ntohl(sin->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return ss->ss_family == AF_INET6
           && IN6_IS_ADDR_LOOPBACK(
                  &(ALIGNED_CAST(const struct sockaddr_in6 *, ss))->sin6_addr);
}

char *
telemetry_check_remote(const char *passive)
{
    struct sockaddr_storage ss;

    if (strncmp(passive, "ptcp:", 5)
        || (strchr(passive + 5, ':')
            && inet_parse_passive(passive + 5, 0, &ss, true, NULL)
            && is_loopback(&ss))) {
        return NULL;
    }
    return xasprintf("%s: not without TLS, \"pssl:PORT\" and, on the loopback "
                     "only, \"ptcp:PORT:127.0.0.1\" are allowed", passive);
}

char *
telemetry_check_host(const char *certificate, const char *known,
                     const char *host)
{
    if (known && strcmp(known, host)) {
        return xasprintf("'host' was %s and is now %s", known, host);
    } else if (certificate && strcmp(certificate, host)) {
        return xasprintf("the certificate is of \"%s\" and not of \"%s\"",
                         certificate, host);
    }
    return NULL;
}
