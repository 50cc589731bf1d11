// The header: database, live status, search, and settings.
import { useEffect, useRef, useState } from "preact/hooks";
import { beside, me, signedOut } from "../api/client";
import { live, overview, paused } from "../api/live";
import { type Lang, lang, languages, setLang, t } from "../i18n";
import { sentence } from "../lib/problems";
import { database, navigate, path } from "../lib/router";
import { Select } from "../ui/field";
import { Icon, type IconName, Logo } from "../ui/icon";
import { Link, Tabs } from "../ui/page";
import { Badge } from "../ui/values";
import { helpOpen, paletteOpen } from "./state";
import { setTheme, type Theme, theme } from "./theme";

const mac = /Mac|iPhone|iPad/.test(navigator.platform);

/** The live status, and the button that pauses updates. */
function LiveState() {
  const state = live.value;
  const tone = { live: "ok", connecting: "idle", reconnecting: "warn", polling: "info", paused: "idle" }[state];
  const off = paused.value;
  return (
    <div class="live">
      <span class={`live-state ${tone}`} role="status">
        <span class={`dot ${tone} ${state === "live" ? "beat" : ""}`} aria-hidden="true" />
        <span class="live-name">{t(`live.${state}`)}</span>
      </span>
      <button
        type="button"
        class="ghost"
        aria-pressed={off}
        title={off ? t("head.resume") : t("head.pause")}
        aria-label={off ? t("head.resume") : t("head.pause")}
        onClick={() => {
          paused.value = !paused.value;
        }}
      >
        <Icon name={off ? "play" : "pause"} size={14} />
      </button>
    </div>
  );
}

const themes: [Theme, IconName][] = [
  ["auto", "auto"],
  ["light", "sun"],
  ["dark", "moon"],
];

function Settings() {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const who = me.value;
  useEffect(() => {
    if (!open) return;
    const away = (e: Event) => {
      if (e instanceof KeyboardEvent ? e.key === "Escape" : !box.current?.contains(e.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    document.addEventListener("keydown", away);
    return () => {
      document.removeEventListener("pointerdown", away);
      document.removeEventListener("keydown", away);
    };
  }, [open]);
  if (!who) return null;
  return (
    <div class="menu" ref={box}>
      <button
        type="button"
        class="who"
        aria-expanded={open}
        aria-label={t("head.settings")}
        onClick={() => setOpen(!open)}
      >
        <span class="avatar" aria-hidden="true">
          {[...who.name][0]?.toUpperCase()}
        </span>
        <span class="who-name">{who.name}</span>
        <Icon name="down" size={12} />
      </button>
      {open && (
        <div class="menu-box">
          <div class="menu-who">
            <strong>{who.name}</strong>
            <span class="muted">{t(`role.${who.role}`)}</span>
          </div>
          <div class="menu-part">
            <span class="menu-label">{t("head.theme")}</span>
            <Tabs
              label={t("head.theme")}
              value={theme.value}
              onChange={setTheme}
              items={themes.map(([v, icon]) => [
                v,
                <span title={t(`head.theme.${v}`)} key={v}>
                  <Icon name={icon} size={14} />
                  <span class="sr">{t(`head.theme.${v}`)}</span>
                </span>,
              ])}
            />
          </div>
          <div class="menu-part">
            <span class="menu-label">{t("head.language")}</span>
            <Select
              bare
              label={t("head.language")}
              value={lang.value}
              onChange={setLang}
              items={Object.entries(languages) as [Lang, string][]}
            />
          </div>
          <button
            type="button"
            class="menu-item"
            onClick={() => {
              setOpen(false);
              helpOpen.value = true;
            }}
          >
            <Icon name="keyboard" />
            {t("head.keys")}
            <kbd>?</kbd>
          </button>
          {who.can_logout && (
            <button
              type="button"
              class="menu-item"
              onClick={() =>
                beside("POST", "auth/logout").finally(() => {
                  me.value = null;
                  signedOut.value = true;
                })
              }
            >
              <Icon name="out" />
              {t("head.logout")}
            </button>
          )}
          <div class="menu-foot muted">{t("head.version", { version: who.version })}</div>
        </div>
      )}
    </div>
  );
}

export function Header() {
  const all = me.value?.databases ?? [];
  const troubled = new Map((overview.value?.elsewhere ?? []).map((o) => [o.database, o]));
  return (
    <header class="top">
      <Link to="/" class="brand top-brand" label="Postrider">
        <Logo />
      </Link>
      {all.length > 1 ? (
        <div class="database">
          <Icon name="databases" size={14} />
          <Select
            bare
            label={t("head.database")}
            value={database.value || all[0]!}
            onChange={(db) => navigate(`${path.value.split("/").slice(0, 2).join("/")}?db=${encodeURIComponent(db)}`)}
            items={all.map((d) => [d, troubled.has(d) ? `${d} (${troubled.get(d)!.problems})` : d])}
          />
          {[...troubled.values()].map((o) => (
            <Link
              key={o.database}
              to={`/?db=${encodeURIComponent(o.database)}`}
              class="elsewhere"
              title={`${o.database}: ${sentence(o.worst)}`}
              label={t("head.elsewhere", { database: o.database, n: o.problems })}
            >
              <Badge tone={o.worst.severity === "problem" ? "bad" : "warn"} icon="dead">
                {o.database}
              </Badge>
            </Link>
          ))}
        </div>
      ) : (
        all[0] && (
          <span class="database one" title={t("head.database")}>
            <Icon name="databases" size={14} />
            {all[0]}
          </span>
        )
      )}
      <button
        type="button"
        class="palette-button"
        aria-label={t("head.search")}
        onClick={() => {
          paletteOpen.value = true;
        }}
      >
        <Icon name="search" size={14} />
        <span>{t("head.search")}</span>
        <kbd>{mac ? "⌘" : "Ctrl"} K</kbd>
      </button>
      <span class="spacer" />
      <LiveState />
      <Settings />
    </header>
  );
}
