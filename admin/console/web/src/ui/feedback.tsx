// Empty, loading and error states of pages.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/client";
import { t } from "../i18n";
import { Command } from "./copy";
import { Icon, type IconName } from "./icon";
import { Text } from "./text";

/** A placeholder while data loads. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div class="skeleton" aria-busy="true" role="status" aria-label={t("load.loading")}>
      {Array.from({ length: rows }, (_, i) => (
        <div class={`bar w${i % 4}`} key={i} />
      ))}
    </div>
  );
}

/** An empty state, with an explanation and the next step. */
export function Empty(p: { icon?: IconName; title: string; tone?: "ok"; children?: ComponentChildren }) {
  return (
    <div class={p.tone === "ok" ? "empty ok" : "empty"}>
      <span class="empty-icon">
        <Icon name={p.icon ?? "info"} size={22} />
      </span>
      <h2>{p.title}</h2>
      {p.children && <div class="empty-text">{p.children}</div>}
    </div>
  );
}

/** An error of the server, with the next step and a retry button unless the request itself was wrong. */
export function Problem({ error, retry }: { error: ApiError; retry?: () => void }) {
  const title = error.status === 0 ? t("error.unreachable") : error.status === 403 ? t("error.forbidden") : error.title;
  return (
    <div class="notice bad" role="alert">
      <Icon name="dead" />
      <div class="notice-body">
        <strong>{title}</strong>
        {error.detail && (
          <p>
            <Text value={error.detail} />
          </p>
        )}
        {error.status === 0 && <p>{t("error.unreachable.help")}</p>}
        {error.next &&
          (/^postrider /.test(error.next) ? (
            <Command text={error.next} />
          ) : (
            <p>
              <Text value={error.next} />
            </p>
          ))}
      </div>
      {retry && error.status !== 422 && error.status !== 400 && (
        <button type="button" class="button" onClick={retry}>
          <Icon name="retry" />
          {t("error.retry")}
        </button>
      )}
    </div>
  );
}

interface Toast {
  id: number;
  text: string;
  tone: "ok" | "bad";
}

const toasts = signal<Toast[]>([]);
let serial = 0;

/** Shows a message for a few seconds; screen readers announce it. */
export function toast(text: string, tone: "ok" | "bad" = "ok"): void {
  const id = ++serial;
  toasts.value = [...toasts.value.slice(-3), { id, text, tone }];
  setTimeout(() => dismiss(id), tone === "bad" ? 10_000 : 5_000);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((x) => x.id !== id);
}

/** Where toasts appear. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((x) => (
        <div class={`toast ${x.tone}`} key={x.id}>
          <Icon name={x.tone === "ok" ? "check" : "dead"} />
          <span>{x.text}</span>
          <button type="button" class="ghost" aria-label={t("action.close")} onClick={() => dismiss(x.id)}>
            <Icon name="cross" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
