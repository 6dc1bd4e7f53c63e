/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/capture/pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shim/capture/file.h"

/* See draft-ietf-opsawg-pcapng, section 4. */
enum {
    SECTION = 0x0a0d0d0a,
    INTERFACE = 1,
    STATISTICS = 5,
    PACKET = 6,

    ORDER_MAGIC = 0x1a2b3c4d,
    ETHERNET = 1,

    OPTION_END = 0,
    SECTION_APPLICATION = 4,
    INTERFACE_NAME = 2,
    INTERFACE_RESOLUTION = 9,
    PACKET_FLAGS = 2,           /* 1: inbound, 2: outbound. */
    STATISTICS_RECEIVED = 4,
    STATISTICS_DROPPED = 5,
};

struct pcapng {
    const char *name;
    FILE *stream;
    uint64_t n;                 /* Packets written. */
    uint64_t last;              /* Time of the last packet. */
};

/* A block without the packet's bytes. */
struct block {
    uint8_t bytes[512];
    size_t n;
};

static void
put_bytes(struct block *b, const void *data, size_t size)
{
    memcpy(b->bytes + b->n, data, size);
    b->n += size;
    while (b->n % 4) {
        b->bytes[b->n++] = 0;
    }
}

static void
put_32(struct block *b, uint32_t value)
{
    put_bytes(b, &value, sizeof value);
}

static void
put_16s(struct block *b, uint16_t first, uint16_t second)
{
    uint16_t both[] = { first, second };

    put_bytes(b, both, sizeof both);
}

static void
put_time(struct block *b, uint64_t time)
{
    put_32(b, time >> 32);
    put_32(b, time);
}

static void
put_option(struct block *b, uint16_t code, const void *data, uint16_t size)
{
    put_16s(b, code, size);
    put_bytes(b, data, size);
}

/* Writes a block: 'b', with 'size' bytes of 'data' after its first 'split'
 * bytes. */
static void
write_block(struct pcapng *p, uint32_t type, const struct block *b,
            size_t split, const void *data, uint32_t size)
{
    static const uint8_t zeros[4];
    uint32_t padding = -size & 3;
    uint32_t total = 12 + b->n + size + padding;

    fwrite(&type, sizeof type, 1, p->stream);
    fwrite(&total, sizeof total, 1, p->stream);
    fwrite(b->bytes, 1, split, p->stream);
    if (size) {
        fwrite(data, 1, size, p->stream);
        fwrite(zeros, 1, padding, p->stream);
    }
    fwrite(b->bytes + split, 1, b->n - split, p->stream);
    fwrite(&total, sizeof total, 1, p->stream);
}

static void
write_head(struct pcapng *p, const char *interface)
{
    static const char application[] = "stagecoach " STAGECOACH_VERSION;
    static const uint8_t nanoseconds = 9;
    struct block section = { .n = 0 }, iface = { .n = 0 };

    put_32(&section, ORDER_MAGIC);
    put_16s(&section, 1, 0);
    put_32(&section, UINT32_MAX);       /* Its length: not known. */
    put_32(&section, UINT32_MAX);
    put_option(&section, SECTION_APPLICATION, application,
               strlen(application));
    put_16s(&section, OPTION_END, 0);
    write_block(p, SECTION, &section, section.n, NULL, 0);

    put_16s(&iface, ETHERNET, 0);
    put_32(&iface, 0);                  /* No limit of the length. */
    put_option(&iface, INTERFACE_NAME, interface,
               strnlen(interface, sizeof iface.bytes / 2));
    put_option(&iface, INTERFACE_RESOLUTION, &nanoseconds, 1);
    put_16s(&iface, OPTION_END, 0);
    write_block(p, INTERFACE, &iface, iface.n, NULL, 0);
}

char *
pcapng_create(const char *file, const char *interface, struct pcapng **pp)
{
    FILE *stream = fopen(file, "we");
    struct pcapng *p;

    *pp = NULL;
    if (!stream) {
        return message("%s: %s", file, strerror(errno));
    }
    p = allocate(1, sizeof *p);
    p->name = file;
    p->stream = stream;
    write_head(p, interface);
    *pp = p;
    return NULL;
}

void
pcapng_write(struct pcapng *p, const struct capture_frame *frame, bool to_host)
{
    uint32_t flags = to_host ? 1 : 2;
    struct block b = { .n = 0 };
    size_t split;

    put_32(&b, 0);              /* The interface. */
    put_time(&b, frame->time);
    put_32(&b, frame->captured);
    put_32(&b, frame->length);
    split = b.n;
    put_option(&b, PACKET_FLAGS, &flags, sizeof flags);
    put_16s(&b, OPTION_END, 0);
    write_block(p, PACKET, &b, split, frame->data, frame->captured);
    p->n++;
    p->last = frame->time;
}

char *
pcapng_finish(struct pcapng *p, uint64_t dropped)
{
    struct block b = { .n = 0 };
    char *error = NULL;

    put_32(&b, 0);
    put_time(&b, p->last);
    put_option(&b, STATISTICS_RECEIVED, &p->n, sizeof p->n);
    put_option(&b, STATISTICS_DROPPED, &dropped, sizeof dropped);
    put_16s(&b, OPTION_END, 0);
    write_block(p, STATISTICS, &b, b.n, NULL, 0);
    errno = 0;
    if (fflush(p->stream) || ferror(p->stream)) {
        error = message("%s: %s", p->name, strerror(errno ? errno : EIO));
    }
    fclose(p->stream);
    free(p);
    return error;
}
