// Server-sent events over fetch. EventSource does not report errors, and loses its position when it is recreated.

export interface Event {
  type: string;
  id: string;
  data: string;
}

/** Parses chunks of text into complete events. */
export class Parser {
  private rest = "";
  private type = "";
  private data: string[] = [];
  private id = "";

  push(text: string): Event[] {
    const events: Event[] = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (this.data.length > 0)
          events.push({ type: this.type || "message", id: this.id, data: this.data.join("\n") });
        this.type = "";
        this.data = [];
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") this.type = value;
      else if (field === "data") this.data.push(value);
      else if (field === "id" && !value.includes("\0")) this.id = value;
    }
    return events;
  }
}

export type StreamState = "connecting" | "live" | "reconnecting" | "failed";

export interface StreamOptions {
  url: () => URL;
  onEvent: (e: Event) => void;
  onState: (s: StreamState) => void;
  onStatus?: (status: number) => void; // an HTTP status that is not 200
}

/** How long to wait before the nth attempt to connect again, in milliseconds. */
export function backoff(n: number, random = Math.random()): number {
  return Math.min(30_000, 500 * 2 ** Math.min(n, 7)) * (0.75 + random / 2);
}

/** After this many failures in a row a stream counts as failed. It still retries, less often. */
export const patience = 3;
/** A stream without a byte for so long is dead: the server sends comments more often. */
const silence = 45_000;

/** Follows a stream until stopped, and resumes it after errors. */
export function follow(o: StreamOptions): () => void {
  let stopped = false;
  let failures = 0;
  let last = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  let abort = new AbortController();

  async function connect(): Promise<void> {
    abort = new AbortController();
    const mine = abort;
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    const awake = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => mine.abort(), silence);
    };
    try {
      awake();
      const answer = await fetch(o.url(), {
        signal: mine.signal,
        credentials: "same-origin",
        cache: "no-store",
        headers: { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) },
      });
      if (!answer.ok || !answer.body) {
        o.onStatus?.(answer.status);
        throw new Error(String(answer.status));
      }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser();
      o.onState("live");
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        awake();
        failures = 0;
        for (const e of parser.push(value)) {
          if (e.id) last = e.id;
          o.onEvent(e);
        }
      }
    } catch {
      // A refused or broken connection: tried again below.
    }
    clearTimeout(watchdog);
    if (stopped) return;
    failures++;
    o.onState(failures >= patience ? "failed" : "reconnecting");
    timer = setTimeout(connect, backoff(failures));
  }

  o.onState("connecting");
  void connect();
  return () => {
    stopped = true;
    clearTimeout(timer);
    abort.abort();
  };
}
