// SPDX-License-Identifier: Apache-2.0

// A heat map, in viridis: its lightness grows with the number, so that it
// reads without colour.

import { svg } from "./dom.js";

const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c",
                 "#28ae80", "#5ec962", "#addc30", "#fde725"];
const WIDTH = 600;
const LEFT = 110;               // Of names.
const ROW = 22;
const HEAD = 20;
const FOOT = 40;                // Of the scale.

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
// {share, text} or null.  'ends' are the words at both ends of the scale.  Of
// columns' names those are drawn that fit.
export function heatMap(label, rows, columns, ends) {
    const width = (WIDTH - LEFT - 10) / columns.length;
    const every = Math.ceil(70 / width);
    const bottom = HEAD + rows.length * ROW;
    const cell = (c, i, k) => svg("rect", {
        x: LEFT + i * width, y: HEAD + k * ROW + 1,
        width: Math.max(width - (width > 6 ? 1 : 0), 1), height: ROW - 2,
        ...(c ? { fill: colourOf(c.share) } : { class: "empty" }),
    }, ...(c ? [svg("title", {}, `${rows[k]}, ${columns[i].name}: ${
        c.text}`)] : []));

    return svg(
        "svg", { viewBox: `0 0 ${WIDTH} ${bottom + FOOT}`, role: "img",
                 "aria-label": label },
        ...columns.flatMap((column, i) => i % every
            || LEFT + i * width > WIDTH - 60 && i ? [] : [svg(
            "text", { x: LEFT + i * width, y: 13, class: "quiet" },
            column.name)]),
        ...rows.map((row, k) => svg(
            "text", { x: LEFT - 6, y: HEAD + k * ROW + 16,
                      "text-anchor": "end" }, row)),
        ...columns.flatMap((column, i) =>
            column.cells.map((c, k) => cell(c, i, k))),
        ...scale(bottom, ends[0], ends[1]));
}
