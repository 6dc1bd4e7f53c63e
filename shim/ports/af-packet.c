/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/af-packet.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool
is_bound_to(int fd, unsigned int ifindex)
{
    struct sockaddr_ll address;
    socklen_t size = sizeof address;

    memset(&address, 0, sizeof address);
    return (!getsockname(fd, (struct sockaddr *) &address, &size)
            && address.sll_family == AF_PACKET
            && address.sll_ifindex == (int) ifindex);
}

/* Returns this process's packet socket that is bound to 'iface', or -1. */
int
af_packet_find(const char *iface)
{
    unsigned int ifindex = if_nametoindex(iface);
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int found = -1;

    if (!dir) {
        return -1;
    }
    while (ifindex && found < 0 && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name);

        if (entry->d_name[0] != '.' && is_bound_to(fd, ifindex)) {
            found = fd;
        }
    }
    closedir(dir);
    return found;
}

/* Makes the socket's buffer larger than its ring of 'ring_bytes' (the kernel
 * adds an overhead for each frame), and ignores frames that this kernel sends
 * on the interface.  Returns 0 or the first errno; both are tried. */
int
af_packet_tune(int fd, uint32_t ring_bytes)
{
    int size = ring_bytes * 2, one = 1, error = 0;

    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size)) {
        error = errno;
    }
    if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one)
        && !error) {
        error = errno;
    }
    return error;
}

/* Sends the frames left in the transmit ring.  Returns the bytes sent, 0 if
 * there were none, or a negative errno if some are still left. */
int
af_packet_kick(int fd)
{
    ssize_t n = send(fd, NULL, 0, MSG_DONTWAIT | MSG_NOSIGNAL);

    return n < 0 ? -errno : n;
}

/* Returns how many frames were dropped since the last call because the receive
 * ring was full. */
uint32_t
af_packet_dropped(int fd)
{
    struct tpacket_stats stats;
    socklen_t size = sizeof stats;

    return getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size)
           ? 0 : stats.tp_drops;
}

/* Clears the error that the interface was down, which poll() would report for
 * ever. */
void
af_packet_clear_error(int fd)
{
    int error;
    socklen_t size = sizeof error;

    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
}

/* Executes 'request' with '*ifr'.  Returns 0 or a positive errno. */
int
iface_ioctl(const char *iface, unsigned long request, struct ifreq *ifr)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error;

    snprintf(ifr->ifr_name, sizeof ifr->ifr_name, "%s", iface);
    error = fd < 0 || ioctl(fd, request, ifr) ? errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

/* Returns the MTU of 'iface', or -1 if there is no such interface. */
int
iface_mtu(const char *iface)
{
    struct ifreq ifr = { .ifr_name = "" };

    return iface_ioctl(iface, SIOCGIFMTU, &ifr) ? -1 : ifr.ifr_mtu;
}

/* Returns 0 or a positive errno. */
int
iface_set_mtu(const char *iface, uint32_t mtu)
{
    struct ifreq ifr = { .ifr_mtu = mtu };

    return iface_ioctl(iface, SIOCSIFMTU, &ifr);
}

/* Returns true if 'iface' is up and has a carrier. */
bool
iface_is_up(const char *iface)
{
    struct ifreq ifr = { .ifr_name = "" };

    return (!iface_ioctl(iface, SIOCGIFFLAGS, &ifr)
            && ifr.ifr_flags & IFF_UP && ifr.ifr_flags & IFF_RUNNING);
}

/* Parses "NAME: rx-bytes packets errs drop fifo frame compressed multicast
 * tx-bytes packets errs drop ..." */
static bool
parse_sent(char *line, const char *iface, uint64_t *n)
{
    char *name = line + strspn(line, " ");
    char *colon = strrchr(name, ':');
    uint64_t packets, errors, dropped;

    if (!colon) {
        return false;
    }
    *colon = '\0';
    if (strcmp(name, iface)
        || sscanf(colon + 1, "%*u %*u %*u %*u %*u %*u %*u %*u "
                  "%*u %"SCNu64" %"SCNu64" %"SCNu64,
                  &packets, &errors, &dropped) != 3) {
        return false;
    }
    *n = packets + errors + dropped;
    return true;
}

/* Stores in '*n' how many packets the kernel has sent, failed to send or
 * dropped on 'iface'.  Returns 0 or a positive errno.
 *
 * Reads /proc, because /sys shows the namespace in which it was mounted. */
int
iface_sent(const char *iface, uint64_t *n)
{
    FILE *stream = fopen("/proc/thread-self/net/dev", "re");
    char line[512];
    bool found = false;

    if (!stream) {
        return errno;
    }
    while (!found && fgets(line, sizeof line, stream)) {
        found = parse_sent(line, iface, n);
    }
    fclose(stream);
    return found ? 0 : ENODEV;
}
