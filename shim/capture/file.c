/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/capture/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include "base/memory.h"

#define SNAP_BYTES 65535 /* In the header of a file. */
#define NS_PER_S UINT64_C(1000000000)

struct capture_reader {
    const char *name;
    pcap_t *pcap;
    uint64_t n;                 /* Frames so far. */
};

struct capture_writer {
    const char *name;
    pcap_t *pcap;
    pcap_dumper_t *dumper;
};

/* Puts 'error' on one line: libpcap quotes bytes of the file. */
static char *
one_line(char *error)
{
    for (char *p = error; *p; p++) {
        if (*p == '\n') {
            *p = ' ';
        }
    }
    return error;
}

static char *
file_error(const char *file, const char *what)
{
    return one_line(message("%s: %s", file, what));
}

static char *
check_link(const struct capture_reader *c)
{
    int link = pcap_datalink(c->pcap);
    const char *name = pcap_datalink_val_to_name(link);

    return (link == DLT_EN10MB
                ? NULL
                : message("%s: link type %s (%d); expected only Ethernet",
                          c->name, name ? name : "unknown", link));
}

char *
capture_open_stream(const char *name, FILE *stream,
                    struct capture_reader **readerp)
{
    char reason[PCAP_ERRBUF_SIZE], *error;
    struct capture_reader *c = allocate(1, sizeof *c);

    *readerp = NULL;
    c->name = name;
    c->pcap = pcap_fopen_offline_with_tstamp_precision(
        stream, PCAP_TSTAMP_PRECISION_NANO, reason);
    if (!c->pcap) {
        fclose(stream);
    }
    error = c->pcap ? check_link(c) : file_error(name, reason);
    if (error) {
        capture_close(c);
    } else {
        *readerp = c;
    }
    return error;
}

char *
capture_open(const char *file, struct capture_reader **readerp)
{
    FILE *stream = fopen(file, "re");

    *readerp = NULL;
    return (stream ? capture_open_stream(file, stream, readerp)
            : file_error(file, strerror(errno)));
}

static char *
at_frame(const struct capture_reader *c, const char *what)
{
    return one_line(message("%s: frame %"PRIu64": %s", c->name, c->n, what));
}

char *
capture_next(struct capture_reader *c, struct capture_frame *frame)
{
    struct pcap_pkthdr *header;
    const u_char *data;
    int result = pcap_next_ex(c->pcap, &header, &data);

    *frame = (struct capture_frame) { .number = ++c->n };
    if (result == PCAP_ERROR_BREAK) {
        return NULL;
    }
    if (result != 1) {
        return at_frame(c, pcap_geterr(c->pcap));
    }
    if (header->ts.tv_sec < 0 || header->ts.tv_sec > UINT32_MAX
        || header->ts.tv_usec < 0
        || header->ts.tv_usec >= (suseconds_t) NS_PER_S) {
        return at_frame(c, "its time is not between 1970 and 2106");
    }
    if (header->caplen > header->len) {
        return at_frame(c, "more bytes than the frame had");
    }
    frame->time = header->ts.tv_sec * NS_PER_S + header->ts.tv_usec;
    frame->data = data;
    frame->captured = header->caplen;
    frame->length = header->len;
    return NULL;
}

void
capture_close(struct capture_reader *c)
{
    if (c) {
        if (c->pcap) {
            pcap_close(c->pcap);
        }
        free(c);
    }
}

static void
writer_destroy(struct capture_writer *w)
{
    if (w->dumper) {
        pcap_dump_close(w->dumper);
    }
    if (w->pcap) {
        pcap_close(w->pcap);
    }
    free(w);
}

char *
capture_create(const char *file, struct capture_writer **writerp)
{
    struct capture_writer *w = allocate(1, sizeof *w);
    FILE *stream;

    *writerp = NULL;
    w->name = file;
    w->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, SNAP_BYTES,
                                                   PCAP_TSTAMP_PRECISION_NANO);
    stream = w->pcap ? fopen(file, "we") : NULL;
    if (stream) {
        w->dumper = pcap_dump_fopen(w->pcap, stream);
    }
    if (!w->dumper) {
        char *error = file_error(file, stream ? pcap_geterr(w->pcap)
                              : strerror(errno));

        writer_destroy(w);
        return error;
    }
    *writerp = w;
    return NULL;
}

void
capture_write(struct capture_writer *w, const struct capture_frame *frame)
{
    struct pcap_pkthdr header = {
        .ts = {
            .tv_sec = frame->time / NS_PER_S,
            .tv_usec = frame->time % NS_PER_S,
        },
        .caplen = frame->captured,
        .len = frame->length,
    };

    pcap_dump((u_char *) w->dumper, &header, frame->data);
}

char *
capture_finish(struct capture_writer *w)
{
    char *error = NULL;

    if (!w) {
        return NULL;
    }
    errno = 0;
    if (pcap_dump_flush(w->dumper) || ferror(pcap_dump_file(w->dumper))) {
        error = file_error(w->name, errno ? strerror(errno)
                           : "could not be written");
    }
    writer_destroy(w);
    return error;
}
