// Buttons that copy a value or a command.
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon } from "./icon";
import { Text } from "./text";

async function write(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // There is no clipboard API over plain HTTP on other hosts: fall back to execCommand.
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** A button that copies a text. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const name = done ? t("copy.done") : (label ?? t("copy.copy"));
  return (
    <button
      type="button"
      class="ghost copy"
      aria-label={name}
      title={name}
      onClick={(e) => {
        e.stopPropagation();
        write(text).then(() => {
          setDone(true);
          setTimeout(() => setDone(false), 1500);
        });
      }}
    >
      <Icon name={done ? "check" : "copy"} size={14} />
      {label && <span>{name}</span>}
    </button>
  );
}

/** A command line to copy. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <span class="prompt" aria-hidden="true">
        $
      </span>
      <code>
        <Text value={text} />
      </code>
      <Copy text={text} />
    </div>
  );
}
