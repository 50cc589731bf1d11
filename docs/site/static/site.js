// Theme button, menu on narrow screens, and copy buttons.
document.querySelector(".theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("theme", next);
  } catch {
    // storage may be forbidden; then the choice holds for this page
  }
  document.documentElement.dataset.theme = next;
});

const menuButton = document.querySelector(".menu");

function openMenu(open) {
  menuButton.setAttribute("aria-expanded", open);
  document.body.classList.toggle("menu-open", open);
}

menuButton.addEventListener("click", () => openMenu(menuButton.getAttribute("aria-expanded") !== "true"));
document.querySelector("main").addEventListener("click", () => openMenu(false));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.body.classList.contains("menu-open")) {
    openMenu(false);
    menuButton.focus();
  }
});

// The menu scrolls by itself: show the page that is open.
const side = document.querySelector(".side");
const current = side.querySelector("[aria-current]");
if (current) side.scrollTop = current.offsetTop - side.clientHeight / 2;

for (const pre of document.querySelectorAll("article pre")) {
  const box = document.createElement("div");
  box.className = "code";
  pre.replaceWith(box);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    let result = "Copied";
    try {
      await navigator.clipboard.writeText(pre.textContent.trimEnd());
    } catch {
      result = "Failed";
    }
    button.textContent = result;
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  box.append(pre, button);
}

// What scrolls can be reached by keyboard.
for (const box of document.querySelectorAll("article pre, .table, .picture")) {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}

// Mark the heading that is being read in the list beside the text.
const entries = new Map();
for (const link of document.querySelectorAll(".contents a")) {
  const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (heading) entries.set(heading, link);
}

function markHeading() {
  let read = null;
  for (const heading of entries.keys()) {
    if (heading.getBoundingClientRect().top < 120) read = heading;
  }
  for (const [heading, link] of entries) link.classList.toggle("here", heading === read);
}

if (entries.size) {
  addEventListener("scroll", markHeading, { passive: true });
  markHeading();
}
