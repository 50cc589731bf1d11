// Buttons that change something. Each asks for a reason, makes a dry run if possible, and shows the equivalent command.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, may } from "../api/client";
import type { Done, Role } from "../api/types";
import { t } from "../i18n";
import { num } from "../lib/format";
import { Command } from "./copy";
import { Dialog } from "./dialog";
import { Problem, Skeleton, toast } from "./feedback";
import { Field } from "./field";
import { Icon, type IconName } from "./icon";
import { Link } from "./page";
import { Text } from "./text";
import { Status } from "./values";

export interface ActionProps {
  title: string; // of the dialog, such as "Pause feed orders"
  button: string; // of the button that does it, such as "Pause"
  text?: ComponentChildren; // what will happen
  danger?: boolean;
  /** Performs the action; with dryRun it only returns the effect. */
  run: (why: string, dryRun: boolean) => Promise<Done | undefined>;
  dryRun?: boolean; // the daemon can try it out
  command?: (why: string) => string; // where there is no dry run that tells it
  /** From this number on, the user must type it to confirm. */
  typeFrom?: number;
  reasonRequired?: boolean;
  onDone?: (d: Done | undefined) => void;
  children?: ComponentChildren; // more fields; change version when they change what would be done
  version?: string;
  size?: "small" | "medium" | "large";
  disabled?: boolean;
}

/** The dialog of an action. */
export function ActionDialog(p: ActionProps & { onClose: () => void }) {
  const [why, setWhy] = useState("");
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const [plan, setPlan] = useState<Done>();
  const [n, again] = useState(0);

  useEffect(() => {
    if (!p.dryRun) return;
    let gone = false;
    setPlan(undefined);
    setError(undefined);
    p.run("", true).then(
      (d) => !gone && setPlan(d),
      (e: unknown) => !gone && setError(e instanceof ApiError ? e : new ApiError(0, "", String(e))),
    );
    return () => {
      gone = true;
    };
  }, [p.version, n]);

  const count = plan?.count ?? 0;
  const mustType = p.typeFrom !== undefined && count >= p.typeFrom;
  // The server requires one too, for actions that cannot be undone and for several messages.
  const needsReason = p.reasonRequired || p.danger || count > 1;
  const ready =
    !busy &&
    !p.disabled &&
    (!p.dryRun || (plan !== undefined && count > 0)) &&
    (!mustType || typed.replace(/\D/g, "") === String(count)) &&
    (!needsReason || why.trim() !== "");
  const command = p.command?.(why.trim()) ?? withReason(plan?.command, why.trim());

  const go = () => {
    setBusy(true);
    setError(undefined);
    p.run(why.trim(), false).then(
      (d) => {
        toast(d ? t("action.done.n", { n: d.count }) : t("action.done"));
        p.onDone?.(d);
        p.onClose();
      },
      (e: unknown) => {
        setBusy(false);
        setError(e instanceof ApiError ? e : new ApiError(0, "", String(e)));
      },
    );
  };

  return (
    <Dialog
      title={p.title}
      onClose={p.onClose}
      size={p.size}
      footer={
        <>
          <button type="button" class="button" onClick={p.onClose}>
            {t("action.cancel")}
          </button>
          <button type="button" class={p.danger ? "button danger" : "button primary"} disabled={!ready} onClick={go}>
            {busy ? t("action.busy") : plan && count > 1 ? `${p.button} (${num(count)})` : p.button}
          </button>
        </>
      }
    >
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (ready) go();
        }}
      >
        {p.text && <div class="action-text">{p.text}</div>}
        {p.children}
        {error && <Problem error={error} retry={plan || !p.dryRun ? undefined : () => again((x) => x + 1)} />}
        {p.dryRun && !error && (plan ? <Plan plan={plan} /> : <Skeleton rows={3} />)}
        <Field
          label={t("action.reason")}
          help={needsReason ? t("action.reason.required") : t("action.reason.help")}
          value={why}
          onInput={setWhy}
          required={needsReason}
          autofocus
        />
        {mustType && (
          <Field
            label={t("action.type", { n: count })}
            value={typed}
            onInput={setTyped}
            placeholder={String(count)}
            mono
          />
        )}
        {command && <Command text={command} />}
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}

/** The result of the dry run. */
function Plan({ plan }: { plan: Done }) {
  if (plan.count === 0) return <p class="notice">{t("action.nothing")}</p>;
  return (
    <div class="plan">
      <p>
        <strong>{t("action.would", { n: plan.count })}</strong>
      </p>
      {plan.sample && plan.sample.length > 0 && (
        <ul>
          {plan.sample.map((r) => (
            <li key={`${r.feed} ${r.id}`}>
              <Status value={r.status} />
              <Link to={`/messages/${encodeURIComponent(r.id)}`} class="mono">
                <Text value={r.type} />
              </Link>
              <span class="muted cut">{r.key && <Text value={r.key} />}</span>
            </li>
          ))}
          {plan.count > plan.sample.length && (
            <li class="muted">{t("action.andmore", { n: plan.count - plan.sample.length })}</li>
          )}
        </ul>
      )}
    </div>
  );
}

/** Adds the reason to a command that has none. */
export function withReason(command: string | undefined, why: string): string | undefined {
  if (!command || !why || / --reason /.test(command)) return command;
  return `${command} --reason '${why.replaceAll("'", "'\\''")}'`;
}

/** A button that opens an action's dialog. Hidden from roles that may not use it. */
export function Action(p: ActionProps & { icon?: IconName; role?: Role; label?: string; quiet?: boolean }) {
  const [open, setOpen] = useState(false);
  if (!may(p.role ?? "operator")) return null;
  return (
    <>
      <button
        type="button"
        class={["button", p.danger && "danger-quiet", p.quiet && "quiet"].filter(Boolean).join(" ")}
        onClick={(e) => {
          e.stopPropagation();
          setOpen(true);
        }}
      >
        {p.icon && <Icon name={p.icon} size={14} />}
        {p.label ?? p.button}
      </button>
      {open && <ActionDialog {...p} onClose={() => setOpen(false)} />}
    </>
  );
}
