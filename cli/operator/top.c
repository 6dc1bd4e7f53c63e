/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach top: shows stages, hosts and links once a second. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/top-frame.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

#define REFRESH_MS 1000
#define TIMEOUT_MS 3000         /* Of a request. */

#define CSI "\033["
#define FIRST_LINE CSI "H"
#define CLEAR_TO_END_OF_LINE CSI "K"
#define CLEAR_BELOW CSI "J"

struct top_options {
    bool once;
};

static void
sample_uninit(struct top_sample *s)
{
    for (int i = 0; i < N_TOP_VIEWS; i++) {
        json_destroy(s->views[i]);
    }
    memset(s, 0, sizeof *s);
}

/* Requests all views.  Returns NULL, or a message and sets '*errnum' as
 * controller_call() does. */
static char *
sample(struct top_sample *s, int *errnum)
{
    static const char *const requests[N_TOP_VIEWS] = {
        [TOP_STATUS] = "controller/status", [TOP_ORDER] = "controller/order",
        [TOP_HOSTS] = "controller/hosts", [TOP_PORTS] = "controller/ports",
    };
    char *error = NULL;

    memset(s, 0, sizeof *s);
    for (int i = 0; !error && i < N_TOP_VIEWS; i++) {
        char *reply;

        error = controller_call(requests[i], 0, NULL, TIMEOUT_MS, &reply,
                                errnum);
        if (!error) {
            s->views[i] = json_from_string(reply);
            if (s->views[i]->type != JSON_OBJECT) {
                *errnum = 0;
                error = xstrdup("the reply is not a JSON object");
            }
        }
        free(reply);
    }
    s->at = time_msec() / 1000.0;
    if (error) {
        sample_uninit(s);
    }
    return error;
}

/* Replaces the samples by a newer one.  Keeps them after an error, which is
 * returned. */
static char *
next_sample(struct top_sample *before, struct top_sample *now, int *errnum)
{
    struct top_sample new;
    char *error = sample(&new, errnum);

    if (!error) {
        sample_uninit(before);
        *before = *now;
        *now = new;
    }
    return error;
}

/* Draws over the previous frame, so that nothing flickers. */
static void
draw(const struct top_sample *before, const struct top_sample *now,
     struct top_screen *screen)
{
    struct winsize size = { .ws_row = 24, .ws_col = 80 };
    struct ds frame = DS_EMPTY_INITIALIZER;

    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    screen->lines = MAX(size.ws_row, 1);
    screen->columns = MAX(size.ws_col, 1);
    top_frame(before, now, screen, &frame);
    fputs(FIRST_LINE, stdout);
    for (const char *c = ds_cstr(&frame); *c; c++) {
        if (*c == '\n') {
            fputs(CLEAR_TO_END_OF_LINE "\n", stdout);
        } else {
            putchar(*c);
        }
    }
    fputs(CLEAR_TO_END_OF_LINE CLEAR_BELOW, stdout);
    fflush(stdout);
    ds_destroy(&frame);
}

/* Shows frames until a signal ends the program.  Both samples are there. */
static void
run(struct top_sample *before, struct top_sample *now,
    struct top_screen *screen)
{
    char *error = NULL;

    for (;;) {
        int errnum;

        screen->error = error;
        draw(before, now, screen);
        xnanosleep(REFRESH_MS * 1000000LL);
        free(error);
        error = next_sample(before, now, &errnum);
    }
}

int
cmd_top(int argc, char *argv[])
{
    static const struct option_row rows[] = {
        { "once", OPTION_FLAG, OPTION_AT(struct top_options, once),
          .help = "print one frame, after a second, and exit" },
        { .name = NULL },
    };
    static const struct option_table table = {
        .name = "stagecoach top",
        .rows = rows,
        .usage = "usage: stagecoach top [--once]\n\n"
                 "Shows the stages in their order, the hosts and the links, "
                 "once a second.\n",
    };
    struct top_options o = { .once = false };
    struct top_sample before = { .at = 0 }, now = { .at = 0 };
    struct top_screen screen = { .lines = 0 };
    int status = option_table_command(&table, argc, argv, &o, NULL);
    int errnum = 0;
    char *error;

    if (status >= 0) {
        return status;
    }
    if (!o.once && !isatty(STDOUT_FILENO)) {
        return command_fail(
            "stagecoach top",
            xstrdup("standard output: not a terminal; expected --once"));
    }
    vlog_set_levels(NULL, VLF_CONSOLE, VLL_OFF);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    error = next_sample(&before, &now, &errnum);
    if (!error) {
        xnanosleep(REFRESH_MS * 1000000LL);
        error = next_sample(&before, &now, &errnum);
    }
    if (error) {
        command_fail("stagecoach top", error);
        status = errnum ? EXIT_UNREACHABLE : EXIT_NO;
    } else if (o.once) {
        struct ds frame = DS_EMPTY_INITIALIZER;

        top_frame(&before, &now, &screen, &frame);
        puts(ds_cstr(&frame));
        ds_destroy(&frame);
        status = EXIT_OK;
    } else {
        run(&before, &now, &screen);
    }
    sample_uninit(&before);
    sample_uninit(&now);
    return status;
}
