// Keys whose messages wait behind a failed one.
import { segments, send } from "../api/client";
import { useResource } from "../api/resource";
import type { BlockedKey, Done } from "../api/types";
import { t } from "../i18n";
import { num } from "../lib/format";
import { query, setQuery, to } from "../lib/router";
import { Action, Age, Card, Empty, Icon, Link, Page, Problem, Skeleton, Status, Table, Text } from "../ui";
import { acts } from "./dead/acts";

/** The server's limit. */
const most = 500;
const can = ["retry", "skip", "park"] as const;

function Actions({ k, onDone }: { k: BlockedKey; onDone: () => void }) {
  return (
    <div class="cell-actions">
      {can.map((a) => (
        <Action
          key={a}
          quiet
          icon={acts[a].icon}
          button={t(`action.${a}`)}
          title={`${t(`action.${a}`)} · ${k.key}`}
          text={t(`action.${a}.help`)}
          dryRun
          run={(why, dry) => send<Done>("POST", "keys/act", { feed: k.feed, key: k.key, act: a, why, dry_run: dry })}
          onDone={onDone}
        />
      ))}
    </div>
  );
}

export function KeysPage() {
  const feed = query.value.get("feed") ?? undefined;
  const consumer = query.value.get("consumer") ?? undefined;
  const keys = useResource<BlockedKey[]>("keys", { feed, consumer });
  return (
    <Page
      title={t("keys.title")}
      lead={t("keys.lead")}
      actions={
        (feed || consumer) && (
          <button type="button" class="button chip" onClick={() => setQuery({ feed: undefined, consumer: undefined })}>
            {feed ?? consumer}
            <Icon name="cross" size={12} />
          </button>
        )
      }
    >
      {keys.error && <Problem error={keys.error} retry={keys.reload} />}
      {keys.data && keys.data.length >= most && <p class="notice small">{t("keys.most", { n: most })}</p>}
      <Card flush>
        {keys.loading && <Skeleton />}
        {keys.data?.length === 0 && (
          <Empty icon="check" tone="ok" title={t("keys.none")}>
            {t("keys.none.help")}
          </Empty>
        )}
        {keys.data && keys.data.length > 0 && (
          <Table
            cards
            label={t("keys.title")}
            rows={keys.data}
            id={(k) => `${k.feed} ${k.key}`}
            to={(k) => `/messages/${segments(k.head.id)}`}
            columns={[
              {
                name: t("col.key"),
                cell: (k) => (
                  <div class="two key-cell">
                    <Link to={to("/messages", { key: k.key })} title={k.key}>
                      <Text value={k.key} />
                    </Link>
                    <span>
                      <Text value={k.feed} />
                    </span>
                  </div>
                ),
              },
              {
                name: t("keys.since"),
                num: true,
                cell: (k) => <Age at={k.since} />,
                sort: (a, b) => (a.since < b.since ? 1 : -1),
              },
              {
                name: t("keys.behind"),
                num: true,
                cell: (k) => <span title={t("keys.waiting", { n: k.waiting })}>{num(k.waiting)}</span>,
                sort: (a, b) => a.waiting - b.waiting,
              },
              {
                name: t("keys.head"),
                grow: true,
                cell: (k) => (
                  <div class="two">
                    <span class="row">
                      <Status value={k.head.status} />
                      <Link to={`/messages/${segments(k.head.id)}`}>
                        <Text value={k.head.type} />
                      </Link>
                    </span>
                    <span class="bad-text" title={k.head.last_error}>
                      {k.head.last_error && <Text value={k.head.last_error} />}
                    </span>
                  </div>
                ),
              },
              {
                name: t("col.attempts"),
                num: true,
                hide: "medium",
                cell: (k) => <span class="num">{k.head.attempts}</span>,
              },
              { name: t("col.actions"), num: true, cell: (k) => <Actions k={k} onDone={keys.reload} /> },
            ]}
          />
        )}
      </Card>
    </Page>
  );
}
