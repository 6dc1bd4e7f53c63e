/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CAPTURE_PCAPNG_H
#define CAPTURE_PCAPNG_H 1

/* Writes pcapng: frames with their direction and a time in nanoseconds.
 *
 * libpcap reads the format but does not write it, and a pcap file would lose
 * the direction and the number of missed frames.  Only the four kinds of block
 * that a capture needs are supported.
 *
 * The file's name stays the caller's until pcapng_finish().  One thread. */

#include <stdbool.h>
#include <stdint.h>

struct capture_frame;
struct pcapng;

/* Each returns NULL or a message that begins with 'file'.  pcapng_finish()
 * reports errors of pcapng_write(), and stores the number of frames that the
 * capture has missed. */
char *pcapng_create(const char *file, const char *interface, struct pcapng **);
void pcapng_write(struct pcapng *, const struct capture_frame *, bool to_host);
char *pcapng_finish(struct pcapng *, uint64_t dropped);

#endif /* shim/capture/pcapng.h */
