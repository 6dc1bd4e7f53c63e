// SPDX-License-Identifier: Apache-2.0

// A heat map in the colours of viridis, of which the lightness grows with the
// number.

import { LEFT, picture, rowName, svg } from "./dom.js";

const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c",
                 "#28ae80", "#5ec962", "#addc30", "#fde725"];
const ROW = 22;
const HEAD = 20;
const FOOT = 40;                // Height of the scale.

// The colour of 'share', 0 to 1.
export function colourOf(share) {
    const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
    const i = Math.min(Math.floor(at), VIRIDIS.length - 2);
    const part = (colour, byte) =>
        parseInt(colour.slice(1 + 2 * byte, 3 + 2 * byte), 16);
    const mix = byte => Math.round(
        part(VIRIDIS[i], byte) * (1 - at + i)
        + part(VIRIDIS[i + 1], byte) * (at - i));

    return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
}

function scale(y, least, most) {
    const n = 40;
    const width = 200 / n;

    return [
        ...Array.from({ length: n }, (_, i) => svg("rect", {
            x: LEFT + i * width, y: y + 4, width: width + 0.5, height: 10,
            fill: colourOf(i / (n - 1)) })),
        svg("text", { x: LEFT, y: y + 28, class: "quiet" }, least),
        svg("text", { x: LEFT + 200, y: y + 28, class: "quiet",
                      "text-anchor": "end" }, most),
    ];
}

// Draws 'rows', names, by 'columns' of {name, cells}, where a cell is
// {share, text} or null.  'ends' are the texts at both ends of the scale.  The
// names of columns that would overlap are left out.
export function heatMap(label, width, rows, columns, ends) {
    const size = (width - LEFT - 10) / columns.length;
    const every = Math.ceil(70 / size);
    const bottom = HEAD + rows.length * ROW;
    const isNamed = i => !(i % every)
        && (!i || LEFT + i * size <= width - 60);
    const cell = (c, i, k) => svg("rect", {
        x: LEFT + i * size, y: HEAD + k * ROW + 1,
        width: Math.max(size - (size > 6 ? 1 : 0), 1), height: ROW - 2,
        ...(c ? { fill: colourOf(c.share) } : { class: "empty" }),
    }, ...(c ? [svg("title", {}, `${rows[k]}, ${columns[i].name}: ${
        c.text}`)] : []));

    return picture(
        label, width, bottom + FOOT,
        ...columns.flatMap((column, i) => isNamed(i) ? [svg(
            "text", { x: LEFT + i * size, y: 13, class: "quiet" },
            column.name)] : []),
        ...rows.map((row, k) => rowName(HEAD + k * ROW + 16, row)),
        ...columns.flatMap((column, i) =>
            column.cells.map((c, k) => cell(c, i, k))),
        ...scale(bottom, ends[0], ends[1]));
}
