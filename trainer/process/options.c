/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/options-private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define IMAGE_CLASSES 10        /* Of images, generated or not. */

static char *
set_number(const struct row *row, const char *value, void *to)
{
    bool integer = row->kind == INTEGER;
    char *end;
    double x;

    errno = 0;
    x = strtod(value, &end);
    if (end == value || *end || errno || !isfinite(x) || x < row->min
        || x > row->max || (integer && x != floor(x))) {
        return message("--%s: \"%s\" is not %s from %.10g to %.10g",
                       row->name, value, integer ? "an integer" : "a number",
                       row->min, row->max);
    }
    if (integer) {
        *(int64_t *) to = x;
    } else {
        *(double *) to = x;
    }
    return NULL;
}

/* The words are between bars in 'row->value'. */
static char *
set_word(const struct row *row, const char *value, const char **to)
{
    size_t length = strlen(value);

    for (const char *word = row->value; ; word += strcspn(word, "|") + 1) {
        if (strcspn(word, "|") == length && !memcmp(word, value, length)) {
            *to = value;
            return NULL;
        }
        if (!strchr(word, '|')) {
            return message("--%s: \"%s\" is not one of %s", row->name, value,
                           row->value);
        }
    }
}

/* Image sizes are small enough for no product of them to overflow. */
static char *
set_image(const struct row *row, const char *value, struct image *image)
{
    int end = -1;

    if (sscanf(value, "%4dx%4dx%4d%n", &image->height, &image->width,
               &image->channels, &end) != 3 || end < 0 || value[end]
        || image->height < 8 || image->height > 256 || image->width < 8
        || image->width > 256 || image->channels < 1
        || image->channels > 16) {
        return message("--%s: \"%s\" is not %s, up to 256x256x16", row->name,
                       value, row->value);
    }
    return NULL;
}

/* Says before 'why', which it frees, what it is about. */
static char *
named(const struct row *row, char *why)
{
    char *error = message("--%s: %s", row->name, why);

    free(why);
    return error;
}

static char *
set_value(const struct row *row, const char *value, struct options *o)
{
    void *to = (char *) o + row->offset;
    char *error = NULL;

    switch (row->kind) {
    case STRING:
        if (!*value) {
            return message("--%s: empty", row->name);
        }
        *(const char **) to = value;
        break;
    case WORD:
        return set_word(row, value, to);
    case INTEGER:
    case REAL:
        return set_number(row, value, to);
    case SHAPE:
        error = shape_from_string(value, to);
        break;
    case IMAGE:
        return set_image(row, value, to);
    case SYNC:
        error = sync_spec_parse(value, to);
        break;
    case SERVER:
        if (o->n_servers >= OPTIONS_MAX_SERVERS) {
            return message("--%s: more than %d", row->name,
                           OPTIONS_MAX_SERVERS);
        }
        o->servers[o->n_servers++] = value;
        break;
    case FLAG:
        *(bool *) to = true;
        break;
    }
    return error ? named(row, error) : NULL;
}

static bool
is_model(const struct options *o, const char *name)
{
    return !strcmp(o->model, name);
}

int
options_n_inputs(const struct options *o)
{
    return is_model(o, "mlp") ? shape_inputs(&o->shape)
           : is_model(o, "linear") ? o->features
           : o->image.height * o->image.width * o->image.channels;
}

int
options_n_classes(const struct options *o)
{
    return is_model(o, "mlp") ? shape_classes(&o->shape)
           : is_model(o, "linear") ? 2 : IMAGE_CLASSES;
}

static const struct {
    const char *prefix;
    enum data_kind kind;
} sources[] = {
    { "mnist:", DATA_MNIST },
    { "cifar10:", DATA_CIFAR },
    { "libsvm:", DATA_LIBSVM },
    { "", DATA_MNIST },
};

/* What '--data' means, and the images that it has. */
static char *
check_data(struct options *o)
{
    size_t i = 0;

    if (!strcmp(o->data, "generated")) {
        o->data_kind = DATA_GENERATED;
        return NULL;
    }
    while (strncmp(o->data, sources[i].prefix, strlen(sources[i].prefix))) {
        i++;
    }
    o->data_kind = sources[i].kind;
    o->data_path = o->data + strlen(sources[i].prefix);
    if ((o->data_kind == DATA_LIBSVM) != is_model(o, "linear")) {
        return message("--data: \"%s\" is not for the model \"%s\"",
                       o->data, o->model);
    }
    o->image = o->data_kind == DATA_MNIST ? (struct image) { 28, 28, 1 }
                                          : (struct image) { 32, 32, 3 };
    return NULL;
}

static char *
check_node(const struct options *o)
{
    if (!o->nodes || (!o->port && !strchr(o->nodes, ':'))) {
        return message("--nodes, --port: all nodes and where they listen are "
                       "needed");
    }
    if (strcmp(o->store, "manual")) {
        return NULL;
    }
    if (strcmp(o->task, "factorise") || o->n_threads > 1) {
        return message("--store: manual is for factorise, one thread a node");
    }
    return o->epoch_limit > 0
           ? message("--epoch-limit: manual goes through whole epochs") : NULL;
}

static char *
check_server(const struct options *o)
{
    char *error = sync_spec_check(&o->sync, o->n_workers);

    if (error) {
        return named(options_find_row("sync", 4), error);
    }
    if (o->central && (o->checkpoint || o->resume || o->control_port
                       || o->group_servers_elsewhere)) {
        return message("--central: checkpoints, the control port and group "
                       "servers are options of the server at \"%s\"",
                       o->central);
    }
    if (o->sync.class == &sync_groups && !o->group_servers_elsewhere
        && (!strcmp(o->address, "0.0.0.0") || !strcmp(o->address, "::"))) {
        return message("--address: \"%s\" is not where workers reach group "
                       "servers", o->address);
    }
    return o->resume && !o->checkpoint
           ? message("--resume: --checkpoint says from where") : NULL;
}

static char *
check_together(struct options *o)
{
    if (o->role == ROLE_SERVER) {
        return check_server(o);
    }
    if (o->role == ROLE_WORKER && !o->n_servers) {
        return message("--server: at least one is needed");
    }
    if (o->role == ROLE_PEER && (!o->peers || (!o->port
                                 && !strchr(o->peers, ':')))) {
        return message("--peers, --port: all peers and where they listen "
                       "are needed");
    }
    if (o->role == ROLE_NODE) {
        return check_node(o);
    }
    if (o->role != ROLE_PEER && o->rank >= o->n_workers) {
        return message("--rank: %lld is not 0 to %lld", (long long) o->rank,
                       (long long) o->n_workers - 1);
    }
    if ((is_model(o, "mlp") && o->n_servers > shape_n_parameters(&o->shape))
        || (is_model(o, "linear") && o->n_servers > o->features + 1)) {
        return message("--server: more servers than parameters");
    }
    return check_data(o);
}

static char *
parse_role(const char *name, struct options *o)
{
    o->role = options_find_role(name);
    return o->role ? NULL
           : message("\"%s\" is not one of \"server\", \"worker\", "
                     "\"local\", \"peer\", \"node\"", name);
}

/* Takes the option at 'argv[*i]' and moves '*i' behind its value. */
static char *
parse_option(int argc, char *argv[], int *i, struct options *o)
{
    const char *arg = argv[*i] + 2;
    const char *equals = strchr(arg, '=');
    size_t length = equals ? equals - arg : strlen(arg);
    const struct row *row = options_find_row(arg, length);

    if (strncmp(argv[*i], "--", 2) || !row) {
        return message("\"%s\" is not an option, --help lists them",
                       argv[*i]);
    }
    if (!(row->roles & o->role)) {
        return message("--%s: not an option of \"%s\"", row->name, argv[0]);
    }
    if (row->kind == FLAG) {
        return equals ? message("--%s: has no value", row->name)
                      : set_value(row, "", o);
    }
    if (!equals && *i + 1 >= argc) {
        return message("--%s: needs a value", row->name);
    }
    return set_value(row, equals ? equals + 1 : argv[++*i], o);
}

char *
options_parse(int argc, char *argv[], struct options *o, bool *help)
{
    char *error = NULL;

    memset(o, 0, sizeof *o);
    *help = false;
    for (int i = 0; i < argc; i++) {
        *help = *help || !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");
    }
    if (*help) {
        return NULL;
    }
    if (argc < 1) {
        return message("\"server\", \"worker\", \"local\", \"peer\" or "
                       "\"node\" is needed, --help says more");
    }
    error = parse_role(argv[0], o);
    for (const struct row *row = options_rows; row->name && !error; row++) {
        if (row->deflt) {
            error = set_value(row, row->deflt, o);
        }
    }
    for (int i = 1; i < argc && !error; i++) {
        error = parse_option(argc, argv, &i, o);
    }
    return error ? error : check_together(o);
}
