// Numbers, times and sizes as the user's language writes them.
import { signal } from "@preact/signals";
import { locale } from "../i18n";

/** The time now, in milliseconds; it moves once a second so that ages stay true. */
export const now = signal(Date.now());

/** Begins to move the clock. It stands still while nobody looks. */
export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 1000);
}

const cache = new Map<string, Intl.NumberFormat>();

function formatter(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = locale.value + JSON.stringify(options);
  let f = cache.get(key);
  if (!f) {
    f = new Intl.NumberFormat(locale.value, options);
    cache.set(key, f);
  }
  return f;
}

/** A whole number, with separators. */
export function num(n: number): string {
  return formatter({ maximumFractionDigits: 0 }).format(n);
}

/** Counts of messages that are deferred end here: there may be more. */
export const most = 10_000;

/** A count, or the sum of some, each of which may have ended early: 10,000+. */
export function counted(...counts: number[]): string {
  return num(counts.reduce((a, b) => a + b, 0)) + (counts.some((n) => n >= most) ? "+" : "");
}

/** A short number: 1.2K, 3.4M. */
export function short(n: number): string {
  if (Math.abs(n) < 10_000) return num(n);
  const text = formatter({ notation: "compact", maximumFractionDigits: 1 }).format(n);
  return text.replace(/m$/, "M"); // British English writes 10m, which reads as minutes here
}

/** A rate: one digit after the point below 10, none above 100. */
export function rate(n: number): string {
  const digits = n === 0 || n >= 100 ? 0 : n >= 10 ? 1 : 2;
  return n >= 10_000 ? short(n) : formatter({ maximumFractionDigits: digits }).format(n);
}

/** A part as per cent. */
export function percent(part: number): string {
  return formatter({ style: "percent", maximumFractionDigits: part < 0.1 ? 1 : 0 }).format(part);
}

/** Bytes in binary steps. */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${formatter({ maximumFractionDigits: i === 0 || n >= 100 ? 0 : 1 }).format(n)} ${units[i]}`;
}

/** A length of time in seconds, in its two largest units: 4 ms, 1.2 s, 3m 20s, 5h 10m, 12d 4h. */
export function duration(seconds: number): string {
  const s = Math.abs(seconds);
  if (s === 0) return "0 s";
  if (s < 1) return s < 0.001 ? "<1 ms" : `${num(s * 1000)} ms`;
  if (s < 60) return `${formatter({ maximumFractionDigits: s < 10 ? 1 : 0 }).format(s)} s`;
  const whole = Math.round(s);
  const d = Math.floor(whole / 86400);
  const h = Math.floor((whole % 86400) / 3600);
  const m = Math.floor((whole % 3600) / 60);
  if (d > 0) return h > 0 && d < 30 ? `${num(d)}d ${h}h` : `${num(d)}d`;
  if (h > 0) return m > 0 ? `${h}h ${m}m` : `${h}h`;
  return whole % 60 > 0 ? `${m}m ${whole % 60}s` : `${m}m`;
}

/** "3 min ago", "in 2 h", in the user's language. */
export function relative(at: number, from: number): string {
  const s = (at - from) / 1000;
  const a = Math.abs(s);
  const f = new Intl.RelativeTimeFormat(locale.value, { numeric: "auto", style: "narrow" });
  if (a < 60) return f.format(Math.trunc(s), "second");
  if (a < 3600) return f.format(Math.trunc(s / 60), "minute");
  if (a < 86400) return f.format(Math.trunc(s / 3600), "hour");
  if (a < 86400 * 60) return f.format(Math.trunc(s / 86400), "day");
  return f.format(Math.trunc(s / (86400 * 30)), "month");
}

/** A time in full, with the zone. */
export function absolute(at: number): string {
  return new Intl.DateTimeFormat(locale.value, {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    hour12: false,
    timeZoneName: "short",
  }).format(at);
}

/** A time to the second, for sentences. */
export function moment(at: number): string {
  return new Intl.DateTimeFormat(locale.value, {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hour12: false,
  }).format(at);
}

/** The time of day, and the day too where it is another. */
export function clock(at: number, from: number, exact = false): string {
  const same = new Date(at).toDateString() === new Date(from).toDateString();
  return new Intl.DateTimeFormat(locale.value, {
    ...(same ? {} : { month: "2-digit", day: "2-digit" }),
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    ...(exact ? { fractionalSecondDigits: 3 as const } : {}),
    hour12: false,
  }).format(at);
}

/** What an RFC 3339 time or a duration such as 2h says, as RFC 3339; "" if it says nothing. */
export function parseTime(text: string, from: number): string {
  const m = /^\s*(\d+(?:\.\d+)?)\s*(s|m|h|d)\s*$/.exec(text);
  if (m) {
    const unit = { s: 1, m: 60, h: 3600, d: 86400 }[m[2] as "s" | "m" | "h" | "d"];
    return new Date(from - Number(m[1]) * unit * 1000).toISOString();
  }
  const at = Date.parse(text);
  return Number.isNaN(at) ? "" : new Date(at).toISOString();
}

/** The flags of a command that say which database is meant, for another command about it: " --schema x", or "". */
export function globals(command: string): string {
  return (command.match(/ --(?:dsn|schema|database)[ =](?:'[^']*'|\S+)/g) ?? []).join("");
}

/** A word for a shell: quoted only where it must be. */
export function shellWord(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
