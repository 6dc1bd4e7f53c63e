/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CAPTURE_PCAPNG_H
#define CAPTURE_PCAPNG_H 1

/* Writes pcapng: frames with their direction and times in nanoseconds.
 *
 * libpcap reads the format and does not write it; a pcap file would lose the
 * direction and how many frames were missed.  These are the four kinds of
 * block that a capture needs: section, interface, packet, statistics.
 *
 * One thread.  What cannot be written is told at the end. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct pcapng;

struct pcapng_packet {
    uint64_t time;              /* Nanoseconds since the epoch. */
    bool to_host;               /* Inbound; else outbound. */
    const uint8_t *data;
    uint32_t captured, length;
};

/* Each returns NULL or a message that begins with 'file'.  'interface' says
 * what the frames are of. */
char *pcapng_create(const char *file, const char *interface,
                    struct pcapng **);
void pcapng_write(struct pcapng *, const struct pcapng_packet *);
char *pcapng_finish(struct pcapng *, uint64_t dropped);

#endif /* shim/capture/pcapng.h */
