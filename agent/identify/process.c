/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

/* Reads the file 'name' of 'pid' into 'buffer' as a string, cut off where it
 * is full.  Returns the number of bytes, negative if there is no process. */
static ssize_t
read_file(pid_t pid, const char *name, char *buffer, size_t size)
{
    char path[64];
    size_t done = 0;
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", (int) pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        while (done < size - 1
               && (n = read(fd, buffer + done, size - 1 - done)) > 0) {
            done += n;
        }
        close(fd);
    }
    buffer[done] = '\0';
    return done ? (ssize_t) done : n;
}

/* Stores in '*process' what there is to know of 'pid'.  Returns false if there
 * is no such process, or if it has ended and nobody has noticed. */
bool
process_look(pid_t pid, struct process *process)
{
    char text[1024];
    const char *p;
    char state;
    int parent;

    if (read_file(pid, "stat", text, sizeof text) <= 0) {
        return false;
    }
    /* The name before it, in parentheses, may have any character. */
    p = strrchr(text, ')');
    if (!p || sscanf(p + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
                     "%*u %*d %*d %*d %*d %*d %*d %"SCNu64, &state, &parent,
                     &process->born) != 3) {
        return false;
    }
    process->pid = pid;
    process->parent = parent;
    return state != 'Z' && state != 'X';
}
