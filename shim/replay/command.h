/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPLAY_COMMAND_H
#define REPLAY_COMMAND_H 1

/* stagecoach-shim --replay: forwards the frames of a capture into other
 * captures and prints the counters, one "NAME VALUE..." a line.  An interrupt
 * (base/interrupt.h) is the end of the capture. */

#include <stdint.h>

struct replay_files {
    const char *in;             /* Capture to replay, pcap or pcapng. */
    const char *rules;          /* See rules.h. */
    const char *out;            /* Frames sent to the uplink, pcap. */
    const char *to_host;        /* Frames sent to the host, or NULL. */
};

/* Stores the number of frames that were replayed.  Returns NULL or a message.
 */
char *replay_command(const struct replay_files *, uint64_t *n_frames);

#endif /* shim/replay/command.h */
