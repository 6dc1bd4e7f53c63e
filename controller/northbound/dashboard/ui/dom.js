// SPDX-License-Identifier: Apache-2.0

// Elements, and numbers as people say them.  All text goes in as text, never
// as markup: names come from other machines.

const SVG = "http://www.w3.org/2000/svg";

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

// Replaces what is in the element 'id'.  What the reader has open stays open.
export function show(id, ...children) {
    const node = document.getElementById(id);
    const open = node.querySelector("details")?.open;

    node.replaceChildren(...children);
    if (open) {
        node.querySelector("details")?.setAttribute("open", "");
    }
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

// The same numbers as the picture before it, for who cannot see that.
export function asTable(heads, rows) {
    return el("details", {}, el("summary", {}, "As a table"),
              el("div", { class: "scroll", tabindex: "0", role: "region",
                          "aria-label": "numbers of the picture" },
                 table("numbers", heads, rows)));
}

export function note(text) {
    return el("p", { class: "note" }, text);
}

// 's' seconds, as the controller writes them.
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
