/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DASHBOARD_H
#define DASHBOARD_H 1

/* The dashboard: pages and files for browsers.
 *
 * "/" shows the state, alarms and the order with its reasons as plain HTML
 * that the controller generates from the JSON of "/v1/status", "/v1/order" and
 * "/v1/hosts", so that it works without JavaScript, in a text browser and
 * before scripts have loaded.  A missing member leaves its cell empty.  Names
 * come from other machines, so all text is escaped.  Scripts in "/ui/" add
 * charts and updates; they read the same "/v1/" as all clients.
 *
 * The page loads nothing from other sites and changes nothing: the
 * Content-Security-Policy of each reply forbids the former, and the page has
 * no form.
 *
 * For a request of 'path':
 *
 *    if (dashboard_owns(path) && ...it is GET or HEAD without a body...) {
 *        return dashboard_reply(ctl, connection, path);
 *    }
 *
 * No state.  Main thread only. */

#include <stdbool.h>

#include <microhttpd.h>

struct controller;
struct ds;
struct json;

bool dashboard_owns(const char *path);
enum MHD_Result dashboard_reply(const struct controller *,
                                struct MHD_Connection *, const char *path);

/* Appends alarms, state and order to 'html', from the JSON of the views. */
void dashboard_put_state(struct ds *html, const struct json *status,
                         const struct json *order, const struct json *hosts);

#endif /* controller/northbound/dashboard/dashboard.h */
