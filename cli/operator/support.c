/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach support: makes an archive for a request for help.
 *
 * All texts are collected in memory and lose their secrets there (redact.h)
 * before any is written, so that no secret is ever on the disk.  Environments
 * of processes and files of keys are never read. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "cli/command.h"
#include "cli/operator/redact.h"
#include "controller/ovsdb/rpc-call.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/vlog.h"
#include "sset.h"
#include "svec.h"
#include "util.h"

#define TIMEOUT_MS 3000         /* Of a request to a daemon. */
#define MAX_HOURS 720
#define MAX_TEXT (8u << 20)     /* Bytes of a text; of longer ones the end. */

struct support_options {
    int64_t hours;
    const char *root;
};

struct item {
    char *name;                 /* In the archive. */
    char *text;
    size_t removed;             /* Secrets. */
};

struct collection {
    struct item *items;
    size_t n, allocated;
    struct svec left_out;       /* "SOURCE: REASON". */
};

/* Takes ownership of 'text'. */
static void
add(struct collection *c, const char *name, char *text)
{
    size_t length = strlen(text);

    if (c->n >= c->allocated) {
        c->items = x2nrealloc(c->items, &c->allocated, sizeof *c->items);
    }
    if (length > MAX_TEXT) {
        char *end = xstrdup(text + length - MAX_TEXT);

        free(text);
        text = end;
    }
    c->items[c->n++] = (struct item){ .name = xstrdup(name), .text = text };
}

/* Takes ownership of 'reason'. */
static void
leave_out(struct collection *c, const char *source, char *reason)
{
    svec_add_nocopy(&c->left_out, xasprintf("%s: %s", source, reason));
    free(reason);
}

/* Reads all of 'fd'.  Null bytes become spaces. */
static char *
read_all(int fd)
{
    struct ds text = DS_EMPTY_INITIALIZER;
    char buffer[65536];
    ssize_t n;

    while ((n = read(fd, buffer, sizeof buffer)) > 0
           || (n < 0 && errno == EINTR)) {
        for (ssize_t i = 0; i < n; i++) {
            ds_put_char(&text, buffer[i] ? buffer[i] : ' ');
        }
    }
    return ds_steal_cstr(&text);
}

/* Daemons. */

/* Adds the replies to "PROGRAM/NAME" for each of 'names', none if the program,
 * whose socket is in 'dir', cannot be reached. */
static void
add_replies(struct collection *c, const char *dir, const char *program,
            const char *const *names)
{
    char *socket = xasprintf("%s/%s.ctl", dir, program);

    for (bool here = true; here && *names; names++) {
        char *command = (strchr(*names, '/') ? xstrdup(*names)
                         : xasprintf("%s/%s", program, *names));
        char *reply;
        int errnum;
        char *error = rpc_unixctl(socket, command, 0, NULL, TIMEOUT_MS,
                                  &reply, &errnum);

        if (error) {
            here = !errnum;
            leave_out(c, here ? command : program, error);
        } else {
            struct json *json = json_from_string(reply);
            char *name = xasprintf("%s.json", command);

            add(c, name, json_to_string(json, JSSF_PRETTY | JSSF_SORT));
            free(name);
            json_destroy(json);
        }
        free(reply);
        free(command);
    }
    free(socket);
}

static void
add_daemons(struct collection *c)
{
    static const char *const views[] = {
        "status",    "order",     "hosts",       "facts",
        "ports",     "switches",  "cojobs",      "stages",
        "decisions", "overrides", "policy/show", NULL,
    };
    static const char *const agent[] = { "status", "jobs", "claims", "readers",
                                         NULL };
    char *dir = command_controller_rundir();

    add_replies(c, dir, "controller", views);
    add_replies(c, command_rundir(), "agent", agent);
    free(dir);
}

/* Commands.  In them, $SELF is this program, $CONTROLLER and $HOST are the
 * directories of sockets, and $ROOT is above the configuration. */

static const struct {
    const char *name, *command;
} commands[] = {
    { "versions.txt",
      "\"$SELF\" --version; for p in controller agent shim; do "
      "command -v stagecoach-$p && stagecoach-$p --version; done; "
      "ovsdb-server --version | head -1; cat /etc/os-release; "
      "dpkg-query -W 'stagecoach*' 'openvswitch*' 'dpdk*'; true" },
    { "doctor.txt", "\"$SELF\" doctor; true" },
    { "agent-doctor.txt", "\"$SELF\" agent doctor; true" },
    { "metrics.txt", "curl -sSm 3 --unix-socket \"$CONTROLLER/rest.sock\" "
                     "http://localhost/metrics" },
    { "databases.txt", "\"$SELF\" controller status" },
    { "schemas.txt",
      "for d in intent hosts; do D=Stagecoach_$(echo $d | sed "
      "'s/^i/I/; s/^h/H/'); echo $D $(ovsdb-client -t 3 get-schema-version "
      "\"unix:$CONTROLLER/$d.sock\" $D); done" },
    { "shim.txt", "stagecoach-shim --show \"$HOST/shim.sock\"" },
    { "config.txt",
      "cd \"$ROOT/etc\" && tail -vc 1000000 default/stagecoach* "
      "stagecoach/*.json stagecoach/policies/*.json; ls -lR stagecoach" },
    { "logs.txt", "tail -vc 4000000 \"$CONTROLLER\"/*.log; "
                  "[ \"$HOST\" = \"$CONTROLLER\" ] || "
                  "tail -vc 4000000 \"$HOST\"/*.log" },
    { "units.txt", "systemctl --no-pager -l --lines=0 status 'stagecoach*'; "
                   "systemctl --no-pager cat 'stagecoach*'" },
    { "journal.txt", "journalctl --no-pager -o short-iso -u 'stagecoach*' "
                     "--since \"$HOURS hours ago\"" },
    { "kernel.txt",
      "uname -a; cat /proc/cmdline; free -m; lscpu; "
      "grep -i huge /proc/meminfo; sysctl net.ipv4.tcp_rto_max_ms "
      "net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn net.core.rmem_max "
      "net.core.wmem_max; true" },
    { "network.txt", "ip -d -s link; ip address; ip route; tc -s qdisc" },
    { "cards.txt",
      "for i in $(ls /sys/class/net); do echo \"== $i\"; ethtool -i $i; "
      "ethtool -k $i; ethtool -g $i; done; lspci -nnk; true" },
    { "clock.txt", "timedatectl status; chronyc tracking; true" },
};

static void
add_commands(struct collection *c)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        FILE *stream;
        char *text;
        int status;

        setenv("COMMAND", commands[i].command, true);
        stream = popen("exec timeout 30 sh -c \"$COMMAND\" 2>&1 </dev/null",
                       "re");
        if (!stream) {
            leave_out(c, commands[i].name, xstrdup(ovs_strerror(errno)));
            continue;
        }
        text = read_all(fileno(stream));
        status = pclose(stream);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
            leave_out(c, commands[i].name, xasprintf("not here: %s",
                                                     commands[i].command));
            free(text);
        } else {
            add(c, commands[i].name, text);
        }
    }
}

/* The archive. */

static void
redact(struct collection *c)
{
    struct sset secrets = SSET_INITIALIZER(&secrets);

    for (size_t i = 0; i < c->n; i++) {
        struct item *item = &c->items[i];

        item->text = redact_names(item->text, &secrets, &item->removed);
    }
    for (size_t i = 0; i < c->n; i++) {
        struct item *item = &c->items[i];

        item->text = redact_values(item->text, &secrets, &item->removed);
    }
    sset_destroy(&secrets);
}

/* Returns the list of what was taken and what was left out. */
static char *
make_contents(const struct collection *c)
{
    struct ds text = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < c->n; i++) {
        const struct item *item = &c->items[i];

        ds_put_format(&text, "taken: %s, %"PRIuSIZE" bytes", item->name,
                      strlen(item->text));
        if (item->removed) {
            ds_put_format(&text, ", %"PRIuSIZE" values removed",
                          item->removed);
        }
        ds_put_char(&text, '\n');
    }
    for (size_t i = 0; i < c->left_out.n; i++) {
        ds_put_format(&text, "left out: %s\n", c->left_out.names[i]);
    }
    ds_put_cstr(&text, "left out: environments of processes, databases, data "
                       "of jobs, keys: never taken\n");
    return ds_steal_cstr(&text);
}

/* Head of a file in an archive of tar (POSIX.1-1988), numbers in octal. */
struct tar_head {
    char name[100], mode[8], uid[8], gid[8], size[12], time[12], sum[8];
    char type, link[100], magic[6], version[2], rest[247];
};

/* Adds a file, whose path is FOLDER/NAME, to an archive. */
static void
write_file(gzFile gz, const char *folder, const char *name, const char *text)
{
    static const char zeros[512];
    unsigned int n = strlen(text), sum = 0;
    union {
        struct tar_head head;
        unsigned char bytes[512];
    } u = { .head = { .mode = "0000600",
                      .uid = "0000000",
                      .gid = "0000000",
                      .sum = "        ",
                      .type = '0',
                      .magic = "ustar",
                      .version = "00" } };

    snprintf(u.head.name, sizeof u.head.name, "%s/%s", folder, name);
    snprintf(u.head.size, sizeof u.head.size, "%011o", n);
    snprintf(u.head.time, sizeof u.head.time, "%011o",
             (unsigned int) time(NULL));
    for (size_t i = 0; i < sizeof u.bytes; i++) {
        sum += u.bytes[i];
    }
    snprintf(u.head.sum, sizeof u.head.sum, "%06o", sum & 0777777);
    gzwrite(gz, u.bytes, sizeof u.bytes);
    gzwrite(gz, text, n);
    gzwrite(gz, zeros, ROUND_UP(n, sizeof zeros) - n);
}

/* Writes the archive to 'fd', which it closes; its only folder is 'folder'.
 * Returns false if that fails. */
static bool
write_archive(const struct collection *c, const char *contents,
              const char *folder, int fd)
{
    static const char end[1024];
    gzFile gz = gzdopen(fd, "w");
    bool ok;

    if (!gz) {
        close(fd);
        return false;
    }
    write_file(gz, folder, "CONTENTS.txt", contents);
    for (size_t i = 0; i < c->n; i++) {
        write_file(gz, folder, c->items[i].name, c->items[i].text);
    }
    ok = gzwrite(gz, end, sizeof end) == sizeof end;
    return gzclose(gz) == Z_OK && ok;
}

static void
set_environment(const struct support_options *o)
{
    char *controller = command_controller_rundir();
    char *hours = xasprintf("%"PRId64, o->hours);
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[MAX(n, 0)] = '\0';
    setenv("SELF", self, true);
    setenv("CONTROLLER", controller, true);
    setenv("HOST", command_rundir(), true);
    setenv("HOURS", hours, true);
    setenv("ROOT", o->root, true);
    setenv("LC_ALL", "C", true);
    free(hours);
    free(controller);
}

/* Makes the archive 'file' and prints what is in it. */
static char *
make_archive(const struct support_options *o, const char *name,
             const char *file)
{
    struct collection c = { .left_out = SVEC_EMPTY_INITIALIZER };
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    char *contents, *error = NULL;

    if (fd < 0) {
        return xasprintf("%s: %s, a new file is needed", file,
                         ovs_strerror(errno));
    }
    set_environment(o);
    add_daemons(&c);
    add_commands(&c);
    redact(&c);
    contents = make_contents(&c);
    if (!write_archive(&c, contents, name, fd)) {
        error = xasprintf("%s: cannot be written", file);
        unlink(file);
    } else {
        printf("%s%s: read it before you pass it on: it has names of hosts, "
               "users and jobs\n", contents, file);
    }
    for (size_t i = 0; i < c.n; i++) {
        free(c.items[i].name);
        free(c.items[i].text);
    }
    free(c.items);
    svec_destroy(&c.left_out);
    free(contents);
    return error;
}

int
cmd_support(int argc, char *argv[])
{
    static const struct option_row rows[] = {
        { "hours", OPTION_INTEGER, OPTION_AT(struct support_options, hours),
          1, MAX_HOURS, "N", .help = "age of the oldest entry of journals" },
        { "root", OPTION_TEXT, OPTION_AT(struct support_options, root),
          .value = "DIR", .help = "take the configuration below DIR" },
        { .name = NULL },
    };
    static const struct option_table table = {
        .name = "stagecoach support", .rows = rows, .operand = "FILE",
        .max_operands = 1,
        .usage = "usage: stagecoach support [OPTION...] [FILE]\n\n"
                 "Makes an archive of the state, the configuration and the "
                 "logs of this machine,\nwithout secrets.\n",
        .footer = "FILE is a new file, stagecoach-support-HOST-TIME.tar.gz by "
                  "default.\n",
    };
    struct support_options o = { .hours = 24, .root = "" };
    int first, status = option_table_command(&table, argc, argv, &o, &first);
    char host[32] = "", at[32];
    time_t now = time(NULL);
    char *name, *file, *error;

    if (status >= 0) {
        return status;
    }
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    gethostname(host, sizeof host - 1);
    strftime(at, sizeof at, "%Y%m%d-%H%M%S", gmtime(&now));
    name = xasprintf("stagecoach-support-%s-%s", host, at);
    file = (first < argc ? xstrdup(argv[first])
            : xasprintf("%s.tar.gz", name));
    umask(077);
    error = make_archive(&o, name, file);
    free(file);
    free(name);
    return error ? command_fail("stagecoach support", error) : EXIT_OK;
}
