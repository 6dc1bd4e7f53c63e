/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach support: makes an archive for a request for help.
 *
 * All texts are collected in memory and lose their secrets there (redact.h)
 * before any is written, so that no secret is ever on the disk.  Environments
 * of processes and files of keys are never read. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/operator/redact.h"
#include "controller/ovsdb/rpc-call.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/vlog.h"
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
    const struct support_options *options;
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

static char *
rundir_path(bool of_controller, const char *name)
{
    char *dir = (of_controller ? command_controller_rundir()
                 : xstrdup(command_rundir()));
    char *path = xasprintf("%s/%s", dir, name);

    free(dir);
    return path;
}

/* Adds the replies to "PROGRAM/NAME" for each of 'names', none if the program
 * cannot be reached. */
static void
add_replies(struct collection *c, const char *socket, const char *program,
            const char *const *names)
{
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
    char *controller_socket = rundir_path(true, "controller.ctl");
    char *agent_socket = rundir_path(false, "agent.ctl");

    add_replies(c, controller_socket, "controller", views);
    add_replies(c, agent_socket, "agent", agent);
    free(agent_socket);
    free(controller_socket);
}

/* Adds the metrics of the controller, from its REST socket. */
static void
add_metrics(struct collection *c)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost"
                                  "\r\nConnection: close\r\n\r\n";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct timeval timeout = { .tv_sec = TIMEOUT_MS / 1000 };
    char *path = rundir_path(true, "rest.sock");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *reply = NULL, *body = NULL;

    ovs_strzcpy(address.sun_path, path, sizeof address.sun_path);
    if (fd >= 0
        && !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout)
        && !connect(fd, (struct sockaddr *) &address, sizeof address)
        && send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0) {
        reply = read_all(fd);
        body = strstr(reply, "\r\n\r\n");
    }
    if (body) {
        add(c, "controller/metrics.txt", xstrdup(body + 4));
    } else {
        leave_out(c, path, xstrdup("no metrics"));
    }
    if (fd >= 0) {
        close(fd);
    }
    free(reply);
    free(path);
}

/* Commands.  In them, $SELF is this program, and $CONTROLLER and $HOST are the
 * directories of sockets. */

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
    { "databases.txt", "\"$SELF\" controller status" },
    { "schemas.txt",
      "for d in intent hosts; do D=Stagecoach_$(echo $d | sed "
      "'s/^i/I/; s/^h/H/'); echo $D $(ovsdb-client -t 3 get-schema-version "
      "\"unix:$CONTROLLER/$d.sock\" $D); done" },
    { "shim.txt", "stagecoach-shim --show \"$HOST/shim.sock\"" },
    { "units.txt", "systemctl --no-pager -l --lines=0 status 'stagecoach*'; "
      "systemctl --no-pager cat 'stagecoach*'" },
    { "journal.txt",
      "journalctl --no-pager -o short-iso -u 'stagecoach*' "
      "--since \"$HOURS hours ago\"" },
    { "kernel.txt", "uname -a; cat /proc/cmdline; free -m; lscpu; "
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

/* Files. */

/* Adds the end of a file. */
static void
add_file(struct collection *c, const char *folder, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        leave_out(c, path, xstrdup(fd < 0 ? ovs_strerror(errno)
                                   : "not a regular file"));
    } else {
        size_t n = strlen(c->options->root);
        char *name = xasprintf("%s%s", folder,
                               path + (strncmp(path, c->options->root, n)
                                       ? 0 : n));

        if (st.st_size > MAX_TEXT) {
            lseek(fd, -(off_t) MAX_TEXT, SEEK_END);
        }
        add(c, name, read_all(fd));
        free(name);
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Adds the files of 'pattern' to 'folder', or leaves them out for 'reason'
 * unless it is null. */
static void
add_files(struct collection *c, const char *folder, const char *pattern,
          const char *reason)
{
    glob_t found;

    if (!glob(pattern, 0, NULL, &found)) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct stat st;

            if (!stat(found.gl_pathv[i], &st) && S_ISDIR(st.st_mode)) {
                continue;
            } else if (reason) {
                leave_out(c, found.gl_pathv[i], xstrdup(reason));
            } else {
                add_file(c, folder, found.gl_pathv[i]);
            }
        }
    }
    globfree(&found);
}

static void
add_configuration(struct collection *c)
{
    static const struct {
        const char *pattern, *reason;
    } files[] = {
        { "/etc/default/stagecoach*", NULL },
        { "/etc/stagecoach/*.json", NULL },
        { "/etc/stagecoach/policies/*.json", NULL },
        { "/etc/stagecoach/*.key", "a key" },
        { "/etc/stagecoach/tls/*", "a key or certificate" },
        { "/etc/stagecoach/pki/*", "a key or certificate" },
        { "/etc/stagecoach/pki/*/*/*", "a key or certificate" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char *pattern = xasprintf("%s%s", c->options->root, files[i].pattern);

        add_files(c, "config", pattern, files[i].reason);
        free(pattern);
    }
}

/* Adds the logs of daemons that no service manager runs. */
static void
add_logs(struct collection *c)
{
    for (int of_controller = 0; of_controller < 2; of_controller++) {
        char *pattern = rundir_path(of_controller, "*.log");

        add_files(c, "logs", pattern, NULL);
        free(pattern);
    }
}

/* The archive. */

static void
redact(struct collection *c)
{
    struct redactor r;

    redactor_init(&r);
    for (size_t i = 0; i < c->n; i++) {
        struct item *item = &c->items[i];

        item->text = redact_names(&r, item->text, &item->removed);
    }
    for (size_t i = 0; i < c->n; i++) {
        struct item *item = &c->items[i];

        item->text = redact_values(&r, item->text, &item->removed);
    }
    redactor_uninit(&r);
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
                "of jobs: never taken\n");
    return ds_steal_cstr(&text);
}

/* Writes 'text' to 'name' below 'dir'.  Returns 0 or a positive errno. */
static int
write_item(const char *dir, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", dir, name);
    FILE *stream;
    int error = 0;

    for (char *slash = path + strlen(dir) + 1;
         (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    stream = fopen(path, "we");
    if (!stream || fputs(text, stream) < 0) {
        error = errno;
    }
    if (stream && fclose(stream)) {
        error = errno;
    }
    free(path);
    return error;
}

/* Runs tar on folder 'name' of 'dir', with 'fd' as its output.  Returns NULL
 * or a message. */
static char *
run_tar(const char *dir, const char *name, int fd)
{
    pid_t pid = fork();
    int status;

    if (!pid) {
        dup2(fd, STDOUT_FILENO);
        execlp("tar", "tar", "-C", dir, "--owner=0", "--group=0", "-czf", "-",
               name, NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        return xasprintf("tar: %s", ovs_strerror(errno));
    }
    return status ? xstrdup("tar: failed, tar and gzip are needed") : NULL;
}

/* Removes 'dir', which this program has made. */
static void
remove_folder(const char *dir)
{
    pid_t pid = fork();

    if (!pid) {
        execlp("rm", "rm", "-rf", "--", dir, NULL);
        _exit(127);
    }
    if (pid > 0) {
        waitpid(pid, NULL, 0);
    }
}

/* Writes the archive to 'fd'; its only folder is 'name'.  Returns NULL or a
 * message. */
static char *
write_archive(const struct collection *c, const char *contents,
              const char *name, int fd)
{
    char *dir = xasprintf("%s/stagecoach-support-XXXXXX",
                          command_env("TMPDIR", "/tmp"));
    char *folder, *error;
    int errnum;

    if (!mkdtemp(dir)) {
        error = xasprintf("%s: %s", dir, ovs_strerror(errno));
        free(dir);
        return error;
    }
    folder = xasprintf("%s/%s", dir, name);
    errnum = mkdir(folder, 0700) ? errno
             : write_item(folder, "CONTENTS.txt", contents);
    for (size_t i = 0; !errnum && i < c->n; i++) {
        errnum = write_item(folder, c->items[i].name, c->items[i].text);
    }
    error = (errnum ? xasprintf("%s: %s", folder, ovs_strerror(errnum))
             : run_tar(dir, name, fd));
    remove_folder(dir);
    free(folder);
    free(dir);
    return error;
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
    setenv("LC_ALL", "C", true);
    free(hours);
    free(controller);
}

/* Makes the archive 'file' and prints what is in it. */
static char *
make_archive(const struct support_options *o, const char *name,
             const char *file)
{
    struct collection c = { .options = o, .left_out = SVEC_EMPTY_INITIALIZER };
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    char *contents, *error;

    if (fd < 0) {
        return xasprintf("%s: %s, a new file is needed", file,
                         ovs_strerror(errno));
    }
    set_environment(o);
    add_daemons(&c);
    add_metrics(&c);
    add_commands(&c);
    add_configuration(&c);
    add_logs(&c);
    redact(&c);
    contents = make_contents(&c);
    error = write_archive(&c, contents, name, fd);
    if (close(fd) && !error) {
        error = xasprintf("%s: %s", file, ovs_strerror(errno));
    }
    if (error) {
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
    char host[64] = "", at[32];
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
