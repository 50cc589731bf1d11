// Before the first paint: the theme that the reader has chosen, else that of the system.
const systemTheme = matchMedia("(prefers-color-scheme: dark)");

function chosenTheme() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null; // storage may be forbidden
  }
}

function applyTheme() {
  document.documentElement.dataset.theme = chosenTheme() || (systemTheme.matches ? "dark" : "light");
}

applyTheme();
systemTheme.addEventListener("change", applyTheme);
