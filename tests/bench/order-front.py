#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# order-front.py RESULT.json PICTURE.svg: draws the mean and the 95th
# percentile of stage completion times, relative to the plain network, of each
# policy that the bench order-iterating has measured: one panel for each of
# some families and one for the mean of all families.  A line joins the points
# of the order "stage", by its objective.

import json
import sys

# Of the objective's limits 0.85, 1.1, 1.2 and none without aging.
OURS = {'balanced': '0.85', 'default': 'default', 'loose': '',
        '': 'mean alone'}
PEERS = ['sincronia', 'sebf', 'tcf', 'las', 'dclas', 'work']
PANELS = ['spread', 'one', 'equal', '16_load1', 'narrow_wide_64', 'all']
COLUMNS = 3
WIDTH, HEIGHT = 340, 290                # Of a panel with its labels, pixels.
LEFT, RIGHT, TOP, BOTTOM = 44, 60, 34, 42       # Around its axes.
STYLE = '''text { font: 11px sans-serif; fill: #333; }
.title { font-weight: bold; } .end { text-anchor: end; }
.middle { text-anchor: middle; } .axis { stroke: #999; fill: none; }
.ours { stroke: #1a6fb5; fill: none; stroke-width: 1.5; }
.our-point { fill: #1a6fb5; } .our-text { fill: #1a6fb5; }
.peer-point { fill: #c2571a; }'''


def point(figures, policy, panel):
    """Returns the mean and the p95 of a policy, "" for the mean alone."""
    prefix = policy + '_' if policy else ''
    families = [panel]
    if panel == 'all':
        families = [k[len('vs_plain_'):] for k in figures
                    if k.startswith('vs_plain_')]
    return [sum(figures['%s%svs_plain_%s' % (prefix, kind, family)]
                for family in families) / len(families)
            for kind in ('', 'p95_')]


def limits(values):
    margin = max(0.12 * (max(values) - min(values)), 0.02)
    return min(values) - margin, max(values) + margin


def text(x, y, words, kind=''):
    return '<text x="%.1f" y="%.1f" class="%s">%s</text>' % (x, y, kind, words)


def draw_panel(figures, panel, x0, y0):
    ours = [(label, point(figures, policy, panel))
            for policy, label in OURS.items()]
    peers = [(policy, point(figures, policy, panel)) for policy in PEERS]
    points = [p for _, p in ours + peers]
    low_x, high_x = limits([p[0] for p in points])
    low_y, high_y = limits([p[1] for p in points])
    left, right = x0 + LEFT, x0 + WIDTH - RIGHT
    top, bottom = y0 + TOP, y0 + HEIGHT - BOTTOM

    def place(p):
        return (left + (p[0] - low_x) / (high_x - low_x) * (right - left),
                bottom - (p[1] - low_y) / (high_y - low_y) * (bottom - top))

    out = [text((left + right) / 2, y0 + 14, panel, 'title middle'),
           text(x0 + 4, top - 8, 'p95 / plain'),
           text(right, bottom + 30, 'mean / plain', 'end'),
           '<path d="M%d %dV%dH%d" class="axis"/>' % (left, top, bottom, right)]
    for k in (0.1, 0.5, 0.9):
        x = low_x + k * (high_x - low_x)
        y = low_y + k * (high_y - low_y)
        out.append(text(place((x, y))[0], bottom + 14, '%.2f' % x, 'middle'))
        out.append(text(left - 4, place((x, y))[1] + 4, '%.2f' % y, 'end'))
    out.append('<polyline points="%s" class="ours"/>' % ' '.join(
        '%.1f,%.1f' % place(p) for _, p in ours))
    for kind, named in (('our', ours), ('peer', peers)):
        for label, p in named:
            x, y = place(p)
            out.append('<circle cx="%.1f" cy="%.1f" r="3" class="%s-point"/>'
                       % (x, y, kind))
            out.append(text(x + 5, y - 4, label, kind + '-text'))
    return out


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        figures = json.load(f)['figures']
    rows = -(-len(PANELS) // COLUMNS)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d">'
           % (COLUMNS * WIDTH, rows * HEIGHT),
           '<style>%s</style>' % STYLE,
           '<rect width="100%" height="100%" fill="white"/>']
    for i, panel in enumerate(PANELS):
        out += draw_panel(figures, panel, i % COLUMNS * WIDTH,
                          i // COLUMNS * HEIGHT)
    with open(sys.argv[2], 'w', encoding='utf-8') as f:
        f.write('\n'.join(out + ['</svg>', '']))


main()
