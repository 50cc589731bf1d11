// Light or dark: the system's preference, unless the user has chosen.
import { computed, effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const name = "postrider.theme";
const stored = localStorage.getItem(name);
const query = matchMedia("(prefers-color-scheme: dark)");
const system = signal(query.matches);

export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "auto");
/** The current theme. */
export const resolved = computed(() => (theme.value === "auto" ? (system.value ? "dark" : "light") : theme.value));

/** Chooses a theme for now and for later visits. */
export function setTheme(to: Theme): void {
  theme.value = to;
  localStorage.setItem(name, to);
}

query.addEventListener("change", () => {
  system.value = query.matches;
});
effect(() => {
  document.documentElement.dataset.theme = resolved.value;
});
