// Changes a dead or parked message and sends it. Only changed fields are sent to the server.
import { useState } from "preact/hooks";
import { segments, send } from "../../api/client";
import type { Done, Message } from "../../api/types";
import { t } from "../../i18n";
import { diff } from "../../lib/diff";
import { globals, shellWord } from "../../lib/format";
import { isJSON } from "../../lib/json";
import { ActionDialog, Field, Icon, Text } from "../../ui";
import { headerLines, parseHeaders } from "./headers";

function Changes({ before, after }: { before: string; after: string }) {
  const all = diff(before, after);
  if (!all.some((c) => c.sign !== " ")) return <p class="muted">{t("dead.edit.nochanges")}</p>;
  // Show three lines of context around each change.
  const near = all.map((_, i) => all.slice(Math.max(0, i - 3), i + 4).some((c) => c.sign !== " "));
  return (
    <pre class="diff">
      {all.map((c, i) =>
        near[i] ? (
          <div key={i} class={c.sign === "+" ? "add" : c.sign === "-" ? "del" : undefined}>
            {c.sign} <Text value={c.text} />
          </div>
        ) : !near[i - 1] && i > 0 ? null : (
          <div key={i} class="faint">
            ⋯
          </div>
        ),
      )}
    </pre>
  );
}

export function EditDialog(p: {
  feed: string;
  message: Message;
  like: string; // a command about the same database
  onClose: () => void;
  onDone: () => void;
}) {
  const m = p.message;
  const whole =
    !m.payload.hidden && m.payload.redacted.length === 0 && !m.payload.truncated && m.payload.kind !== "binary";
  const start = {
    type: m.type,
    topic: m.topic ?? "",
    routing_key: m.routing_key ?? "",
    content_type: m.content_type ?? "",
    headers: headerLines(m.headers),
    payload: m.payload.text ?? "",
  };
  const [form, setForm] = useState(start);
  const set = (name: keyof typeof start) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const names = Object.keys(start) as (keyof typeof start)[];
  const changed = names.filter((n) => form[n] !== start[n]);
  const text = (f: typeof start) =>
    [
      `type: ${f.type}`,
      `topic: ${f.topic}`,
      `routing key: ${f.routing_key}`,
      `content type: ${f.content_type}`,
      f.headers,
      "",
      f.payload,
    ].join("\n");
  const badJSON = m.payload.kind === "json" && form.payload !== start.payload && !isJSON(form.payload);

  const body = (why: string) => ({
    ...Object.fromEntries(changed.map((n) => [n, n === "headers" ? parseHeaders(form.headers) : form[n]])),
    why,
  });
  const command = (why: string) =>
    [
      "postrider dead edit",
      m.id,
      ...(p.feed.startsWith("inbox/")
        ? ["--consumer", shellWord(p.feed.slice("inbox/".length))]
        : ["--feed", shellWord(p.feed)]),
      ...(changed.includes("type") ? ["--type", shellWord(form.type)] : []),
      ...(changed.includes("topic") ? ["--topic", shellWord(form.topic)] : []),
      ...(changed.includes("payload") ? ["--payload", "FILE"] : []),
      ...(why ? ["--reason", shellWord(why)] : []),
    ].join(" ") + globals(p.like);

  return (
    <ActionDialog
      size="large"
      title={t("dead.edit.title")}
      text={t("dead.edit.text")}
      button={t("dead.edit.send")}
      disabled={changed.length === 0}
      run={(why) => send<Done>("PUT", `dead/${segments(p.feed, m.id)}`, body(why))}
      command={command}
      onDone={p.onDone}
      onClose={p.onClose}
    >
      <div class="edit-grid">
        <Field label={t("col.type")} value={form.type} onInput={set("type")} mono />
        <Field label={t("col.topic")} value={form.topic} onInput={set("topic")} mono />
        <Field label={t("message.routing")} value={form.routing_key} onInput={set("routing_key")} mono />
        <Field label={t("message.content")} value={form.content_type} onInput={set("content_type")} mono />
      </div>
      <Field label={t("dead.edit.headers")} value={form.headers} onInput={set("headers")} rows={3} mono />
      {whole ? (
        <Field
          label={t("message.payload")}
          value={form.payload}
          onInput={set("payload")}
          rows={Math.min(16, Math.max(5, start.payload.split("\n").length + 1))}
          mono
          error={badJSON ? t("dead.edit.badjson") : undefined}
        />
      ) : (
        <p class="notice small">
          <Icon name="lock" size={14} />
          <span>{t("dead.edit.notwhole")}</span>
        </p>
      )}
      <div>
        <h3 class="small-head">{t("dead.edit.changes")}</h3>
        <Changes before={text(start)} after={text(form)} />
      </div>
    </ActionDialog>
  );
}
