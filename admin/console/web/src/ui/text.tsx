// Values from outside, as text only. Characters that hide or reorder others are marked.
import type { ComponentChildren } from "preact";

// Controls but tab and line feed, bidi controls, zero-width characters, line separators, tags, lone surrogates.
const odd =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

/** Splits a value into plain parts and odd characters, those as U+202E. */
export function parts(value: string): { text: string; odd: boolean }[] {
  const out: { text: string; odd: boolean }[] = [];
  let at = 0;
  for (const m of value.matchAll(odd)) {
    if (m.index > at) out.push({ text: value.slice(at, m.index), odd: false });
    out.push({ text: `U+${m[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`, odd: true });
    at = m.index + m[0].length;
  }
  if (at < value.length) out.push({ text: value.slice(at), odd: false });
  return out;
}

/** Shows a value; odd characters are marked. */
export function Text({ value, mono }: { value: string; mono?: boolean }) {
  const all = parts(value);
  const children: ComponentChildren = all.some((p) => p.odd)
    ? all.map((p, i) =>
        p.odd ? (
          <mark class="odd" key={i}>
            {p.text}
          </mark>
        ) : (
          p.text
        ),
      )
    : value;
  return <bdi class={mono ? "mono" : undefined}>{children}</bdi>;
}

/** An ID, shortened in the middle; the whole is in the title. */
export function ShortID({ value }: { value: string }) {
  const short = value.length > 20 ? `${value.slice(0, 8)}…${value.slice(-6)}` : value;
  return (
    <span class="mono id" title={value}>
      <Text value={short} />
    </span>
  );
}
