/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LIST_WATCH_H
#define LIST_WATCH_H 1

/* A list of objects of Kubernetes that stays current.
 *
 * An API server sends a list with its version, and from that version on each
 * change, as one event a line, in a request that lasts for minutes: a watch.
 * So a list that a thousand nodes follow costs it next to nothing.  A kubelet,
 * or a file, has no version, and its list is read again each time.
 *
 *    struct list_watch *w = list_watch_create(&source);
 *
 *    for (;;) {
 *        error = list_watch_run(w, 2000);      // At once the first time.
 *        ...read list_watch_list(w), an object with the array "items"...
 *    }
 *
 * After an error the list is read again, and the last one stays until then.
 * One thread. */

#include "wire/api-source.h"

struct json_t; /* Of jansson.h. */
struct list_watch;

/* The source must outlive it. */
struct list_watch *list_watch_create(const struct api_source *);
void list_watch_destroy(struct list_watch *);

/* Follows the list for 'ms', or reads it then.  Returns NULL or a malloc()'d
 * message. */
char *list_watch_run(struct list_watch *, int ms);
const struct json_t *list_watch_list(const struct list_watch *); /* Or NULL. */

#endif /* wire/list-watch.h */
