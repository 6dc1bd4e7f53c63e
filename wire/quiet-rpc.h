/* SPDX-License-Identifier: Apache-2.0 */

#ifndef QUIET_RPC_H
#define QUIET_RPC_H 1

/* Keeps messages of JSON-RPC that have keys out of the log.
 *
 * libopenvswitch logs each message as it is sent and received if the level of
 * its module is "dbg".
 *
 *    struct quiet_rpc quiet = quiet_rpc_begin();
 *    ...send or receive...
 *    quiet_rpc_end(&quiet);
 *
 * Main thread only. */

#include "openvswitch/vlog.h"
#include "util.h"

struct quiet_rpc {
    enum vlog_level levels[VLF_N_DESTINATIONS]; /* To restore. */
};

static inline struct quiet_rpc
quiet_rpc_begin(void)
{
    struct vlog_module *module = vlog_module_from_name("jsonrpc");
    struct quiet_rpc quiet;

    for (int i = 0; i < VLF_N_DESTINATIONS; i++) {
        quiet.levels[i] = vlog_get_level(module, i);
        if (quiet.levels[i] > VLL_INFO) {
            vlog_set_levels(module, i, VLL_INFO);
        }
    }
    return quiet;
}

static inline void
quiet_rpc_end(const struct quiet_rpc *quiet)
{
    struct vlog_module *module = vlog_module_from_name("jsonrpc");

    for (int i = 0; i < VLF_N_DESTINATIONS; i++) {
        if (quiet->levels[i] > VLL_INFO) {
            vlog_set_levels(module, i, quiet->levels[i]);
        }
    }
}

#endif /* wire/quiet-rpc.h */
