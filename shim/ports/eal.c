/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/eal.h"

#include <ftw.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "base/memory.h"
#include "shim/ports/port-spec.h"

#define MIB (1024 * 1024)
#define MIN_MEMORY (96 * MIB)   /* DPDK's allocation without huge pages. */
#define SPARE (8 * MIB)         /* Huge pages besides packet buffers. */
#define PAGE 4096               /* Bytes of a page that is not huge. */
#define MBUF_OVERHEAD 512       /* Bytes of a buffer besides the packet. */

static uint64_t
free_huge_bytes(void)
{
    FILE *stream = fopen("/proc/meminfo", "re");
    uint64_t pages = 0, kib = 0;
    char line[128];

    while (stream && fgets(line, sizeof line, stream)) {
        sscanf(line, "HugePages_Free: %"SCNu64, &pages);
        sscanf(line, "Hugepagesize: %"SCNu64, &kib);
    }
    if (stream) {
        fclose(stream);
    }
    return pages * kib * 1024;
}

bool
eal_wants_huge(enum huge_pages huge, uint64_t bytes)
{
    return (huge == HUGE_YES
            || (huge == HUGE_AUTO && free_huge_bytes() >= bytes + SPARE));
}

/* Writes the CPUs that this process may use to 's' as "0,1,...". */
static void
allowed_cpus(char *s, size_t size)
{
    cpu_set_t set;
    size_t n = 0;

    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    s[0] = '\0';
    for (int cpu = 0; cpu < CPU_SETSIZE && n + 8 < size; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            n += snprintf(s + n, size - n, "%s%d", n ? "," : "", cpu);
        }
    }
}

/* Writes the PCI devices of the ports to 'argv', at most 4 words.  Returns the
 * number of words. */
static int
put_cards(const struct eal_config *config, const char *argv[])
{
    const struct port_spec *specs[] = { config->host, config->uplink };
    int argc = 0;

    for (int i = 0; i < 2; i++) {
        if (specs[i] && specs[i]->driver->argument == PORT_ARG_PCI) {
            argv[argc++] = "--allow";
            argv[argc++] = specs[i]->what;
        }
    }
    if (!argc) {
        argv[argc++] = "--no-pci";
    }
    return argc;
}

uint64_t
eal_pool_bytes(uint64_t n, uint32_t bytes, bool huge)
{
    uint64_t buffer = bytes + MBUF_OVERHEAD;

    return n * (huge ? buffer : (buffer + PAGE - 1) / PAGE * PAGE);
}

char *
eal_init(const struct eal_config *config, bool huge, uint64_t bytes)
{
    char all[512], lcores[600], memory[16], prefix[64];
    const char *argv[20];
    int argc = 0;

    allowed_cpus(all, sizeof all);
    snprintf(lcores, sizeof lcores, "0@(%s)",
             config->cpus ? config->cpus : all);
    bytes += 32 * MIB;
    if (!config->offline && bytes < MIN_MEMORY) {
        bytes = MIN_MEMORY;
    }
    snprintf(memory, sizeof memory, "%"PRIu64, bytes / MIB);
    snprintf(prefix, sizeof prefix, config->own_directory ? "%s.%d" : "%s",
             config->name, (int) getpid());

    argv[argc++] = "stagecoach-shim";
    argv[argc++] = "--lcores";
    argv[argc++] = lcores;
    argc += put_cards(config, argv + argc);
    argv[argc++] = "--file-prefix";
    argv[argc++] = prefix;
    if (config->offline) {
        /* Hides DPDK's message about a directory that it cannot make: it runs
         * without. */
        argv[argc++] = "--log-level=*:critical";
        argv[argc++] = "--no-telemetry";
    } else {
        argv[argc++] = "--log-level=*:error";
    }
    if (huge) {
        argv[argc++] = "--in-memory";
    } else {
        argv[argc++] = "--no-huge";
        argv[argc++] = "--no-shconf";
        argv[argc++] = "-m";
        argv[argc++] = memory;
    }
    return (rte_eal_init(argc, (char **) argv) >= 0 ? NULL
            : message("DPDK does not start (%s)", rte_strerror(rte_errno)));
}

char *
eal_init_offline(uint64_t bytes)
{
    const struct eal_config config = {
        .name = "sct-replay",
        .own_directory = true,
        .offline = true,
    };

    return eal_init(&config, false, bytes);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void) st;
    (void) type;
    (void) ftw;
    return remove(path);
}

void
eal_uninit(void)
{
    char *path = duplicate(rte_eal_get_runtime_dir());

    rte_eal_cleanup();
    nftw(path, remove_one, 4, FTW_DEPTH | FTW_PHYS);
    free(path);
}
