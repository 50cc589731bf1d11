import { signal } from "@preact/signals";

/** Whether the palette is open. */
export const paletteOpen = signal(false);
/** Whether the help is open. */
export const helpOpen = signal(false);
