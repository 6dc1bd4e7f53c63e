/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CAPTURE_FILE_H
#define CAPTURE_FILE_H 1

/* Captures as files: read (pcap or pcapng) and written (pcap).
 *
 *
 * Motivation
 * ==========
 *
 * A replay and a profile begin with a file that somebody else wrote, perhaps
 * to do harm.  libpcap knows the formats; here its answers become frames with
 * a time in nanoseconds, and whatever is wrong with a file one message that
 * says where.  Only Ethernet is read: the shim knows nothing else.
 *
 *
 * Usage
 * =====
 *
 *    error = capture_open("in.pcap", &c);
 *    while (!error && !(error = capture_next(c, &frame)) && frame.data) {
 *        ...
 *    }
 *    capture_close(c);
 *
 *    error = capture_create("out.pcap", &w);
 *    capture_write(w, &frame);
 *    error = capture_finish(w);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A frame's data belong to the reader until the next call.  Nothing is
 * shared; one thread for each reader and writer. */

#include <stdint.h>
#include <stdio.h>

#define CAPTURE_MAX_FRAME 65535u        /* Bytes that are kept of a frame. */

struct capture_frame {
    uint64_t number;            /* In its file, from 1. */
    uint64_t time;              /* Nanoseconds since the epoch. */
    const uint8_t *data;        /* NULL: there are no more. */
    uint32_t captured;          /* Bytes of 'data'... */
    uint32_t length;            /* ...and of the frame as it was. */
};

struct capture_reader;
struct capture_writer;

/* Each returns NULL, or a malloc()'d message that begins with the name. */
char *capture_open(const char *file, struct capture_reader **);
char *capture_open_stream(const char *name, FILE *, struct capture_reader **);
char *capture_next(struct capture_reader *, struct capture_frame *);
void capture_close(struct capture_reader *);

/* What cannot be written is told at the end. */
char *capture_create(const char *file, struct capture_writer **);
void capture_write(struct capture_writer *, const struct capture_frame *);
char *capture_finish(struct capture_writer *);

#endif /* shim/capture/file.h */
