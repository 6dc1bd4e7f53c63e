/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_EAL_H
#define SHIM_EAL_H 1

/* Starts and ends DPDK for this process.
 *
 * One shim is one DPDK process.  It has one lcore, which floats over the
 * allowed CPUs; no PCI devices except those of its ports; and private memory:
 * huge pages if enough are free, otherwise ordinary memory, which is slower.
 * DPDK keeps a directory for its telemetry socket while it runs; eal_uninit()
 * removes it. */

#include <stdbool.h>
#include <stdint.h>

struct port_spec;

enum huge_pages {
    HUGE_AUTO,                  /* If enough of them are free. */
    HUGE_YES,
    HUGE_NO,
};

struct eal_config {
    const struct port_spec *host, *uplink;      /* NULL: none. */
    const char *name;           /* Name of DPDK's runtime directory. */
    const char *cpus;           /* "0-1"; NULL: all allowed CPUs. */
    bool own_directory;         /* Adds the process id to 'name': during a
                                 * takeover the old shim removes "name". */
    bool offline;               /* See eal_init_offline(). */
};

/* Returns the memory of 'n' packet buffers of 'bytes'.  Without huge pages,
 * DPDK places none across two pages if it fits into one. */
uint64_t eal_pool_bytes(uint64_t n, uint32_t bytes, bool huge);

/* Returns true if packet buffers of 'bytes' should be in huge pages. */
bool eal_wants_huge(enum huge_pages, uint64_t bytes);

/* Starts DPDK with memory for 'bytes' of packet buffers.  Returns NULL or a
 * malloc()'d message. */
char *eal_init(const struct eal_config *, bool huge, uint64_t bytes);

/* Starts DPDK for work on files: needs no root, no huge pages and no writable
 * directory, and shares nothing with other processes. */
char *eal_init_offline(uint64_t bytes);
void eal_uninit(void);

#endif /* shim/ports/eal.h */
