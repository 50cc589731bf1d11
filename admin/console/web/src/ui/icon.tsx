// Icons are drawn here, as lines on a grid of 24: nothing is loaded, and they take the colour of the text.
const paths = {
  overview: "M3 12h4l3-8 4 16 3-8h4",
  messages: "M4 5h16v14H4zM4 6l8 7 8-7",
  dead: "M12 3l9.5 17h-19zM12 10v4M12 17v.01",
  keys: "M6 11V8a6 6 0 0 1 12 0v3M5 11h14v10H5zM12 15v2",
  feeds: "M4 6h10M4 12h16M4 18h7M17 3l3 3-3 3",
  relays: "M5 12a7 7 0 0 1 12-5l2 2M19 4v5h-5M19 12a7 7 0 0 1-12 5l-2-2M5 20v-5h5",
  consumers: "M3 13h5l2 3h4l2-3h5M5 5h14l2 8v6H3v-6z",
  idempotency: "M8 4a12 12 0 0 1 8 0M5 8a9 9 0 0 1 14 0M7 20c1-3 1-5 1-7a4 4 0 0 1 8 0c0 3 0 5-1 8M12 13c0 4 0 5-1 8",
  sagas: "M6 4v10M6 8h7a4 4 0 0 1 4 4v2M6 17a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM17 16a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  reconcilers: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6zM9 12l2 2 4-4",
  databases: "M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0zM4 6c0 4 16 4 16 0M4 12c0 4 16 4 16 0",
  doctor: "M5 3v6a5 5 0 0 0 10 0V3M10 14v2a5 5 0 0 0 9 0v-3M19 9a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  audit: "M6 3h9l4 4v14H6zM9 11h7M9 15h7M9 7h3",
  replays: "M4 12a8 8 0 1 0 3-6L4 8M4 3v5h5",
  check: "M5 13l4 4L19 7",
  cross: "M6 6l12 12M18 6L6 18",
  clock: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3 2",
  retry: "M20 12a8 8 0 1 1-3-6l3 2M20 3v5h-5",
  skip: "M5 5l8 7-8 7zM17 5v14",
  park: "M7 5v14M17 5v14",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  play: "M7 4l13 8-13 8z",
  pause: "M8 5v14M16 5v14",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l5 5",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5",
  moon: "M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10z",
  auto: "M3 5h18v11H3zM8 20h8M12 16v4",
  more: "M5 12v.01M12 12v.01M19 12v.01",
  menu: "M4 7h16M4 12h16M4 17h16",
  right: "M9 5l7 7-7 7",
  down: "M5 9l7 7 7-7",
  up: "M5 15l7-7 7 7",
  user: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4 21c1-5 4-6 8-6s7 1 8 6",
  out: "M14 4h6v16h-6M4 12h11M11 8l4 4-4 4",
  info: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v6M12 7v.01",
  table: "M3 5h18v14H3zM3 10h18M10 5v14",
  chart: "M4 4v16h16M8 15l4-5 3 3 5-7",
  link: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  broker: "M4 12h4M16 12h4M12 4v4M12 16v4M12 8l4 4-4 4-4-4z",
  pen: "M12 20h8M4 20l1-4L16 5l3 3L8 19z",
  keyboard: "M3 6h18v12H3zM7 10v.01M11 10v.01M15 10v.01M8 14h8",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c5 5 5 13 0 18M12 3c-5 5-5 13 0 18",
  filter: "M4 5h16l-6 8v6l-4-2v-4z",
  lock: "M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5z",
  bolt: "M13 3L5 14h6l-1 7 8-11h-6z",
  dot: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

/** The post horn. */
export function Logo({ size = 22 }: { size?: number }) {
  return (
    <svg class="logo" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M8 20.5a6 6 0 1 1 6 0M14 20.5l9.5-9M23.5 11.5l1.5-3.5M23.5 11.5l3.5-1.5" />
    </svg>
  );
}
