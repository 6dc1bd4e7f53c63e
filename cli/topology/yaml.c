/* SPDX-License-Identifier: Apache-2.0 */

/* The tree of topology.yaml, which Topograph and Slurm write, and HyperNodes
 * of Volcano.  JSON is read as YAML. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/memory.h"
#include "cli/topology/import.h"

/* A document that is being read. */
struct reader {
    struct import *im;
    yaml_document_t document;
};

static int
line_of(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

/* Returns the text of a scalar, NULL for another node. */
static const char *
scalar(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE
           ? (const char *) node->data.scalar.value : NULL;
}

static yaml_node_t *
node_at(struct reader *r, int index)
{
    return yaml_document_get_node(&r->document, index);
}

/* Returns the value of 'key' in a mapping, or NULL. */
static yaml_node_t *
find(struct reader *r, const yaml_node_t *mapping, const char *key)
{
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const char *text = scalar(node_at(r, pair->key));

        if (text && !strcmp(text, key)) {
            return node_at(r, pair->value);
        }
    }
    return NULL;
}

/* Reports an error and returns false unless 'node', which is 'what', is a
 * mapping.  Its keys must be all different and, unless 'allowed' is NULL, in
 * 'allowed'. */
static bool
check_mapping(struct reader *r, const yaml_node_t *node, const char *what,
              const char *const allowed[])
{
    if (node->type != YAML_MAPPING_NODE) {
        import_fail(r->im, line_of(node), "%s is not a mapping, a mapping is "
                    "allowed", what);
        return false;
    }
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(r, pair->key);
        const char *text = scalar(key);
        bool known = text && !allowed;

        for (size_t i = 0; text && allowed && allowed[i]; i++) {
            known |= !strcmp(text, allowed[i]);
        }
        if (!known) {
            import_fail(r->im, line_of(key), "\"%.32s\" is not a member of "
                        "%s, a member of its format is allowed",
                        text ? text : "?", what);
            return false;
        }
        if (find(r, node, text) != node_at(r, pair->value)) {
            import_fail(r->im, line_of(key), "\"%.32s\" is there twice, once "
                        "is allowed", text);
            return false;
        }
    }
    return true;
}

/* Returns the text of required scalar 'key', or NULL after an error. */
static const char *
get_text(struct reader *r, const yaml_node_t *mapping, const char *key)
{
    const yaml_node_t *node = find(r, mapping, key);
    const char *text = scalar(node);

    if (!text) {
        import_fail(r->im, line_of(node ? node : mapping), "\"%s\" is %s, a "
                    "text is required", key, node ? "not a text" : "missing");
    }
    return text;
}

/* Returns required member 'key', a node of type 'type' that is called 'noun',
 * or NULL after an error. */
static yaml_node_t *
get_node(struct reader *r, const yaml_node_t *mapping, const char *key,
         yaml_node_type_t type, const char *noun)
{
    yaml_node_t *node = find(r, mapping, key);

    if (!node || node->type != type) {
        import_fail(r->im, line_of(node ? node : mapping), "\"%s\" is %s, a "
                    "%s is required", key, node ? "of another type"
                    : "missing", noun);
        return NULL;
    }
    return node;
}

static size_t
n_items(const yaml_node_t *sequence)
{
    return sequence->data.sequence.items.top
           - sequence->data.sequence.items.start;
}

static yaml_node_t *
item(struct reader *r, const yaml_node_t *sequence, size_t i)
{
    return node_at(r, sequence->data.sequence.items.start[i]);
}

/* Calls 'read' for the root of each document of 'text' that is not empty,
 * until there is an error. */
static void
read_documents(struct import *im, const char *text,
               void (*read)(struct reader *, const yaml_node_t *, void *aux),
               void *aux)
{
    struct reader r = { .im = im };
    yaml_parser_t parser;
    bool more = true;

    if (!yaml_parser_initialize(&parser)) {
        abort();
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *) text,
                                 strlen(text));
    while (more && import_ok(im)) {
        yaml_node_t *root;

        if (!yaml_parser_load(&parser, &r.document)) {
            import_fail(im, parser.problem_mark.line + 1, "%s, YAML or JSON "
                        "is allowed", parser.problem ? parser.problem
                        : "not readable");
            break;
        }
        root = yaml_document_get_root_node(&r.document);
        if (root && (!scalar(root) || *scalar(root))) {
            read(&r, root, aux);
        }
        more = root;
        yaml_document_delete(&r.document);
    }
    yaml_parser_delete(&parser);
}

/* The topology to read, of several in a file. */
struct wanted {
    const char *name;           /* NULL for the only tree or the default. */
    bool found;
};

static void
read_switch(struct reader *r, const yaml_node_t *node)
{
    static const char *const members[] = { "switch", "children", "nodes",
                                           NULL };
    const char *name;
    int line = line_of(node), sw;

    if (!check_mapping(r, node, "a switch", members)) {
        return;
    }
    name = get_text(r, node, "switch");
    sw = name ? import_switch(r->im, name, line) : -1;
    if (sw >= 0 && find(r, node, "children")) {
        const char *list = get_text(r, node, "children");

        if (list) {
            import_children(r->im, sw, list, false, line);
        }
    }
    if (sw >= 0 && find(r, node, "nodes")) {
        const char *list = get_text(r, node, "nodes");

        if (list) {
            import_children(r->im, sw, list, true, line);
        }
    }
}

static void
read_tree(struct reader *r, const yaml_node_t *tree)
{
    static const char *const members[] = { "switches", NULL };
    yaml_node_t *switches;

    if (!check_mapping(r, tree, "a tree", members)) {
        return;
    }
    switches = get_node(r, tree, "switches", YAML_SEQUENCE_NODE, "list");
    for (size_t i = 0; switches && i < n_items(switches)
         && import_ok(r->im); i++) {
        read_switch(r, item(r, switches, i));
    }
}

/* Returns true if the topology is the one to read: by its name, otherwise the
 * default of the cluster, otherwise the only tree. */
static bool
is_wanted(struct reader *r, const yaml_node_t *topology,
          const struct wanted *wanted, size_t n_trees)
{
    const char *name = get_text(r, topology, "topology");
    const yaml_node_t *deflt = find(r, topology, "cluster_default");

    if (!deflt) {
        deflt = find(r, topology, "clusterDefault");
    }
    return name && (wanted->name ? !strcmp(name, wanted->name)
                    : find(r, topology, "tree")
                      && (n_trees == 1
                          || (scalar(deflt)
                              && !strcmp(scalar(deflt), "true"))));
}

static void
read_topologies(struct reader *r, const yaml_node_t *root, void *wanted_)
{
    static const char *const members[] = {
        "topology", "cluster_default", "clusterDefault", "tree", "block",
        "flat", "ring", "torus3d", NULL,
    };
    struct wanted *wanted = wanted_;
    size_t n_trees = 0;

    if (root->type != YAML_SEQUENCE_NODE) {
        import_fail(r->im, line_of(root), "not a list, a list of topologies "
                    "is allowed");
        return;
    }
    for (size_t i = 0; i < n_items(root); i++) {
        const yaml_node_t *topology = item(r, root, i);

        if (!check_mapping(r, topology, "a topology", members)) {
            return;
        }
        n_trees += !!find(r, topology, "tree");
    }
    for (size_t i = 0; i < n_items(root) && import_ok(r->im); i++) {
        const yaml_node_t *topology = item(r, root, i);
        yaml_node_t *tree;

        if (is_wanted(r, topology, wanted, n_trees) && !wanted->found) {
            wanted->found = true;
            tree = get_node(r, topology, "tree", YAML_MAPPING_NODE, "mapping");
            if (tree) {
                read_tree(r, tree);
            }
        }
    }
}

void
import_topograph(struct import *im, const char *text, const char *tree)
{
    struct wanted wanted = { .name = tree };

    read_documents(im, text, read_topologies, &wanted);
    if (!wanted.found && tree) {
        import_fail(im, 1, "no topology \"%.64s\", the name of one in the "
                    "file is allowed", tree);
    } else if (!wanted.found) {
        import_fail(im, 1, "no tree, or several without a default one, a "
                    "single tree or --tree=NAME is allowed");
    }
}

/* Reads one element of "members". */
static void
read_member(struct reader *r, const yaml_node_t *member, int sw)
{
    const char *type, *name;
    yaml_node_t *selector, *exact;
    bool is_host;

    if (!check_mapping(r, member, "a member", NULL)
        || !(type = get_text(r, member, "type"))) {
        return;
    }
    is_host = !strcmp(type, "Node");
    if (!is_host && strcmp(type, "HyperNode")) {
        import_fail(r->im, line_of(member), "type \"%.32s\", Node and "
                    "HyperNode are allowed", type);
        return;
    }
    selector = get_node(r, member, "selector", YAML_MAPPING_NODE, "mapping");
    if (!selector) {
        return;
    }
    if (!find(r, selector, "exactMatch")) {
        import_fail(r->im, line_of(selector), "the selector has no "
                    "\"exactMatch\", only names are allowed because the nodes "
                    "of the cluster are not in the file");
        return;
    }
    exact = get_node(r, selector, "exactMatch", YAML_MAPPING_NODE, "mapping");
    name = exact ? get_text(r, exact, "name") : NULL;
    if (name) {
        import_child(r->im, sw, name, is_host, line_of(exact));
    }
}

static void
read_hypernode(struct reader *r, const yaml_node_t *node)
{
    yaml_node_t *metadata, *spec, *members;
    const char *name;
    int sw;

    metadata = get_node(r, node, "metadata", YAML_MAPPING_NODE, "mapping");
    spec = get_node(r, node, "spec", YAML_MAPPING_NODE, "mapping");
    name = metadata ? get_text(r, metadata, "name") : NULL;
    if (!name || !spec) {
        return;
    }
    sw = import_switch(r->im, name, line_of(metadata));
    if (!find(r, spec, "members")) {
        return;
    }
    members = get_node(r, spec, "members", YAML_SEQUENCE_NODE, "list");
    for (size_t i = 0; members && i < n_items(members)
         && import_ok(r->im); i++) {
        read_member(r, item(r, members, i), sw);
    }
}

/* Reads a HyperNode or a list of them.  Objects of Kubernetes may have other
 * members, which are ignored. */
static void
read_object(struct reader *r, const yaml_node_t *object, void *aux)
{
    static const char api[] = "topology.volcano.sh/";
    bool *in_list = aux, yes = true;
    const char *kind, *version;
    yaml_node_t *items;

    if (!check_mapping(r, object, "an object", NULL)) {
        return;
    }
    /* The API server leaves these two out in elements of a list. */
    if (*in_list && !find(r, object, "kind")) {
        read_hypernode(r, object);
        return;
    }
    kind = get_text(r, object, "kind");
    version = kind ? get_text(r, object, "apiVersion") : NULL;
    if (!version) {
        return;
    }
    if (!strcmp(kind, "HyperNode") && !strncmp(version, api, sizeof api - 1)) {
        read_hypernode(r, object);
    } else if (!*in_list && (!strcmp(kind, "List")
                            || !strcmp(kind, "HyperNodeList"))) {
        items = get_node(r, object, "items", YAML_SEQUENCE_NODE, "list");
        for (size_t i = 0; items && i < n_items(items)
             && import_ok(r->im); i++) {
            read_object(r, item(r, items, i), &yes);
        }
    } else {
        import_fail(r->im, line_of(object), "kind \"%.32s\" of \"%.64s\", "
                    "HyperNode of %s and a list of them are allowed", kind,
                    version, api);
    }
}

void
import_volcano(struct import *im, const char *text)
{
    bool in_list = false;

    read_documents(im, text, read_object, &in_list);
}
