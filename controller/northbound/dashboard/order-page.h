/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_PAGE_H
#define ORDER_PAGE_H 1

/* State and order as HTML.
 *
 * The order table is generated here for all browsers, with and without
 * scripts, from the JSON of "/v1/status", "/v1/order" and "/v1/hosts".  A
 * missing member leaves its cell empty.  Names come from other machines, so
 * all text is escaped.  No state. */

struct ds;
struct json;

void order_page_put(struct ds *html, const struct json *status,
                    const struct json *order, const struct json *hosts);

#endif /* controller/northbound/dashboard/order-page.h */
