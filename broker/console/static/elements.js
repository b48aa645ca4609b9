// Elements out of tags, attributes and text; whatever is text stays text.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function table(headings, rows) {
  const cells = (tag, values, attributes) =>
    h("tr", {}, ...values.map((value, at) => h(tag, { ...attributes, ...look(headings[at]) }, value)));
  const names = headings.map((each) => each.replace("#", ""));
  return h(
    "table",
    {},
    h("thead", {}, cells("th", names, { scope: "col" })),
    h("tbody", {}, ...rows.map((row) => cells("td", row, {}))),
  );
}

// A heading that begins with "#" is of a column of numbers.
function look(heading) {
  return heading.startsWith("#") ? { class: "number" } : {};
}
