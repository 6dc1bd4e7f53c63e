/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FABRIC_OPEN_H
#define FABRIC_OPEN_H 1

/* What a workload would do on another fabric, as a command line says it:
 *
 *    switch                     one big switch
 *    leaf-spine,leaf=16,over=4  leaves of 16 hosts whose uplinks have a
 *                               quarter of what those can send
 *    FILE.csv,over=4            the first hosts of a topology, see
 *                               sim/fabric/topology.c */

struct workload;

/* Gives 'w' the fabric 'text' with as many hosts, and links as fast, as it has
 * now.  Returns NULL, or a malloc()'d message and leaves 'w' alone. */
char *fabric_open(const char *text, struct workload *w);

#endif /* cli/simulate/fabric-open.h */
