/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/list-watch.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define TIMEOUT_MS 5000L    /* Of a request for the list. */
#define WATCH_S 240         /* Of a watch, then another one follows. */
#define MAX_SIZE (64 << 20) /* Of a list, bytes. */

struct list_watch {
    const struct api_source *source;
    CURLM *multi;
    CURL *watch;               /* Request in 'multi', or NULL. */
    char why[CURL_ERROR_SIZE]; /* Error of the running request. */
    char *text;                /* What has come of the list, or of an event. */
    size_t size;
    json_t *list;     /* With the array "items", or NULL. */
    char version[64]; /* Of the list, empty without one. */
    bool lost;        /* An event shows that there are others that
                       * have not come. */
    bool begun;       /* The list has been read, or was tried. */
};

struct list_watch *
list_watch_create(const struct api_source *source)
{
    struct list_watch *w = allocate(1, sizeof *w);

    curl_global_init(CURL_GLOBAL_DEFAULT);
    w->source = source;
    w->multi = must(curl_multi_init());
    return w;
}

static void
end_watch(struct list_watch *w)
{
    if (w->watch) {
        curl_multi_remove_handle(w->multi, w->watch);
        curl_easy_cleanup(w->watch);
        w->watch = NULL;
    }
    free(w->text);
    w->text = NULL;
    w->size = 0;
}

void
list_watch_destroy(struct list_watch *w)
{
    end_watch(w);
    curl_multi_cleanup(w->multi);
    json_decref(w->list);
    free(w);
    curl_global_cleanup();
}

const json_t *
list_watch_list(const struct list_watch *w)
{
    return w->list;
}

/* Requests. */

static size_t
take(char *data, size_t one, size_t n, void *w_)
{
    struct list_watch *w = w_;
    char *larger =
        (w->size + n <= MAX_SIZE ? realloc(w->text, w->size + n + 1) : NULL);

    if (!larger) {
        return 0;
    }
    memcpy(larger + w->size, data, n);
    w->text = larger;
    w->size += n;
    w->text[w->size] = '\0';
    return n;
}

static char *
explain(const struct list_watch *w, CURLcode code)
{
    return message("%s: no list of pods came (%s)", w->source->url,
                   w->why[0] ? w->why : curl_easy_strerror(code));
}

/* The list as a whole. */

static void
set_version(struct list_watch *w, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    const char *version =
        json_string_value(json_object_get(meta, "resourceVersion"));

    snprintf(w->version, sizeof w->version, "%s", version ? version : "");
}

/* Takes the list that has come. */
static char *
read_list(struct list_watch *w)
{
    const char *url = w->source->url;
    json_error_t at;
    json_t *json = json_loadb(w->text ? w->text : "", w->size, 0, &at);

    if (!json) {
        return make_printable(message("%s:%d:%d: %s; expected a list of pods",
                                      url, at.line, at.column, at.text));
    } else if (!json_is_array(json_object_get(json, "items"))) {
        json_decref(json);
        return message(
            "%s: /items: it is missing or not a list; expected a list of "
            "pods",
            url);
    }
    json_decref(w->list);
    w->list = json;
    if (strncmp(url, "file:", 5)) {
        set_version(w, json);
    }
    return NULL;
}

static char *
fetch(struct list_watch *w)
{
    CURL *curl = must(curl_easy_init());
    char *error =
        api_source_prepare(w->source, curl, w->source->url, take, w, w->why);

    if (!error) {
        CURLcode code;

        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
        code = curl_easy_perform(curl);
        error = code == CURLE_OK ? read_list(w) : explain(w, code);
    }
    curl_easy_cleanup(curl);
    end_watch(w);
    return error;
}

/* Watching. */

static const char *
uid_of(const json_t *object)
{
    const char *uid = json_string_value(
        json_object_get(json_object_get(object, "metadata"), "uid"));

    return uid ? uid : "";
}

/* Puts 'object' in the place of the one with its UID. */
static void
replace(json_t *items, json_t *object, bool deleted)
{
    size_t i = 0;

    while (i < json_array_size(items)
           && strcmp(uid_of(json_array_get(items, i)), uid_of(object))) {
        i++;
    }
    if (deleted) {
        json_array_remove(items, i);
    } else if (json_array_set(items, i, object)) {
        json_array_append(items, object);
    }
}

static void
take_event(struct list_watch *w, const char *line, size_t size)
{
    json_t *event = json_loadb(line, size, 0, NULL);
    json_t *object = json_object_get(event, "object");
    const char *type = json_string_value(json_object_get(event, "type"));

    w->lost = w->lost || !type || !strcmp(type, "ERROR");
    if (!w->lost) {
        if (strcmp(type, "BOOKMARK")) {
            replace(json_object_get(w->list, "items"), object,
                    !strcmp(type, "DELETED"));
        }
        set_version(w, object);
    }
    json_decref(event);
}

static size_t
take_events(char *data, size_t one, size_t n, void *w_)
{
    struct list_watch *w = w_;
    size_t taken = take(data, one, n, w), from = 0;
    char *end;

    while (taken && (end = memchr(w->text + from, '\n', w->size - from))) {
        take_event(w, w->text + from, end - w->text - from);
        from = end + 1 - w->text;
    }
    if (from) {
        w->size -= from;
        memmove(w->text, w->text + from, w->size + 1);
    }
    return taken;
}

static char *
start_watch(struct list_watch *w)
{
    const char *list = w->source->url;
    char *url =
        message("%s%cwatch=true&allowWatchBookmarks=true&"
                "timeoutSeconds=%d&resourceVersion=%s",
                list, strchr(list, '?') ? '&' : '?', WATCH_S, w->version);
    char *error;

    w->watch = must(curl_easy_init());
    w->lost = false;
    error =
        api_source_prepare(w->source, w->watch, url, take_events, w, w->why);
    free(url);
    curl_multi_add_handle(w->multi, w->watch);
    if (error) {
        w->version[0] = '\0';
        end_watch(w);
    }
    return error;
}

/* Returns true if the watch has ended, and then how in '*errorp'. */
static bool
has_ended(struct list_watch *w, char **errorp)
{
    int n;
    CURLMsg *msg = curl_multi_info_read(w->multi, &n);

    if (!msg && !w->lost) {
        return false;
    }
    if (msg && msg->data.result != CURLE_OK) {
        *errorp = explain(w, msg->data.result);
        w->lost = true;
    }
    if (w->lost) {
        w->version[0] = '\0'; /* The list is read again. */
    }
    end_watch(w);
    return true;
}

/* Waits until 'until', and follows the watch if there is one. */
static char *
follow(struct list_watch *w, long long until)
{
    char *error = w->version[0] && !w->watch ? start_watch(w) : NULL;
    long long left;
    int n;

    while ((left = until - clock_monotonic_ms()) > 0) {
        curl_multi_perform(w->multi, &n);
        if (w->watch && has_ended(w, &error) && w->lost) {
            break;
        }
        curl_multi_poll(w->multi, NULL, 0, left, NULL);
    }
    return error;
}

char *
list_watch_run(struct list_watch *w, int ms)
{
    char *error = w->begun ? follow(w, clock_monotonic_ms() + ms) : NULL;

    w->begun = true;
    return error || w->version[0] ? error : fetch(w);
}
