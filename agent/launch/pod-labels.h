/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_LABELS_H
#define POD_LABELS_H 1

/* Labels by which the job and the search of a pod are known.
 *
 * Operators of training on Kubernetes label their pods, each in its own way,
 * and a pod has the labels of all that took part: those of a JobSet also have
 * the labels of the batch jobs that it made, one for each role.  A table in a
 * text file, pod-labels, which is part of the programs, has them in order:
 *
 *    job jobset.sigs.k8s.io/jobset-name
 *    job job-name batch.kubernetes.io/job-completion-index
 *    search katib.kubeflow.org/experiment
 *
 * The first row of a role with a label of the pod decides; the label's value
 * is the name.  A label may also be an annotation.  A row with a second label
 * counts for pods that have this one, too, and for annotated pods
 * (pod-identity.h).  "#" begins a comment.  An operator adds rows in a file of
 * the same form, which come before the table's own:
 *
 *    error = pod_labels_add("/etc/stagecoach/pod-labels");
 *    job = pod_labels_find("job", labels, annotations, false);
 *
 * The table is the process's.  One thread. */

#include <jansson.h>
#include <stdbool.h>

/* Returns the value, which 'labels' or 'annotations' own, of the first row of
 * 'role', "job" or "search", that counts; NULL without one. */
const char *pod_labels_find(const char *role, const json_t *labels,
                            const json_t *annotations, bool annotated);

/* Adds the rows of the file 'path'.  Returns NULL, or a malloc()'d message;
 * then the rows before the wrong one may have been added. */
char *pod_labels_add(const char *path);

#endif /* agent/launch/pod-labels.h */
