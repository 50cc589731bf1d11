// The payload of a message.
import { useMemo, useState } from "preact/hooks";
import type { Payload as Data } from "../api/types";
import { t } from "../i18n";
import { bytes, num } from "../lib/format";
import { type Token, tokens } from "../lib/json";
import { Copy } from "./copy";
import { Empty } from "./feedback";
import { Icon } from "./icon";
import { Text } from "./text";

/** Above this many characters, highlighting is too slow. */
const colourful = 200_000;

/** JSON in colours. */
export function Json({ text }: { text: string }) {
  const all: Token[] = useMemo(() => (text.length > colourful ? [{ kind: "other", text }] : tokens(text)), [text]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must get there
    <pre class="json" tabIndex={0}>
      <code>
        {all.map((k, i) =>
          k.kind === "space" ? (
            k.text
          ) : (
            <span class={`j-${k.kind}`} key={i}>
              <Text value={k.text} />
            </span>
          ),
        )}
      </code>
    </pre>
  );
}

/** A payload, highlighted or raw, with notes about redacted and truncated parts. */
export function Payload({ value }: { value: Data }) {
  const [raw, setRaw] = useState(false);
  if (value.hidden)
    return (
      <Empty icon="lock" title={t("payload.hidden")}>
        {t("payload.hidden.help")}
      </Empty>
    );
  if (value.kind === "empty" || value.text === undefined) return <Empty title={t("payload.empty")} />;
  return (
    <div class="payload">
      <div class="payload-bar">
        <span class="muted">
          {t(`payload.${value.kind}`)} · {bytes(value.bytes)}
        </span>
        <span class="spacer" />
        {value.kind === "json" && (
          <button type="button" class="ghost" aria-pressed={raw} onClick={() => setRaw(!raw)}>
            {t("payload.raw")}
          </button>
        )}
        <Copy text={value.text} label={t("copy.copy")} />
      </div>
      {value.redacted.length > 0 && (
        <p class="notice small">
          <Icon name="lock" size={14} />
          <span>{t("payload.redacted", { n: value.redacted.length, paths: value.redacted.join(", ") })}</span>
        </p>
      )}
      {value.truncated && (
        <p class="notice small">
          <Icon name="info" size={14} />
          <span>{t("payload.truncated", { size: num(value.bytes) })}</span>
        </p>
      )}
      {value.kind === "json" && !raw ? (
        <Json text={value.text} />
      ) : (
        <pre class="json raw">
          <Text value={value.text} />
        </pre>
      )}
    </div>
  );
}
