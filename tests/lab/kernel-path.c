/* SPDX-License-Identifier: Apache-2.0 */

/* Bridges two interfaces of this network namespace, or ends the bridge.
 *
 *    kernel-path raise|lower|show IFACE OTHER
 *
 * "show" prints "up" or "down". */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ports/kernel-path.h"

int
main(int argc, char *argv[])
{
    struct route_socket *rs;
    int error;

    if (argc != 4) {
        fputs("usage: kernel-path raise|lower|show IFACE OTHER\n", stderr);
        return 2;
    }
    error = route_socket_open(-1, &rs);
    if (!error && !strcmp(argv[1], "raise")) {
        error = kernel_path_raise(rs, argv[2], argv[3]);
    } else if (!error && !strcmp(argv[1], "lower")) {
        error = kernel_path_lower(rs, argv[2], argv[3]);
    } else if (!error) {
        puts(kernel_path_is_up(rs, argv[2], argv[3]) ? "up" : "down");
    }
    route_socket_close(rs);
    if (error) {
        fprintf(stderr, "kernel-path: %s: %s\n", argv[1], strerror(error));
    }
    return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
