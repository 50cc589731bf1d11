// Search in an index that comes with the site and is loaded when the field is first used.
const home = document.currentScript.src;
const field = document.querySelector(".search input");
const list = document.querySelector("#hits");
let sections = null;
let marked = -1;

// The index is a script that calls this: unlike data, a script can be loaded from disk too.
function searchIndex(found) {
  sections = found.map((s) => ({ ...s, low: { page: s.page.toLowerCase(), heading: s.heading.toLowerCase(), text: s.text.toLowerCase() } }));
  show();
}

function load() {
  if (sections) return;
  sections = [];
  const script = document.createElement("script");
  script.src = new URL("search-index.js", home);
  document.head.append(script);
}

// Each word must be somewhere; a heading counts more than the text, the beginning of a word more than its middle.
function score(low, words) {
  let sum = 0;
  for (const word of words) {
    let best = 0;
    for (const [text, weight] of [[low.heading, 12], [low.page, 6], [low.text, 2]]) {
      const at = text.indexOf(word);
      if (at < 0) continue;
      const start = ` ${text}`.search(new RegExp(`[^\\p{L}\\p{N}]${escape(word)}`, "u")) >= 0;
      best = Math.max(best, start ? weight : weight / 3);
    }
    if (!best) return 0;
    sum += best;
  }
  return low.heading === low.page ? sum * 1.3 : sum; // the beginning of a page before its sections
}

function escape(word) {
  return word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

// markWords appends text to a node, with the words in <mark>; text is never read as HTML.
function markWords(node, text, words) {
  const parts = text.split(new RegExp(`(${words.map(escape).join("|")})`, "i"));
  parts.forEach((part, i) => {
    if (i % 2 === 0) return node.append(part);
    const mark = document.createElement("mark");
    mark.textContent = part;
    node.append(mark);
  });
}

// excerpt returns some text around the first word that is found, cut between words.
function excerpt(section, words) {
  const places = words.map((word) => section.low.text.indexOf(word)).filter((at) => at >= 0);
  const at = places.length ? Math.min(...places) : 0;
  const from = at > 40 ? section.text.indexOf(" ", at - 40) + 1 : 0;
  const text = section.text.slice(from, from + 130);
  const to = from + 130 < section.text.length ? text.lastIndexOf(" ") : text.length;
  return (from ? "… " : "") + text.slice(0, to).trim() + (to < text.length ? " …" : "");
}

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = words.length === 0 ? [] : sections
    .map((section) => ({ section, score: score(section.low, words) }))
    .filter((hit) => hit.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 12);
  list.replaceChildren();
  for (const { section } of hits) {
    const item = document.createElement("li");
    item.role = "option";
    item.id = `hit${list.children.length}`;
    const link = document.createElement("a");
    link.href = new URL(section.address, home);
    link.tabIndex = -1;
    const title = document.createElement("strong");
    markWords(title, section.heading === section.page ? section.page : `${section.page} › ${section.heading}`, words);
    const text = document.createElement("span");
    markWords(text, excerpt(section, words), words);
    link.append(title, text);
    item.append(link);
    list.append(item);
  }
  if (words.length && !hits.length && sections.length) {
    const item = document.createElement("li");
    item.className = "none";
    item.textContent = "Nothing found";
    list.append(item);
  }
  list.hidden = !list.children.length;
  field.setAttribute("aria-expanded", !list.hidden);
  move(hits.length ? 0 : -1);
}

function move(to) {
  marked = to;
  [...list.children].forEach((item, i) => item.setAttribute("aria-selected", i === marked));
  const item = list.children[marked];
  if (!item) return field.removeAttribute("aria-activedescendant");
  field.setAttribute("aria-activedescendant", item.id);
  item.scrollIntoView({ block: "nearest" });
}

function hide() {
  list.hidden = true;
  field.setAttribute("aria-expanded", false);
}

field.addEventListener("focus", () => {
  load();
  if (field.value) show();
});
field.addEventListener("input", show);
field.addEventListener("keydown", (event) => {
  const count = list.querySelectorAll("a").length;
  if (event.key === "ArrowDown" && count) move((marked + 1) % count);
  else if (event.key === "ArrowUp" && count) move((marked + count - 1) % count);
  else if (event.key === "Enter" && count && !list.hidden) list.children[marked].firstChild.click();
  else if (event.key === "Escape") {
    hide();
    field.blur();
  } else return;
  event.preventDefault();
});
list.addEventListener("click", hide);
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest(".search")) hide();
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  const slash = event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
  const ctrlK = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
  if (!slash && !ctrlK) return;
  event.preventDefault();
  field.focus();
  field.select();
});
