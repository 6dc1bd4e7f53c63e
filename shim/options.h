/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_OPTIONS_H
#define SHIM_OPTIONS_H 1

/* The command line of stagecoach-shim. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shim/cc/cc.h"
#include "shim/classify/prefix.h"
#include "shim/loop/loop.h"
#include "shim/ports/eal.h"
#include "shim/ports/port-spec.h"

struct options {
    const char *show;           /* Socket of the shim to show, or NULL. */
    bool help, version;

    /* Instead of forwarding: a capture, or NULL. */
    const char *replay, *rules;
    const char *out, *to_host;  /* What leaves; the second may be NULL. */

    const char *name;           /* Of the host, for messages and DPDK. */
    struct port_spec host, uplink;
    uint64_t rate_bps;
    uint32_t mtu;
    const char *control;        /* Path of the control socket. */
    const char *cpus;           /* "0-1", or NULL for all we may use. */
    enum huge_pages huge;
    bool no_tag;                /* Do not change DSCPs. */
    bool keep_offload;
    int host_tags;    /* 'slot_tags' of 'host', -1: as the kind of
                       * port has it.  An option, not a message: it
                       * holds without an agent. */
    bool take_over;   /* Replace the running shim that listens on
                       * 'control'. */
    uint32_t late_us; /* Longest delay of the loop that pacing
                       * compensates, us. */
    enum loop_poll poll;
    struct prefix_list tunnels; /* Endpoints of tunnels with inner flows that
                                 * count. */
    bool cc;                    /* Congestion control. */
    uint64_t downlink_bps;
    bool strict_switch;         /* The switch's port to the host serves levels
                                 * in order. */
    uint16_t control_ports[CC_MAX_CONTROL_PORTS];
    int n_control_ports;
};

/* Returns NULL, or a malloc()'d message such as
 *
 *    --rate: "x" is not a rate, such as 50Mbit */
char *options_parse(int argc, char *argv[], struct options *);

void options_usage(FILE *);

#endif /* shim/options.h */
