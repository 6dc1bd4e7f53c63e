/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/service-notify.h"
#include "tests/unit/unit-test.h"

/* Listens as a service manager does, on 'path' with its "@" as a null byte. */
static int
listen_at(const char *path)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    memcpy(sun.sun_path, path, strlen(path));
    if (*path == '@') {
        sun.sun_path[0] = '\0';
    }
    assert_return_code(fd, errno);
    assert_return_code(bind(fd, (struct sockaddr *) &sun,
                            offsetof(struct sockaddr_un, sun_path)
                            + strlen(path)), errno);
    return fd;
}

static void
assert_told(const char *path)
{
    int fd = listen_at(path);
    char buffer[32] = "";

    assert_return_code(setenv("NOTIFY_SOCKET", path, 1), errno);
    assert_int_equal(service_notify("READY=1"), 0);
    assert_int_equal(recv(fd, buffer, sizeof buffer - 1, 0), 7);
    assert_string_equal(buffer, "READY=1");
    close(fd);
}

UNIT_TEST(tells_a_socket_in_a_folder)
{
    char dir[] = "/tmp/sc-notify-XXXXXX";
    char path[64];

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    assert_told(path);
    assert_return_code(unlink(path), errno);
    assert_return_code(rmdir(dir), errno);
}

UNIT_TEST(tells_an_abstract_socket)
{
    char path[64];

    snprintf(path, sizeof path, "@stagecoach-notify-%ld", (long) getpid());
    assert_told(path);
}

UNIT_TEST(says_once_a_second_that_it_is_alive)
{
    char path[64], buffer[32] = "";
    int fd;

    snprintf(path, sizeof path, "@stagecoach-alive-%ld", (long) getpid());
    fd = listen_at(path);
    unsetenv("NOTIFY_SOCKET");
    assert_true(service_alive(5000) == LLONG_MAX);
    assert_return_code(setenv("NOTIFY_SOCKET", path, 1), errno);
    assert_int_equal(service_alive(5000), 6000);
    assert_int_equal(recv(fd, buffer, sizeof buffer - 1, 0), 10);
    assert_string_equal(buffer, "WATCHDOG=1");
    assert_int_equal(service_alive(5999), 6000);
    assert_int_equal(recv(fd, buffer, sizeof buffer, 0), -1);
    assert_int_equal(service_alive(6500), 7500);
    assert_int_equal(recv(fd, buffer, sizeof buffer, 0), 10);
    close(fd);
}

UNIT_TEST(tells_nobody_if_nobody_asks)
{
    unsetenv("NOTIFY_SOCKET");
    assert_int_equal(service_notify("READY=1"), 0);
    setenv("NOTIFY_SOCKET", "", 1);
    assert_int_equal(service_notify("READY=1"), 0);
}

UNIT_TEST(says_why_it_cannot)
{
    char path[200];

    setenv("NOTIFY_SOCKET", "relative", 1);
    assert_int_equal(service_notify("READY=1"), EINVAL);
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    setenv("NOTIFY_SOCKET", path, 1);
    assert_int_equal(service_notify("READY=1"), EINVAL);
    setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
    assert_int_equal(service_notify("READY=1"), ENOENT);
}
