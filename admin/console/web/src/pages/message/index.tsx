// The complete history of a message.
import { useState } from "preact/hooks";
import { me, segments } from "../../api/client";
import { useResource } from "../../api/resource";
import type { AuditEntry, Journey } from "../../api/types";
import { t } from "../../i18n";
import { bytes, num } from "../../lib/format";
import { to } from "../../lib/router";
import { Card, Command, Copy, Facts, Icon, Link, Page, Payload, Problem, Skeleton, Status, Text, Time } from "../../ui";
import { Entry } from "../record";
import { Legs } from "./legs";
import { Timeline } from "./timeline";

function Headers({ headers }: { headers: Record<string, string> }) {
  const all = Object.entries(headers);
  return (
    <Card title={t("message.headers")}>
      {all.length === 0 ? (
        <p class="muted">{t("message.noheaders")}</p>
      ) : (
        <dl class="facts headers">
          {all.map(([k, v]) => (
            <div key={k}>
              <dt>
                <Text value={k} mono />
              </dt>
              <dd>
                {me.value?.payloads ? <Text value={v} mono /> : <span class="faint">{t("message.hiddenvalue")}</span>}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </Card>
  );
}

function Details({ j }: { j: Journey }) {
  const m = j.message;
  const mono = (v?: string) => v && <Text value={v} mono />;
  const message = (id?: string) =>
    id && (
      <Link to={`/messages/${segments(id)}`} class="mono">
        {id}
      </Link>
    );
  return (
    <Card title={t("message.details")}>
      <Facts
        items={[
          [
            t("col.key"),
            m.key && (
              <>
                <Text value={m.key} />{" "}
                <Link to={to("/messages", { key: m.key })} class="small-link">
                  {t("message.samekey")}
                </Link>
              </>
            ),
          ],
          [t("col.topic"), m.topic && <Text value={m.topic} />],
          [t("message.routing"), mono(m.routing_key)],
          [t("col.tenant"), m.tenant && <Text value={m.tenant} />],
          [
            t("message.aggregate"),
            m.aggregate_type && <Text value={`${m.aggregate_type} / ${m.aggregate_id ?? ""}`} />,
          ],
          [t("message.content"), m.content_type && <Text value={m.content_type} />],
          [
            t("message.schema"),
            m.schema_id || m.schema_version ? `${m.schema_id ?? ""} ${m.schema_version ?? ""}`.trim() : undefined,
          ],
          [t("col.enqueued"), j.enqueued_at && <Time at={j.enqueued_at} exact />],
          [t("message.occurred"), m.occurred_at && <Time at={m.occurred_at} exact />],
          [t("message.after"), m.deliver_after && <Time at={m.deliver_after} />],
          [t("message.priority"), m.priority],
          [t("message.dedup"), mono(m.dedup_key)],
          [t("message.correlation"), mono(m.correlation_id)],
          [t("message.causation"), message(m.causation_id)],
          [t("message.broker"), mono(m.broker_id)],
          [t("message.seq"), j.in_log && num(j.seq)],
          [t("col.size"), bytes(m.payload.bytes)],
        ]}
      />
    </Card>
  );
}

/** A note if the delivered message was edited: the log keeps the original. */
function Edited({ records }: { records: AuditEntry[] }) {
  const [open, setOpen] = useState(false);
  const edits = records.filter((r) => r.action === "edit");
  if (edits.length === 0) return null;
  const last = edits.reduce((a, b) => (b.n > a.n ? b : a));
  return (
    <div class="notice small edited">
      <Icon name="edit" size={14} />
      <span>
        {t("message.edited")}{" "}
        <button type="button" class="text-link" onClick={() => setOpen(true)}>
          {t("message.record")}
        </button>
      </span>
      {open && <Entry of={last} onClose={() => setOpen(false)} />}
    </div>
  );
}

export function MessagePage({ id }: { id: string }) {
  const journey = useResource<Journey>(`messages/${segments(id)}`);
  const j = journey.data;
  const trace =
    me.value?.trace_url && j?.trace_id ? me.value.trace_url.replaceAll("{trace_id}", j.trace_id) : undefined;
  const safe = trace && /^https?:\/\//.test(trace);
  const worst =
    j &&
    (["dead", "retry", "held", "waiting", "parked", "scheduled", "pending", "published"] as const).find((s) =>
      j.feeds.some((l) => l.status === s),
    );
  return (
    <Page
      title={j ? j.message.type : t("message.title")}
      lead={
        <span class="row">
          {worst && <Status value={worst} />}
          <span class="mono id-line">
            <Text value={id} />
          </span>
          <Copy text={id} />
        </span>
      }
      actions={
        safe && (
          <a class="button" href={trace} target="_blank" rel="noreferrer">
            <Icon name="link" size={14} />
            {t("message.trace")}
          </a>
        )
      }
    >
      {journey.error && <Problem error={journey.error} retry={journey.reload} />}
      {journey.loading && (
        <div class="card">
          <Skeleton rows={10} />
        </div>
      )}
      {j && (
        <>
          {!j.in_log && <p class="notice small">{t("message.notlog")}</p>}
          <div class="message">
            <div class="stack">
              <Card title={t("message.legs")}>
                <Legs j={j} onDone={journey.reload} />
              </Card>
              <Card title={t("message.timeline")}>
                <Timeline steps={j.timeline} />
              </Card>
            </div>
            <div class="stack">
              <Card title={t("message.payload")}>
                {j.in_log && <Edited records={j.records} />}
                <Payload value={j.message.payload} />
              </Card>
              <Headers headers={j.message.headers} />
              <Details j={j} />
            </div>
          </div>
          <Command text={j.command} />
        </>
      )}
    </Page>
  );
}
