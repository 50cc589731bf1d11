// Colours and lines for JSON, from its text. It is never parsed: numbers such as 12345678901234567890 and 1.10 stay as they were written.

export type Kind = "key" | "string" | "number" | "word" | "mark" | "space" | "other";

export interface Token {
  kind: Kind;
  text: string;
}

const pattern =
  /(?<space>\s+)|(?<string>"(?:[^"\\\n]|\\.)*"?)|(?<number>-?\d[\d.eE+-]*)|(?<word>true\b|false\b|null\b)|(?<mark>[{}[\],:])|(?<other>[^\s"{}[\],:]+)/gu;

/** Splits a text into tokens. Put together they are the text again, whatever it was. */
export function tokens(text: string): Token[] {
  const out: Token[] = [];
  for (const m of text.matchAll(pattern)) {
    const g = m.groups!;
    const kind = (Object.keys(g) as Kind[]).find((k) => g[k] !== undefined)!;
    if (kind === "mark" && m[0] === ":") {
      // What stands before a colon is a key.
      for (let i = out.length - 1; i >= 0; i--) {
        if (out[i]!.kind === "space") continue;
        if (out[i]!.kind === "string") out[i]!.kind = "key";
        break;
      }
    }
    out.push({ kind, text: m[0] });
  }
  return out;
}

/** JSON with a line for each value, all but the first behind a margin. Only space between tokens is changed. */
export function indented(text: string, margin = ""): string {
  const all = tokens(text).filter((x) => x.kind !== "space");
  let depth = 0;
  let out = "";
  const line = () => `\n${margin}${"  ".repeat(depth)}`;
  all.forEach(({ kind, text }, i) => {
    if (kind !== "mark") out += text;
    else if (text === ",") out += text + line();
    else if (text === ":") out += ": ";
    else {
      const open = text === "{" || text === "[";
      const other = all[open ? i + 1 : i - 1];
      const empty = other?.kind === "mark" && other.text === { "{": "}", "[": "]", "}": "{", "]": "[" }[text];
      depth = Math.max(0, depth + (open ? 1 : -1));
      out += open ? text + (empty ? "" : line()) : (empty ? "" : line()) + text;
    }
  });
  return out;
}

/** Whether the text is JSON. Only the yes or no of the parser is used. */
export function isJSON(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
