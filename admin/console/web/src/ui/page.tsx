// The frame of a page, and small components that all pages share.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { t } from "../i18n";
import { moment } from "../lib/format";
import { href, path } from "../lib/router";

/** A page: its title (also the window's), a line below it, buttons at the right, and the content. */
export function Page(p: {
  title: string;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  wide?: boolean;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${p.title} · Postrider`;
  }, [p.title]);
  return (
    <div class="page">
      <header class="page-head">
        <div class="page-title">
          <h1>{p.title}</h1>
          {p.lead && <p class="lead">{p.lead}</p>}
        </div>
        {p.actions && <div class="page-actions">{p.actions}</div>}
      </header>
      {p.children}
    </div>
  );
}

/** A box with a heading. */
export function Card(p: {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  flush?: boolean;
  children: ComponentChildren;
}) {
  return (
    <section class={p.flush ? "card flush" : "card"}>
      {(p.title || p.actions) && (
        <header class="card-head">
          {p.title && <h2>{p.title}</h2>}
          {p.actions && <div class="card-actions">{p.actions}</div>}
        </header>
      )}
      {p.children}
    </section>
  );
}

/** A link to a page of the console. */
export function Link(p: { to: string; class?: string; title?: string; label?: string; children: ComponentChildren }) {
  return (
    <a
      href={href(p.to)}
      class={p.class}
      title={p.title}
      aria-label={p.label}
      aria-current={path.value === p.to ? "page" : undefined}
    >
      {p.children}
    </a>
  );
}

/** Names and their values, in two columns. Entries without a value are left out. */
export function Facts({ items }: { items: [name: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {items
        .filter(([, v]) => v !== undefined && v !== null && v !== "" && v !== false)
        .map(([k, v]) => (
          <div key={k}>
            <dt>{k}</dt>
            <dd>{v}</dd>
          </div>
        ))}
    </dl>
  );
}

/** A large number with its name. */
export function Stat(p: { label: string; children: ComponentChildren; tone?: "ok" | "warn" | "bad"; to?: string }) {
  const inner = (
    <>
      <span class="stat-label">{p.label}</span>
      <span class={`stat-value ${p.tone ?? ""}`}>{p.children}</span>
    </>
  );
  return p.to ? (
    <Link to={p.to} class="stat">
      {inner}
    </Link>
  ) : (
    <div class="stat">{inner}</div>
  );
}

/** Tabs. value and onChange as in a form; keep the choice in the address with setQuery. */
export function Tabs<T extends string>(p: {
  label: string;
  value: T;
  items: [value: T, label: ComponentChildren][];
  onChange: (v: T) => void;
}) {
  const move = (by: number) => {
    const i = p.items.findIndex(([v]) => v === p.value);
    p.onChange(p.items[(i + by + p.items.length) % p.items.length]![0]);
  };
  return (
    <div
      class="tabs"
      role="tablist"
      aria-label={p.label}
      onKeyDown={(e) => {
        if (e.key !== "ArrowRight" && e.key !== "ArrowLeft") return;
        move(e.key === "ArrowRight" ? 1 : -1);
        const list = e.currentTarget;
        requestAnimationFrame(() => list.querySelector<HTMLElement>("[aria-selected=true]")?.focus());
      }}
    >
      {p.items.map(([v, label]) => (
        <button
          key={v}
          type="button"
          role="tab"
          aria-selected={v === p.value}
          tabIndex={v === p.value ? 0 : -1}
          onClick={() => p.onChange(v)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

/** The button below a list that loads more of it; until is the time back to which a search has come. */
export function Pager(p: { shown: number; more?: () => void; busy?: boolean; until?: string }) {
  return (
    <div class="pager">
      {p.shown > 0 && <span class="muted">{t("list.shown", { n: p.shown })}</span>}
      {p.until && <span>{t("list.until", { time: moment(Date.parse(p.until)) })}</span>}
      {p.more && (
        <button type="button" class="button" disabled={p.busy} onClick={p.more}>
          {p.busy ? t("load.loading") : t(p.until ? "list.further" : "list.more")}
        </button>
      )}
    </div>
  );
}

/** A progress bar. */
export function Progress({
  value,
  max,
  label,
  tone,
}: {
  value: number;
  max: number;
  label: string;
  tone?: "ok" | "warn" | "bad";
}) {
  return <progress class={tone} value={max > 0 ? value : 0} max={max || 1} aria-label={label} />;
}
