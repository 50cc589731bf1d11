// An audit record.
import type { AuditEntry } from "../api/types";
import { known, t } from "../i18n";
import { diff } from "../lib/diff";
import { absolute } from "../lib/format";
import { indented, isJSON } from "../lib/json";
import { Badge, Dialog, Facts, Json, Num, Text, type Tone } from "../ui";

const tones: [RegExp, Tone][] = [
  [/discard|remove|rm\b|cancel|delete/, "bad"],
  [/rewind|pause|skip|park|compensate|force/, "warn"],
  [/retry|replay|resume/, "info"],
  [/edit|add/, "accent"],
];

/** The action, as a label. */
export function What({ action }: { action: string }) {
  const tone = tones.find(([words]) => words.test(action))?.[1] ?? "idle";
  const key = `audit.action.${action.replaceAll(" ", "_")}`;
  return <Badge tone={tone}>{known(key) ? t(key) : action}</Badge>;
}

/** All details of an audit record. */
export function Entry({ of: e, onClose }: { of: AuditEntry; onClose: () => void }) {
  const changed = e.before !== undefined || e.after !== undefined;
  return (
    <Dialog title={t("audit.entry", { n: e.n })} size="large" onClose={onClose}>
      <div class="stack">
        <Facts
          items={[
            [t("audit.what"), <What action={e.action} key="w" />],
            [t("audit.when"), absolute(Date.parse(e.at))],
            [
              t("audit.who"),
              <span key="o">
                <Text value={e.who} />
                {e.login && (
                  <span class="muted">
                    {" "}
                    ({t("audit.login")} <Text value={e.login} mono />)
                  </span>
                )}
              </span>,
            ],
            [t("audit.why"), e.why ? <Text value={e.why} /> : <span class="muted">{t("audit.noreason")}</span>],
            [t("col.feed"), e.feed && <Text value={e.feed} />],
            [t("audit.count"), <Num n={e.count} key="n" />],
          ]}
        />
        {e.target !== undefined && (
          <div>
            <h3 class="sys-h3">{t("audit.target")}</h3>
            <Json text={JSON.stringify(e.target, null, 2)} />
          </div>
        )}
        {changed && (
          <div>
            <h3 class="sys-h3">{t("audit.change")}</h3>
            <Diff before={e.before} after={e.after} />
          </div>
        )}
      </div>
    </Dialog>
  );
}

/** The fields of what was and what is, one a line; JSON within, such as a payload, is laid out, so that lines can be compared. */
function laidOut(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, v]) => {
    const nested = typeof v === "string" && /^\s*[{[]/.test(v) && isJSON(v);
    return `  ${JSON.stringify(name)}: ${indented(nested ? v : JSON.stringify(v), "  ")}`;
  });
  return `{\n${fields.join(",\n")}\n}`;
}

function Diff({ before, after }: { before: unknown; after: unknown }) {
  const lines = diff(laidOut(before), laidOut(after)).filter((l) => l.text !== "" || l.sign === " ");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must get there
    <pre class="sys-diff" tabIndex={0}>
      {lines.map((l, i) => (
        <div class={l.sign === "+" ? "plus" : l.sign === "-" ? "minus" : "same"} key={i}>
          <span aria-hidden="true">{l.sign}</span>
          <Text value={l.text} />
        </div>
      ))}
    </pre>
  );
}
