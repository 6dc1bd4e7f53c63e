/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/trainer/gossip/crew.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit-test.h"

#define LEAKED 23

void
crew_choose_ports(struct crew *crew, int n)
{
    crew->names[0] = '\0';
    for (int i = 0; i < n; i++) {
        crew->ports[i] = reserve_port();
        sprintf(crew->names + strlen(crew->names), "%s127.0.0.1:%d",
                i ? "," : "", crew->ports[i]);
    }
}

int
crew_fork(struct crew *crew, int i)
{
    int out[2];

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    crew->pids[i] = start_process();
    if (!crew->pids[i]) {
        return out[1];
    }
    close(out[1]);
    crew->out[i] = fdopen(out[0], "r");
    return -1;
}

void
crew_become(int out)
{
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN);
}

/* Of AddressSanitizer, if the program has it. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* _exit() does not look for leaks. */
void
crew_exit(char *error)
{
    int status = error != NULL;

    if (error) {
        printf("{\"failed\": \"%s\"}\n", error);
        fflush(stdout);
    }
    free(error);
    if (__lsan_do_recoverable_leak_check
        && __lsan_do_recoverable_leak_check()) {
        status = LEAKED;
    }
    _exit(status);
}

bool
crew_find_line(struct crew *crew, int i, const char *text,
               char line[CREW_LINE])
{
    while (fgets(line, CREW_LINE, crew->out[i])) {
        if (strstr(line, text)) {
            return true;
        }
    }
    return false;
}

void
crew_await(struct crew *crew, int i, int status)
{
    fclose(crew->out[i]);
    assert_int_equal(await_end(crew->pids[i]), status);
}
