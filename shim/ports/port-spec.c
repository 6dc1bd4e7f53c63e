/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/port-spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shim/ports/port-driver.h"

static char *
unknown_kind(const char *text)
{
    char *error = message("\"%s\" is not a port, the kinds are", text);

    for (const struct port_driver *d = port_drivers; d->name; d++) {
        char *longer = message("%s%s %s", error, d == port_drivers ? "" : ",",
                               d->name);

        free(error);
        error = longer;
    }
    return error;
}

/* A bus address: "0000:01:00.0". */
static bool
is_pci(const char *s)
{
    static const char pattern[] = "xxxx:xx:xx.x";

    for (size_t i = 0; i < sizeof pattern - 1; i++) {
        if (pattern[i] == 'x' ? !s[i] || !strchr("0123456789abcdef", s[i])
            : s[i] != pattern[i]) {
            return false;
        }
    }
    return !s[sizeof pattern - 1];
}

/* Is 's' what 'driver' wants?  A comma would begin another of the device's
 * arguments. */
static bool
suits(const struct port_driver *driver, const char *s)
{
    size_t n = strlen(s), first = strcspn(s, ",");

    if (n >= sizeof ((struct port_spec *) NULL)->what
        || strpbrk(s, " \t\n")) {
        return false;
    }
    switch (driver->argument) {
    case PORT_ARG_NONE:
        return false;
    case PORT_ARG_IFACE:
        return n && n < IFNAMSIZ && !strpbrk(s, ",/");
    case PORT_ARG_PATH:
        return n && first == n;
    case PORT_ARG_TWO_PATHS:
        return first && first + 1 < n && !strchr(s + first + 1, ',');
    case PORT_ARG_PCI:
        return is_pci(s);
    }
    return false;
}

char *
port_spec_parse(const char *text, struct port_spec *spec)
{
    size_t length = strcspn(text, ":");
    const struct port_driver *driver = port_driver_find(text, length);
    bool bare = driver && driver->argument == PORT_ARG_NONE;
    const char *what = bare ? text : text + length + (text[length] == ':');

    if (!driver) {
        return unknown_kind(text);
    }
    if (bare ? !text[length] : suits(driver, what)) {
        *spec = (struct port_spec) { .driver = driver };
        snprintf(spec->what, sizeof spec->what, "%s", what);
        snprintf(spec->iface, sizeof spec->iface, "%.*s", IFNAMSIZ - 1,
                 driver->argument == PORT_ARG_IFACE ? what : "");
        return NULL;
    }
    return message("\"%s\" is not a port, such as %s%s%s", text, driver->name,
                   bare ? "" : ":", bare ? "" : driver->example);
}

bool
port_spec_same(const struct port_spec *a, const struct port_spec *b)
{
    return a->iface[0] ? !strcmp(a->iface, b->iface)
           : (a->driver == b->driver && !strcmp(a->what, b->what)
              && a->driver->argument != PORT_ARG_NONE);
}

uint32_t
port_frame_size(uint32_t mtu)
{
    /* The kernel puts up to 66 bytes before the frame, which has 14 bytes of
     * Ethernet and up to two VLAN tags. */
    uint32_t size = (mtu + 14 + 8 + 66 + 1023) / 1024 * 1024;

    return size < 2048 ? 2048 : size;
}

void
port_spec_devargs(const struct port_spec *spec, uint32_t mtu, char *args)
{
    args[0] = '\0';
    if (spec->driver->devargs) {
        spec->driver->devargs(spec, mtu, args, PORT_MAX_ARGS);
    }
}
