// Colours for JSON, from its text. It is never parsed: numbers such as 12345678901234567890 and 1.10 stay as they were written.

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

/** Whether the text is JSON. Only the yes or no of the parser is used. */
export function isJSON(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
