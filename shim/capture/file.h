/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CAPTURE_FILE_H
#define CAPTURE_FILE_H 1

/* Capture files: reads pcap and pcapng, writes pcap.
 *
 * The input of a replay may be malicious.  libpcap parses the formats; this
 * module returns frames with a time in nanoseconds, and one message with the
 * position of an error.  Only Ethernet is supported.  A frame may be longer
 * than 64 KiB, as a sender captures it before its card cuts it.
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
 * A frame's data belong to the reader until the next call.  Names stay the
 * caller's until the end.  One thread for each reader and writer. */

#include <stdint.h>
#include <stdio.h>

struct capture_frame {
    uint64_t number;            /* In its file, from 1. */
    uint64_t time;              /* Nanoseconds since the epoch. */
    const uint8_t *data;        /* NULL: end of the file. */
    uint32_t captured;          /* Bytes of 'data', at most 'length'. */
    uint32_t length;            /* Bytes of the original frame. */
};

struct capture_reader;
struct capture_writer;

/* Each returns NULL, or a message that begins with the name.
 * capture_open_stream() takes ownership of the stream in any case. */
char *capture_open(const char *file, struct capture_reader **);
char *capture_open_stream(const char *name, FILE *, struct capture_reader **);
char *capture_next(struct capture_reader *, struct capture_frame *);
void capture_close(struct capture_reader *);

/* capture_finish() reports errors of capture_write(). */
char *capture_create(const char *file, struct capture_writer **);
void capture_write(struct capture_writer *, const struct capture_frame *);
char *capture_finish(struct capture_writer *);

#endif /* shim/capture/file.h */
