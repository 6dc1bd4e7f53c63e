// SPDX-License-Identifier: Apache-2.0

// Elements and formatted numbers.  All text is inserted as text, never as
// markup, because names come from other machines.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;              // Width of a picture, user units,
const LEAST_WIDTH = 300;        // and on a narrow screen.

export const LEFT = 110;        // Width of the names beside a picture.

function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
}

export function el(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
}

// A picture of 'width' by 'height' user units.
export function picture(label, width, height, ...children) {
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
                        "aria-label": label }, ...children);
}

// Returns the width that a picture in 'node' should have, so that its text
// has about the size of other text.
export function widthFor(node) {
    return Math.min(Math.max(node.clientWidth || WIDTH, LEAST_WIDTH), WIDTH);
}

// The name of a row, to the left of a picture.  The middle of a long name is
// left out; its title is complete.
export function rowName(y, text) {
    return svg("text", { x: LEFT - 6, y, "text-anchor": "end" },
               text.length > 16 ? `${text.slice(0, 9)}…${text.slice(-6)}`
                   : text, svg("title", {}, text));
}

// Replaces the children of the element 'id'.  An open table stays open, and the
// keyboard's focus stays at its place.
export function show(id, ...children) {
    const node = document.getElementById(id);
    const open = node.querySelector("details")?.open;
    const places = () => [...node.querySelectorAll("a, summary, [tabindex]")];
    const place = places().indexOf(document.activeElement);

    node.replaceChildren(...children);
    if (open) {
        node.querySelector("details")?.setAttribute("open", "");
    }
    places()[place]?.focus({ preventScroll: true });
}

// A table of 'heads' and 'rows' of cells.
export function table(className, heads, rows) {
    const cells = row => row.map((cell, i) =>
        el("td", { "data-label": heads[i] }, cell));

    return el("table", { class: className },
              el("thead", {}, el("tr", {}, ...heads.map(
                  head => el("th", { scope: "col" }, head)))),
              el("tbody", {}, ...rows.map(
                  row => el("tr", {}, ...cells(row)))));
}

// The numbers of a picture as a table that the reader can open.
export function asTable(heads, rows) {
    return el("details", {}, el("summary", {}, "As a table"),
              el("div", { class: "scroll", tabindex: "0", role: "region",
                          "aria-label": "numbers of the picture" },
                 table("numbers", heads, rows)));
}

export function note(text) {
    return el("p", { class: "note" }, text);
}

// Explains colours: 'keys' are [class name, text].
export function legend(keys) {
    return el("p", { class: "note keys" }, ...keys.map(
        ([className, text]) => el("span", {}, svg(
            "svg", { viewBox: "0 0 12 12", class: "key", width: 12,
                     height: 12, "aria-hidden": "true" },
            svg("rect", { width: 12, height: 12, class: className })),
                                  ` ${text}`)));
}

// 's' seconds, in the format of the controller.
export function seconds(s) {
    return s < 9.95 ? `${s.toFixed(1)} s`
        : s < 99.5 ? `${s.toFixed(0)} s`
        : s < 5970 ? `${(s / 60).toFixed(0)} min`
        : `${(s / 3600).toFixed(1)} h`;
}

export function percent(share) {
    return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

// The time of day of 'ms', epoch ms.
export function clock(ms) {
    return new Date(ms).toLocaleTimeString([], { hour12: false });
}
