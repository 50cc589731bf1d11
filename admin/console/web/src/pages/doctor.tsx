// Findings of the doctor, worst first, with their reasons and fixes.
import { useEffect, useState } from "preact/hooks";
import { useResource } from "../api/resource";
import type { Checkup } from "../api/types";
import { t } from "../i18n";
import {
  Badge,
  Card,
  Command,
  Copy,
  Empty,
  Icon,
  type IconName,
  Page,
  Problem,
  Skeleton,
  Text,
  Time,
  type Tone,
} from "../ui";

type Finding = Checkup["findings"][0];
type Severity = Finding["severity"];

const looks: [Exclude<Severity, "ok">, Tone, IconName][] = [
  ["problem", "bad", "dead"],
  ["warning", "warn", "dead"],
  ["info", "info", "info"],
];

export function DoctorPage() {
  const checkup = useResource<Checkup>("doctor", {}, true);
  const [busy, setBusy] = useState(false);
  useEffect(() => setBusy(false), [checkup.data, checkup.error]);
  const c = checkup.data;
  const of = (s: Severity) => (c?.findings ?? []).filter((f) => f.severity === s);
  const good = of("ok");
  const sick = of("problem").length + of("warning").length;
  return (
    <Page
      title={t("nav.doctor")}
      lead={
        c ? (
          <>
            {t("doctor.lead")} <Time at={c.at} />
          </>
        ) : (
          t("doctor.lead.none")
        )
      }
      actions={
        <button
          type="button"
          class="button"
          disabled={busy || checkup.loading}
          onClick={() => {
            setBusy(true);
            checkup.reload();
          }}
        >
          <Icon name="retry" size={14} />
          {busy || checkup.loading ? t("doctor.busy") : t("doctor.again")}
        </button>
      }
    >
      {checkup.error && <Problem error={checkup.error} retry={checkup.reload} />}
      {checkup.loading && (
        <Card>
          <p class="muted">{t("doctor.wait")}</p>
          <Skeleton rows={8} />
        </Card>
      )}
      {c && (
        <>
          <div class="row">
            {looks.map(([s, tone, icon]) => {
              const n = of(s).length;
              return (
                <Badge key={s} tone={n > 0 ? tone : "idle"} icon={icon}>
                  {t(`doctor.${s}.n`, { n })}
                </Badge>
              );
            })}
            <Badge tone="ok" icon="check">
              {t("doctor.ok.n", { n: good.length })}
            </Badge>
          </div>
          {sick === 0 && (
            <Card>
              <Empty icon="check" tone="ok" title={t("doctor.healthy")}>
                {t("doctor.healthy.help")}
              </Empty>
            </Card>
          )}
          {looks.map(([s, tone, icon]) => (
            <Group key={s} title={t(`doctor.${s}`)} findings={of(s)} tone={tone} icon={icon} />
          ))}
          {good.length > 0 && (
            <details class="card sys-good">
              <summary>
                <Icon name="check" size={14} />
                {t("doctor.ok.n", { n: good.length })}
              </summary>
              <ul>
                {good.map((f, i) => (
                  <li key={i}>
                    <Icon name="check" size={14} />
                    <span class="mono">{f.check}</span>
                    {f.subject && <Text value={f.subject} />}
                    <span class="muted">
                      <Text value={f.finding} />
                    </span>
                  </li>
                ))}
              </ul>
            </details>
          )}
          <Command text="postrider doctor" />
        </>
      )}
    </Page>
  );
}

function Group(p: { title: string; findings: Finding[]; tone: Tone; icon: IconName }) {
  if (p.findings.length === 0) return null;
  return (
    <section class="sys-section">
      <h2>{p.title}</h2>
      <ul class="findings">
        {p.findings.map((f, i) => (
          <li class={`finding ${p.tone}`} key={i}>
            <span class="finding-icon">
              <Icon name={p.icon} />
            </span>
            <div class="finding-body">
              <p class="finding-head">
                <strong>
                  <Text value={f.finding} />
                </strong>
              </p>
              <p class="muted">
                <span class="mono">{f.check}</span>
                {f.subject && (
                  <>
                    {" "}
                    · <Text value={f.subject} mono />
                  </>
                )}
              </p>
              {f.why && (
                <p>
                  <Text value={f.why} />
                </p>
              )}
              {f.fix && <Fix text={f.fix} />}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** A fix: a command, possibly after some text, a statement, or text only. */
function Fix({ text }: { text: string }) {
  if (/^[A-Z]{4,} /.test(text)) return <Statement text={text} />;
  if (!text.includes("postrider ")) return <Advice text={text} />;
  return (
    <>
      {text.split("; ").map((part) => {
        const at = part.indexOf("postrider ");
        if (at < 0) return <Advice text={part} key={part} />;
        return (
          <div class="sys-option" key={part}>
            {at > 0 && <Advice text={part.slice(0, at).trim()} />}
            <Command text={part.slice(at)} />
          </div>
        );
      })}
    </>
  );
}

function Statement({ text }: { text: string }) {
  return (
    <div class="sys-fix">
      <pre class="mono">
        <Text value={text} />
      </pre>
      <Copy text={text} />
    </div>
  );
}

function Advice({ text }: { text: string }) {
  return (
    <p class="sys-advice">
      <Icon name="right" size={14} />
      <Text value={text} />
    </p>
  );
}
