/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SOURCE_H
#define SOURCE_H 1

/* The samples and the model that the options select.
 *
 *    error = source_open_data(&options, &data);
 *    error = source_open_model(&options, data, backend, max_batch, &model);
 *
 * Both return NULL or a message.  The caller destroys what it gets. */

struct backend;
struct dataset;
struct model;
struct options;

char *source_open_data(const struct options *, struct dataset **);
char *source_open_model(const struct options *, const struct dataset *,
                        struct backend *, int max_batch, struct model **);

#endif /* trainer/process/source.h */
