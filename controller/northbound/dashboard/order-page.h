/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_PAGE_H
#define ORDER_PAGE_H 1

/* State and order as HTML.
 *
 * The one place that makes the order table, for browsers that run scripts and
 * for those that do not.  It is made of what "/v1/status", "/v1/order" and
 * "/v1/hosts" answer; a member that is missing leaves its cell empty.  Names
 * come from other machines: all text is escaped.  No state. */

struct ds;
struct json;

void order_page_put(struct ds *html, const struct json *status,
                    const struct json *order, const struct json *hosts);

#endif /* controller/northbound/dashboard/order-page.h */
