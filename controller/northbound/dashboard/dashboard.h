/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DASHBOARD_H
#define DASHBOARD_H 1

/* The page that a browser gets from the controller.
 *
 *
 * Motivation
 * ==========
 *
 * Whether the order helps, and why a search waits, is asked at a phone in the
 * night as well as at a desk.  "/" answers with what matters most, the state
 * and the order with its reasons, as plain HTML that the controller made, so
 * that it is there without JavaScript, in a text browser and before anything
 * else has loaded.  Scripts of "/ui/" add the pictures and keep it fresh; all
 * that they know they read from "/v1/" as anybody can.
 *
 * Nothing is loaded from elsewhere and nothing is changed: the policy that
 * goes with each answer forbids a browser the former, and the page has no
 * form.
 *
 *
 * Usage
 * =====
 *
 * Where a request for 'path' would be answered:
 *
 *    if (dashboard_owns(path) && ...it is GET or HEAD without a body...) {
 *        return dashboard_answer(ctl, connection, path);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Main thread only, as the controller. */

#include <stdbool.h>

#include <microhttpd.h>

struct controller;

bool dashboard_owns(const char *path);
enum MHD_Result dashboard_answer(const struct controller *,
                                 struct MHD_Connection *, const char *path);

#endif /* controller/northbound/dashboard/dashboard.h */
