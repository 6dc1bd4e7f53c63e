/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_EAL_H
#define SHIM_EAL_H 1

/* Starts and ends DPDK for this process.
 *
 * One shim is one DPDK process with one lcore that floats over the CPUs, no
 * PCI devices but those that it has as ports, and memory that nobody shares:
 * from huge pages if enough are free, else ordinary memory (a few per cent
 * slower).  DPDK keeps a directory for its telemetry socket while it runs;
 * eal_uninit() removes it. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/options.h"

/* Does 'o' ask for huge pages, or leave it to us and are 'bytes' of them
 * free? */
bool eal_wants_huge(const struct options *, uint64_t bytes);

/* Returns NULL or a malloc()'d message. */
char *eal_init(const struct options *, bool huge, uint64_t bytes);

/* Starts DPDK for work on files: needs no root, no huge pages and no directory
 * that can be written to, and shares nothing with other processes. */
char *eal_init_offline(uint64_t bytes);
void eal_uninit(void);

#endif /* shim/ports/eal.h */
