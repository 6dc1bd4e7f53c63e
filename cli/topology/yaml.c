/* SPDX-License-Identifier: Apache-2.0 */

/* The tree of topology.yaml, which Topograph and Slurm write, and HyperNodes
 * of Volcano.  JSON is read as YAML.  Documents are converted to cJSON: a
 * scalar is a text, and 'valueint' is the line. */

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/memory.h"
#include "cli/topology/import.h"

#define MAX_DEPTH 32
#define MAX_NODES 4000000  /* Of a file, with those of aliases. */
#define MATCH_STEPS 100000 /* Limit of one match of an expression. */

struct loader {
    struct import *im;
    yaml_document_t document;
    int n_nodes;
};

/* Reports an error at 'item'. */
#define FAIL(IM, ITEM, ...) \
    ((IM)->at.line = (ITEM)->valueint, import_fail(IM, (IM)->at, __VA_ARGS__))

static cJSON *convert(struct loader *, int index, int depth);

static void
convert_pairs(struct loader *l, const yaml_node_t *node, int depth,
              cJSON *object)
{
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top && import_ok(l->im); pair++) {
        cJSON *key = convert(l, pair->key, depth);
        cJSON *value = convert(l, pair->value, depth);
        const char *text = cJSON_GetStringValue(key);

        value->valueint = key->valueint;
        if (!text || cJSON_GetObjectItemCaseSensitive(object, text)) {
            FAIL(l->im, key, "\"%.32s\" is there twice; expected texts, once",
                 text ? text : "?");
        }
        cJSON_AddItemToObject(object, text ? text : "?", value);
        cJSON_Delete(key);
    }
}

static cJSON *
convert(struct loader *l, int index, int depth)
{
    const yaml_node_t *node = yaml_document_get_node(&l->document, index);
    bool mapping = node->type == YAML_MAPPING_NODE;
    bool list = node->type == YAML_SEQUENCE_NODE;
    const char *text =
        (mapping || list ? "" : (const char *) node->data.scalar.value);
    cJSON *item =
        (mapping ? cJSON_CreateObject()
         : list  ? cJSON_CreateArray()
         : node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
                 && (!*text || !strcmp(text, "~") || !strcasecmp(text, "null"))
             ? cJSON_CreateNull()
             : cJSON_CreateString(text));

    item->valueint = node->start_mark.line + 1;
    if (depth > MAX_DEPTH || ++l->n_nodes > MAX_NODES) {
        FAIL(l->im, item, "too large; expected %d levels and %d values",
             MAX_DEPTH, MAX_NODES);
    } else if (mapping) {
        convert_pairs(l, node, depth + 1, item);
    }
    for (const yaml_node_item_t *i = node->data.sequence.items.start;
         list && i < node->data.sequence.items.top && import_ok(l->im); i++) {
        cJSON_AddItemToArray(item, convert(l, *i, depth + 1));
    }
    return item;
}

/* Returns an array of the documents in 'text' that are not empty. */
static cJSON *
load(struct import *im, const char *text)
{
    struct loader l = { .im = im };
    cJSON *documents = cJSON_CreateArray();
    yaml_parser_t parser;
    bool more = true;

    if (!yaml_parser_initialize(&parser)) {
        abort();
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *) text,
                                 strlen(text));
    while (more && import_ok(im)) {
        cJSON *root;

        if (!yaml_parser_load(&parser, &l.document)) {
            im->at.line = parser.problem_mark.line + 1;
            import_fail(im, im->at, "%s; expected YAML or JSON",
                        parser.problem ? parser.problem : "not readable");
            break;
        }
        more = yaml_document_get_root_node(&l.document);
        root = more ? convert(&l, 1, 0) : NULL;
        if (root && !cJSON_IsNull(root)) {
            cJSON_AddItemToArray(documents, root);
        } else {
            cJSON_Delete(root);
        }
        yaml_document_delete(&l.document);
    }
    yaml_parser_delete(&parser);
    return documents;
}

/* Returns member 'key' of 'type' of an object, or NULL.  One that is missing
 * or null is an error if it is 'required'.  A null object has none. */
static const cJSON *
get(struct import *im, const cJSON *object, const char *key, int type,
    bool required)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    bool has = item && !cJSON_IsNull(item);

    if (object && (has ? (item->type & 0xff) != type : required)) {
        FAIL(im, has ? item : object, "no %s \"%s\", which is required",
             type == cJSON_String  ? "text"
             : type == cJSON_Array ? "list"
                                   : "mapping",
             key);
    }
    return has && import_ok(im) ? item : NULL;
}

static const char *
get_text(struct import *im, const cJSON *object, const char *key,
         bool required)
{
    return cJSON_GetStringValue(get(im, object, key, cJSON_String, required));
}

static const cJSON *
get_object(struct import *im, const cJSON *object, const char *key,
           bool required)
{
    return get(im, object, key, cJSON_Object, required);
}

/* Returns the first element of a list, or NULL. */
static const cJSON *
first(struct import *im, const cJSON *object, const char *key, bool required)
{
    const cJSON *list = get(im, object, key, cJSON_Array, required);

    return list ? list->child : NULL;
}

/* Returns true if 'text' is one of 'words', which are between blanks. */
static bool
is_word(const char *text, const char *words)
{
    const char *at = text && *text ? strstr(words, text) : NULL;

    while (at && (at[-1] != ' ' || at[strlen(text)] != ' ')) {
        at = strstr(at + 1, text);
    }
    return at;
}

/* Reports an error and returns NULL unless 'item', which is 'what', is an
 * object with members that are all in 'words'. */
static const cJSON *
check(struct import *im, const cJSON *item, const char *what,
      const char *words)
{
    if (!cJSON_IsObject(item)) {
        FAIL(im, item, "%s is not a mapping; expected a mapping", what);
    }
    for (const cJSON *m = item->child; words && m; m = m->next) {
        if (m->string && !is_word(m->string, words)) {
            FAIL(im, m, "\"%.32s\" is not a member of %s, but%sare", m->string,
                 what, words);
        }
    }
    return import_ok(im) ? item : NULL;
}

static void
read_tree(struct import *im, const cJSON *tree)
{
    const cJSON *item;

    check(im, tree, "a tree", " switches ");
    for (item = first(im, tree, "switches", true); item; item = item->next) {
        const char *name, *children, *nodes;
        int sw;

        check(im, item, "a switch", " switch children nodes ");
        name = get_text(im, item, "switch", true);
        children = get_text(im, item, "children", false);
        nodes = get_text(im, item, "nodes", false);
        im->at.line = item->valueint;
        sw = name ? import_switch(im, name) : -1;
        import_children(im, sw, children, false);
        import_children(im, sw, nodes, true);
    }
}

/* Returns true if the topology is the default one. */
static bool
is_default(struct import *im, const cJSON *topology)
{
    static const char yes[] = " y Y yes Yes YES true True TRUE on On ON ";

    return is_word(get_text(im, topology, "cluster_default", false), yes)
           || is_word(get_text(im, topology, "clusterDefault", false), yes);
}

void
import_topograph(struct import *im, const char *text, const char *tree)
{
    cJSON *documents = load(im, text);
    const cJSON *list = documents->child, *found = NULL, *only = NULL;
    size_t n_trees = 0;

    if (list && !cJSON_IsArray(list)) {
        FAIL(im, list, "not a list; expected a list of topologies");
    }
    for (const cJSON *t = list ? list->child : NULL; t && import_ok(im);
         t = t->next) {
        const cJSON *own = get_object(im, t, "tree", false);
        const char *name = get_text(im, t, "topology", true);

        check(im, t, "a topology",
              " topology cluster_default clusterDefault "
              "tree block flat ring torus3d ");
        n_trees += own != NULL;
        only = own ? own : only;
        if (!found && name
            && (tree ? !strcmp(name, tree) : is_default(im, t))) {
            found = own;
        }
    }
    im->at.line = 1;
    found = found || tree || n_trees > 1 ? found : only;
    if (found) {
        read_tree(im, found);
    } else {
        import_fail(im, im->at, "no tree%s%.64s; expected one, or --tree=NAME",
                    tree ? " of " : "", tree ? tree : "");
    }
    cJSON_Delete(documents);
}

/* Returns true if 'labels' fulfil 'e', of "matchExpressions". */
static bool
fulfils(struct import *im, const cJSON *e, const cJSON *labels)
{
    const char *key = get_text(im, e, "key", true);
    const char *operator= get_text(im, e, "operator", true);
    const char *label = key ? get_text(im, labels, key, false) : NULL;
    const cJSON *value = first(im, e, "values", false);

    if (!is_word(operator, " In NotIn Exists DoesNotExist ")) {
        FAIL(im, e, "no operator In, NotIn, Exists or DoesNotExist");
        return false;
    } else if (operator[strlen(operator) - 1] != 'n') {
        return !label == (*operator== 'D');
    }
    while (value
           && !(label && cJSON_IsString(value)
                && !strcmp(label, value->valuestring))) {
        value = value->next;
    }
    return !value == (*operator== 'N');
}

/* Returns true if 'labels' fulfil all of 'selector', a "labelMatch". */
static bool
has_labels(struct import *im, const cJSON *selector, const cJSON *labels)
{
    const cJSON *wanted = get_object(im, selector, "matchLabels", false);
    const cJSON *e = first(im, selector, "matchExpressions", false);
    bool has = true;

    for (wanted = wanted ? wanted->child : NULL; wanted;
         wanted = wanted->next) {
        const char *label = get_text(im, labels, wanted->string, false);

        has &= label && cJSON_IsString(wanted)
               && !strcmp(label, wanted->valuestring);
    }
    for (; e; e = e->next) {
        has &= fulfils(im, e, labels);
    }
    return has;
}

/* Returns the expression of a "regexMatch", NULL after an error. */
static pcre2_code *
compile(struct import *im, const cJSON *regex)
{
    const char *text = get_text(im, regex, "pattern", true);
    char *pattern = message("(*LIMIT_MATCH=%d)%s", MATCH_STEPS, text);
    PCRE2_SIZE at;
    int error;
    pcre2_code *code = pcre2_compile(
        (PCRE2_SPTR) pattern, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);

    if (!code) {
        FAIL(im, regex, "\"%.64s\" is no expression; expected ^n[0-9]+$",
             text);
    }
    free(pattern);
    return code;
}

static bool
fits(const pcre2_code *code, const char *name)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    int n =
        pcre2_match(code, (PCRE2_SPTR) name, strlen(name), 0, 0, data, NULL);

    pcre2_match_data_free(data);
    return n >= 0;
}

/* What the members of HyperNodes are selected from: the switches, and the
 * nodes of the cluster. */
struct cluster {
    struct import *im;
    const cJSON *nodes; /* A List of Kubernetes, or NULL. */
    bool complete;      /* All switches have been added. */
};

/* Adds the nodes that fit 'code', or that have the labels of 'selector', if
 * 'code' is null. */
static void
add_nodes(const struct cluster *c, const pcre2_code *code,
          const cJSON *selector, int sw)
{
    struct import *im = c->im;
    const cJSON *node;

    if (!c->nodes) {
        import_fail(im, im->at,
                    "no nodes of the cluster; expected --nodes=FILE");
    }
    for (node = first(im, c->nodes, "items", true); node; node = node->next) {
        const cJSON *data = get_object(im, node, "metadata", true);
        const cJSON *labels = get_object(im, data, "labels", false);
        const char *name = get_text(im, data, "name", true);

        if (name
            && (code ? fits(code, name) : has_labels(im, selector, labels))) {
            import_child(im, sw, name, true);
        }
    }
}

/* Adds what the selector of a member selects. */
static void
read_selector(const struct cluster *c, const cJSON *selector, int sw,
              bool is_host)
{
    struct import *im = c->im;
    const cJSON *exact = get_object(im, selector, "exactMatch", false);
    const cJSON *regex = get_object(im, selector, "regexMatch", false);
    const cJSON *labels = get_object(im, selector, "labelMatch", false);
    const char *name = get_text(im, exact, "name", true);
    pcre2_code *code = regex ? compile(im, regex) : NULL;

    im->at.line = selector->valueint;
    if (!!exact + !!regex + !!labels != 1 || (labels && !is_host)) {
        import_fail(im, im->at, "expected one of exactMatch, regexMatch%s",
                    is_host ? ", labelMatch" : "");
    } else if (name) {
        import_child(im, sw, name, is_host);
    } else if (is_host && import_ok(im)) {
        add_nodes(c, code, labels, sw);
    }
    for (size_t i = 0; code && !is_host && i < im->n; i++) {
        if (!im->nodes[i].is_host && fits(code, im->nodes[i].name)) {
            import_child(im, sw, im->nodes[i].name, false);
        }
    }
    pcre2_code_free(code);
}

/* Adds a HyperNode or, if the tree is complete, its members. */
static void
read_hypernode(const struct cluster *c, const cJSON *node)
{
    struct import *im = c->im;
    const cJSON *metadata = get_object(im, node, "metadata", true);
    const cJSON *spec = get_object(im, node, "spec", true);
    const char *name = get_text(im, metadata, "name", true);
    const cJSON *m = first(im, spec, "members", false);

    if (name && !c->complete) {
        im->at.line = metadata->valueint;
        import_switch(im, name);
        return;
    }
    for (; m && import_ok(im); m = m->next) {
        const cJSON *member = check(im, m, "a member", NULL);
        const cJSON *selector = get_object(im, member, "selector", true);
        const char *type = get_text(im, member, "type", true);

        if (!is_word(type, " Node HyperNode ")) {
            FAIL(im, m, "no type Node or HyperNode; expected one of them");
        } else if (selector) {
            read_selector(c, selector, import_find(im, name, false),
                          !strcmp(type, "Node"));
        }
    }
}

/* Reads a HyperNode, or a list of them, where 'object' may be an element.
 * Objects of Kubernetes may have other members, which are ignored. */
static void
read_object(const struct cluster *c, const cJSON *object, bool in_list)
{
    static const char api[] = "topology.volcano.sh/";
    const char *kind, *version;
    const cJSON *item;

    check(c->im, object, "an object", NULL);
    /* The API server leaves these two out in elements of a list. */
    kind = get_text(c->im, object, "kind", !in_list);
    version = get_text(c->im, object, "apiVersion", kind);
    if (in_list && !kind && import_ok(c->im)) {
        read_hypernode(c, object);
    } else if (version && !strcmp(kind, "HyperNode")
               && !strncmp(version, api, strlen(api))) {
        read_hypernode(c, object);
    } else if (!in_list && is_word(kind, " List HyperNodeList ")) {
        item = first(c->im, object, "items", true);
        for (; item; item = item->next) {
            read_object(c, item, true);
        }
    } else if (version) {
        FAIL(c->im, object,
             "kind \"%.32s\" of \"%.64s\"; expected HyperNode of %s", kind,
             version, api);
    }
}

void
import_volcano(struct import *im, const char *text, const char *nodes)
{
    const struct import_place at = im->at;
    cJSON *documents = load(im, text), *list;
    struct cluster c = { .im = im };

    import_enter(im, "--nodes");
    list = load(im, nodes ? nodes : "");
    c.nodes = list->child;
    im->at = at;
    for (int pass = 0; pass < 2; pass++) {
        c.complete = pass;
        for (const cJSON *d = documents->child; d; d = d->next) {
            read_object(&c, d, false);
        }
    }
    cJSON_Delete(list);
    cJSON_Delete(documents);
}
