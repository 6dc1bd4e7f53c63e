// SPDX-License-Identifier: Apache-2.0

// Horizontal bars in groups.

import { LEFT, picture, rowName, svg } from "./dom.js";

const BAR = 13;                 // Height of a bar and the gap below it.
const GAP = 8;                  // Between groups.
const RIGHT = 60;               // Room for the number after a bar.

// Draws 'rows', {name, bars}, where a bar is {value, text, className}.  A bar
// without a value is a text alone.
export function groupedBars(label, width, rows) {
    const most = Math.max(...rows.flatMap(
        row => row.bars.map(bar => bar.value ?? 0)), 1e-9);
    const scale = (width - LEFT - RIGHT) / most;
    let y = 0;

    function draw(bar, i) {
        const length = (bar.value ?? 0) * scale;
        const top = y + 2 + i * BAR;

        return [
            ...(bar.value == null ? [] : [svg("rect", {
                x: LEFT, y: top, height: BAR - 1,
                width: Math.max(1, length), class: bar.className })]),
            svg("text", { x: LEFT + length + 4, y: top + 10,
                          class: i ? "quiet" : "" }, bar.text),
        ];
    }

    return picture(label, width, rows.reduce(
        (sum, row) => sum + row.bars.length * BAR + GAP, 0),
    ...rows.flatMap(row => {
        const parts = [rowName(y + 5 + row.bars.length * BAR / 2, row.name),
                       ...row.bars.flatMap(draw)];

        y += row.bars.length * BAR + GAP;
        return parts;
    }));
}
