// The texts of the console, so that rewording them breaks no test.
type Text = string | { one?: string; other: string };

/** Not a plain import: what those files belong to is checked with other settings than the tests. */
async function load(name: string, part: string): Promise<Record<string, Text>> {
  const file = await import(new URL(`../../../admin/console/web/src/i18n/${name}.ts`, import.meta.url).href);
  return file[part];
}

const texts = { ...(await load("en", "en")), ...(await load("en.system", "system")) };

/** The names of all texts that no other word looks like. */
export const keys = new Set(Object.keys(texts).filter((k) => k.includes(".")));

function textOf(key: string): Text {
  const text = texts[key];
  if (text === undefined) throw new Error(`the console has no text ${key} any more`);
  return text;
}

/** The English text of a key. */
export function t(key: string, params: Record<string, string | number> = {}): string {
  const text = textOf(key);
  const form = typeof text === "string" ? text : ((params.n === 1 ? text.one : undefined) ?? text.other);
  return form.replace(/\{(\w+)\}/g, (_, name: string) => String(params[name] ?? ""));
}

/** A text as a pattern, in which parameters stand for anything. */
export function like(key: string): RegExp {
  const text = textOf(key);
  const forms = typeof text === "string" ? [text] : [text.one ?? text.other, text.other];
  const pattern = (form: string) => form.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, ".*");
  return new RegExp(forms.map(pattern).join("|"));
}
