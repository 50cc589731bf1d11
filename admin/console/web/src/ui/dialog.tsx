// Dialogs are the browser's own: it keeps the focus inside, closes on Esc, and hides the rest from screen readers.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../i18n";
import { Icon } from "./icon";

/** A dialog that is open as long as it is rendered. It returns the focus when it closes. */
export function Dialog(p: {
  title: string;
  onClose: () => void;
  size?: "small" | "medium" | "large";
  bare?: boolean; // no heading: the title is only its name
  footer?: ComponentChildren;
  children: ComponentChildren;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  // Before it is painted, so that typing right away goes to the first field.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const d = ref.current!;
    d.showModal();
    return () => {
      d.close();
      before?.focus?.();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc closes it, which the browser sees to
    <dialog
      ref={ref}
      class={`dialog ${p.size ?? ""} ${p.bare ? "bare" : ""}`}
      aria-label={p.title}
      onCancel={(e) => {
        e.preventDefault();
        p.onClose();
      }}
      onClick={(e) => {
        if (e.target === ref.current) p.onClose();
      }}
    >
      <div class="dialog-box">
        {!p.bare && (
          <header class="dialog-head">
            <h2>{p.title}</h2>
            <button type="button" class="ghost" aria-label={t("action.close")} onClick={p.onClose}>
              <Icon name="cross" />
            </button>
          </header>
        )}
        <div class="dialog-body">{p.children}</div>
        {p.footer && <footer class="dialog-foot">{p.footer}</footer>}
      </div>
    </dialog>
  );
}
