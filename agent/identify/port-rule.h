/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PORT_RULE_H
#define PORT_RULE_H 1

/* Ports of jobs, at either end of a connection: the claim of lowest
 * precedence. */

#include <stddef.h>
#include <stdint.h>

struct shim_flow_key;

struct port_rule {
    uint16_t first, last;
    char job[64];               /* "COJOB/JOB". */
};

char *port_rule_parse(const char *text, struct port_rule *);
const struct port_rule *port_rules_match(const struct port_rule *, size_t n,
                                         const struct shim_flow_key *);

#endif /* agent/identify/port-rule.h */
