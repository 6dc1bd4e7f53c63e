/* SPDX-License-Identifier: Apache-2.0 */

/* dead-fs DIRECTORY: mounts a file system that never answers, until this
 * process ends.  It is FUSE's: without a reply to its first request, every use
 * waits. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

int
main(int argc, char *argv[])
{
    char options[128];
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (argc != 2 || fd < 0) {
        fprintf(stderr, "usage: dead-fs DIRECTORY, with /dev/fuse\n");
        return 77;
    }
    snprintf(options, sizeof options,
             "fd=%d,rootmode=40777,user_id=0,group_id=0,allow_other", fd);
    if (mount("dead-fs", argv[1], "fuse.dead-fs", MS_NOSUID | MS_NODEV,
              options)) {
        perror("mount");
        return 77;
    }
    puts("mounted");
    fflush(stdout);
    for (;;) {
        pause();
    }
}
