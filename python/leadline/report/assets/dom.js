// Building elements. Everything that comes from the profile becomes a text node here; nothing is ever parsed as HTML.

function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "width") element.style.setProperty("width", value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(String(child))));
  }
}

function replaceChildren(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// A bar whose filled part is `fraction`; `parts` of [fraction, class, title] stack.
function bar(parts) {
  return el(
    "span",
    { class: "bar" },
    parts.map(([fraction, kind, title]) => {
      const percent = Math.max(0, Math.min(100, 100 * fraction));
      return el("span", { class: `fill ${kind}`, width: `${percent}%`, title });
    }),
  );
}

function copyButton(text, label) {
  const button = el(
    "button",
    { class: "copy-button", type: "button", title: `Copy ${label}`, "aria-label": `Copy ${label}` },
    "copy",
  );
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    button.textContent = (await copyText(text)) ? "copied" : "select it";
    setTimeout(() => {
      button.textContent = "copy";
    }, 1200);
  });
  return button;
}

// Clipboard access is refused to pages opened from disk in some browsers; a selection works everywhere.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
