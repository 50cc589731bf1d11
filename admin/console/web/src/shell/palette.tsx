// Ctrl+K: jump to a page, a message or a key.
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { navigate, to } from "../lib/router";
import { pathOf } from "../pages/routes";
import { Dialog } from "../ui/dialog";
import { Icon, type IconName } from "../ui/icon";
import { pages } from "./rail";
import { paletteOpen } from "./state";

interface Choice {
  icon: IconName;
  label: string;
  to: string;
}

/** A message ID is a UUID; anything else may be a key or a type. */
const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

/** Without marks and case, so that "tin nhan" finds "Tin nhắn". */
function plain(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").replaceAll("đ", "d").toLowerCase();
}

function choices(text: string): Choice[] {
  const want = plain(text.trim());
  const found: Choice[] = pages()
    .map((p) => ({ icon: p as IconName, label: t(`nav.${p}`), to: pathOf(p), name: p }))
    .filter((c) => want === "" || plain(c.label).includes(want) || c.name.includes(want));
  if (want === "") return found;
  const exact = text.trim();
  if (uuid.test(exact)) {
    return [
      { icon: "messages", label: t("palette.message", { id: exact }), to: `/messages/${encodeURIComponent(exact)}` },
    ];
  }
  return [
    ...found,
    { icon: "keys", label: t("palette.key", { key: exact }), to: to("/messages", { key: exact }) },
    { icon: "filter", label: t("palette.type", { type: exact }), to: to("/messages", { type: exact }) },
  ];
}

export function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const all = choices(text);
  const close = () => {
    paletteOpen.value = false;
  };
  const go = (c: Choice | undefined) => {
    if (!c) return;
    close();
    navigate(c.to);
  };
  return (
    <Dialog title={t("palette.title")} onClose={close} bare>
      <div class="palette">
        <div class="palette-field">
          <Icon name="search" />
          <input
            type="text"
            role="combobox"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant={all[at] ? `palette-${at}` : undefined}
            aria-label={t("palette.title")}
            placeholder={t("palette.placeholder")}
            autofocus
            spellcheck={false}
            autocomplete="off"
            value={text}
            onInput={(e) => {
              setText(e.currentTarget.value);
              setAt(0);
            }}
            onKeyDown={(e) => {
              if (e.key === "ArrowDown") setAt(Math.min(at + 1, all.length - 1));
              else if (e.key === "ArrowUp") setAt(Math.max(at - 1, 0));
              else if (e.key === "Enter" && !e.isComposing) go(all[at]);
              else return;
              e.preventDefault();
            }}
          />
          <kbd>Esc</kbd>
        </div>
        <div id="palette-list" role="listbox" aria-label={t("palette.title")} class="palette-list">
          {all.map((c, i) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: Enter is taken by the field above
            <div
              key={c.to}
              id={`palette-${i}`}
              role="option"
              tabIndex={-1}
              aria-selected={i === at}
              onPointerMove={() => setAt(i)}
              onClick={() => go(c)}
            >
              <Icon name={c.icon} />
              <span class="cut">{c.label}</span>
            </div>
          ))}
          {all.length === 0 && <p class="muted palette-none">{t("palette.none")}</p>}
        </div>
      </div>
    </Dialog>
  );
}
