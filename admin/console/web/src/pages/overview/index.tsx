// Current problems, rates and feeds.
import { overview } from "../../api/live";
import { useResource } from "../../api/resource";
import type { Overview, Problem as Trouble } from "../../api/types";
import { known, t } from "../../i18n";
import { sentence } from "../../lib/problems";
import {
  Age,
  Badge,
  Command,
  Copy,
  Empty,
  Guess,
  Icon,
  Link,
  Page,
  Problem,
  Rate,
  Skeleton,
  Stat,
  Text,
} from "../../ui";
import { useCommand } from "../system";
import { Charts } from "./charts";
import { ConsumersTable, FeedsTable } from "./tables";

/** A problem: the sentence, a button to fix it, and the command. */
function TroubleRow({ p }: { p: Trouble }) {
  const key = `overview.help.${p.kind.replace("consumer_", "")}`;
  return (
    <li class={`trouble ${p.severity}`}>
      <span class="trouble-icon" title={t(`severity.${p.severity}`)}>
        <Icon name={p.severity === "problem" ? "dead" : "info"} size={17} />
        <span class="sr">{t(`severity.${p.severity}`)}</span>
      </span>
      <span class="trouble-text">
        <Text value={sentence(p)} />
      </span>
      <span class="trouble-command mono" title={p.command}>
        <code class="cut">{p.command}</code>
        <Copy text={p.command} />
      </span>
      <Link to={p.page} class="button quiet">
        {known(key) ? t(key) : t("overview.help.any")}
        <Icon name="right" size={12} />
      </Link>
    </li>
  );
}

function Verdict({ o }: { o: Overview }) {
  if (o.problems.length === 0) {
    return (
      <section class="verdict well">
        <span class="verdict-icon">
          <Icon name="check" size={26} />
        </span>
        <div>
          <h2>{t("overview.healthy")}</h2>
          <p class="muted">{t("overview.healthy.lead")}</p>
        </div>
      </section>
    );
  }
  return (
    <section class="verdict" aria-label={t("overview.problems", { n: o.problems.length })}>
      <h2>
        {t("overview.problems", { n: o.problems.length })}
        {!o.problems.some((p) => p.severity === "problem") && <Badge tone="warn">{t("severity.warning")}</Badge>}
      </h2>
      <ul class="troubles">
        {o.problems.map((p, i) => (
          <TroubleRow p={p} key={`${p.kind} ${p.feed} ${p.consumer} ${i}`} />
        ))}
      </ul>
    </section>
  );
}

function Totals({ o }: { o: Overview }) {
  const rates = o.feeds.map((f) => f.rate).filter((r) => r !== null);
  return (
    <div class="stats">
      <Stat label={t("overview.waiting")} to="/messages?status=pending">
        <Guess value={o.totals.pending} />
      </Stat>
      <Stat label={t("overview.oldest")}>
        <Age at={o.totals.oldest} />
      </Stat>
      <Stat label={t("overview.delivered")}>
        <Rate n={rates.length > 0 ? rates.reduce((a, b) => a + b, 0) : null} />
      </Stat>
      <Stat label={t("overview.dead")} to="/dead" tone={o.totals.dead.n > 0 ? "bad" : undefined}>
        <Guess value={o.totals.dead} />
      </Stat>
      <Stat label={t("overview.blocked")} to="/keys" tone={o.totals.blocked.n > 0 ? "bad" : undefined}>
        <Guess value={o.totals.blocked} />
      </Stat>
    </div>
  );
}

export function OverviewPage() {
  const asked = useResource<Overview>("overview", {}, overview.value !== null);
  const o = overview.value ?? asked.data;
  const command = useCommand();
  return (
    <Page title={t("nav.overview")}>
      {asked.error && !o && <Problem error={asked.error} retry={asked.reload} />}
      {!o && !asked.error && <Skeleton rows={4} />}
      {o && (
        <>
          <Verdict o={o} />
          <Totals o={o} />
          <Charts />
          {o.feeds.length === 0 ? (
            <div class="card">
              <Empty icon="feeds" title={t("overview.nofeeds")}>
                <p>{t("overview.nofeeds.help")}</p>
                <Command text={command("relay --to ADDRESS", [])} />
              </Empty>
            </div>
          ) : (
            <FeedsTable feeds={o.feeds} />
          )}
          {o.consumers.length > 0 && <ConsumersTable consumers={o.consumers} />}
        </>
      )}
    </Page>
  );
}
