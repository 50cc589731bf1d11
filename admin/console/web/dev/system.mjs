// Fixtures of the pages of the system. Changes are kept until the mock ends.

import { databases, doctor } from "./health.mjs";
import { consumers, feeds } from "./overview.mjs";
import { sagaDetail, sagas } from "./sagas.mjs";

const ago = (s) => new Date(Date.now() - s * 1000).toISOString();
const paused = new Map();
const removed = new Set();
const added = [];
const none = { scheduled: 0, retry: 0, waiting: 0, dead: 0, parked: 0, blocked: 0, exact: true };

function allFeeds() {
  return [...feeds(), ...added]
    .filter((f) => !removed.has(f.name))
    .map((f) => ({ ...f, paused: paused.get(f.name) ?? f.paused }));
}

const holders = {
  default: ["relay-7d9f4-2xkqp", "relay-7d9f4-m8c2t", "relay-7d9f4-zz41b"],
  "search-index": ["relay-7d9f4-2xkqp"],
  "warehouse-hanoi": ["kho-hà-nội-1", "kho-hà-nội-2"],
};

const stats = {
  published: 18402331,
  failed: 412,
  refused: 37,
  retried: 388,
  deferred: 409,
  dead: 37,
  reads: 912003,
  settles: 455120,
  balances: 9120,
  fenced: 2,
  resets: 1,
  blocked: 3,
  shards: 6,
  quota: 6,
  members: 3,
  buffered: 118,
  failing: 1,
};

function shards(name) {
  const who = holders[name] ?? [];
  const all = [];
  for (let i = 0; i < 16; i++) {
    const orphan = name === "default" && i === 11;
    const late =
      name === "search-index"
        ? 5400 - i * 31
        : name === "default" && i === 5
          ? 74
          : name === "default" && i === 6
            ? 14
            : 0;
    const n = name === "search-index" ? 3000 + i * 7 : late ? late * 9 : (i * 7) % 4;
    all.push({
      shard: i,
      base: i,
      holder: orphan ? undefined : who[i % Math.max(1, who.length)],
      until: ago(-9),
      at: ago(1 + late),
      last: 88_120_400 + i * 131,
      pending: { n, exact: n < 1000 },
      oldest: n ? ago(late || 0.3) : undefined,
      crashes: name === "default" && i === 5 ? 2 : undefined,
    });
  }
  if (name === "default") {
    const slices = [
      [5, "上海-仓库", 120, 61],
      [5, "acme", 0, 0],
      [9, "Cửa hàng Bến Thành", 4, 0.7],
      [9, "globex", 18000, 190],
    ];
    slices.forEach(([base, tenant, n, late], i) => {
      all.push({
        shard: 1000 + i,
        base,
        tenant,
        holder: who[i % 3],
        until: ago(-8),
        at: ago(late),
        last: 4100 + i,
        pending: { n, exact: n < 1000 },
        oldest: n ? ago(late) : undefined,
      });
    });
  }
  return all;
}

function members(name) {
  const all = shards(name);
  return (holders[name] ?? []).map((h, i) => ({
    id: `0198f1c2-77aa-7e3${i}-9b10-5d1d0a${name.length}c${i}2e`,
    name: h,
    feed: name,
    since: ago(86400 * 3 + i * 7000),
    heard: ago(i === 2 ? 21 : 1.2),
    until: ago(i === 2 ? -1 : -9),
    shards: all.filter((l) => l.holder === h && !l.tenant).map((l) => l.shard),
    here: i === 0,
    stats: i === 0 ? { ...stats, paused: name === "search-index" ? "feed is paused" : undefined } : undefined,
  }));
}

function outages(name) {
  if (name === "search-index") return [];
  const one = (of, cause, failures, since, over) => ({
    name: of,
    cause,
    failures,
    since: ago(since),
    last: ago(over ?? 2),
    over: over && ago(over),
  });
  return [
    one("events/shipping", "rabbitmq: queue is full and rejects messages (basic.nack)", 41, 380),
    one("", "rabbitmq: dial tcp 10.0.3.7:5672: connect: connection refused", 12, 9000, 8800),
  ];
}

const missing = (detail, next) => ({ status: 404, title: "Not Found", detail, next });

const audit = Array.from({ length: 130 }, (_, i) => {
  const n = 130 - i;
  const base = {
    n,
    at: ago(400 + i * i * 90),
    who: ["lan.pham", "minh.tran", "王伟", "oncall-bot"][i % 4],
    login: i % 4 === 3 ? "svc_ops" : undefined,
    count: 1,
  };
  const kinds = [
    {
      action: "edit",
      feed: "default",
      why: "missing currency",
      target: { id: "0198f1c2-77aa-7e30-9b10-5d1d0ac0012e" },
      before: { type: "order.placed", topic: "orders", payload: '{"total":"120000"}' },
      after: { type: "order.placed", topic: "orders.v2", payload: '{"total":"120000","currency":"VND"}' },
    },
    {
      action: "retry",
      feed: "default",
      why: "ngân hàng đã hoạt động lại",
      count: 37,
      target: { filter: { feed: "default", error: "timeout" } },
    },
    { action: "feed pause", feed: "search-index", why: "reindex", before: { paused: false }, after: { paused: true } },
    { action: "discard", feed: "inbox/billing", count: 2, why: "测试数据" },
    { action: "saga retry", target: { saga: "book-trip", id: "trip-7", step: "charge-card" }, why: "bank is back" },
    {
      action: "feed rewind",
      feed: "warehouse-hanoi",
      count: 12044,
      why: "index lost",
      before: { time: ago(300) },
      after: { time: ago(90000) },
    },
  ];
  return { ...base, ...kinds[i % kinds.length] };
});

const keys = Array.from({ length: 70 }, (_, i) => ({
  tenant: ["acme", "上海-仓库", undefined][i % 3],
  principal: ["user/42", "đối-tác/giao-hàng-nhanh", undefined][i % 3],
  route: ["POST /orders", "POST /payments", "PUT /shipments/{id}"][i % 3],
  key: `0b7e${(i * 7919).toString(16).padStart(6, "0")}-c4f1-4f0e-9a57-${(i * 104729).toString(16).padStart(12, "0")}`,
  done: i % 7 !== 1 && i % 11 !== 3,
  bytes: i % 7 !== 1 && i % 11 !== 3 ? 180 + i * 97 : undefined,
  leased: i % 7 === 1 ? ago(-20) : i % 11 === 3 ? ago(95) : undefined,
  expires: i > 65 ? ago(i * 10) : ago(-86400 + i * 900),
}));

const reconcilers = [
  {
    job: "đơn-hàng-chưa-gửi",
    schedule: "every 5m",
    next: ago(-131),
    runs: 8120,
    failed: 3,
    total: { found: 41, fixed: 41 },
    last: { started: ago(169), finished: ago(167.4), holder: "relay-7d9f4-2xkqp", found: 2, fixed: 2 },
    can_run: true,
  },
  {
    job: "broker-gaps",
    schedule: "0 3 * * *",
    next: ago(-31000),
    runs: 212,
    failed: 9,
    total: { found: 310, fixed: 288 },
    last: {
      started: ago(54000),
      finished: ago(53940),
      holder: "relay-7d9f4-m8c2t",
      found: 22,
      fixed: 0,
      error: "kafka: fetch offsets of orders: broker 3 at 10.2.0.14:9092: i/o timeout",
    },
    can_run: true,
  },
  {
    job: "invoices",
    schedule: "every 1h",
    next: ago(-900),
    holder: "relay-7d9f4-m8c2t",
    until: ago(-25),
    runs: 96,
    failed: 0,
    total: { found: 0, fixed: 0 },
    last: { started: ago(12), found: 0, fixed: 0 },
    can_run: true,
  },
  {
    job: "库存核对",
    schedule: "30 */6 * * 1-5",
    next: ago(-7200),
    runs: 0,
    failed: 0,
    total: { found: 0, fixed: 0 },
    last: { found: 0, fixed: 0 },
    can_run: false,
  },
];

const replay = (id, state, more) => ({
  id,
  state,
  filter: { feed: "default" },
  dead: false,
  rate: 100,
  by: { who: "lan.pham", why: "consumer lost them" },
  created: ago(id * 31),
  total: 12000,
  sent: 0,
  delivered: 0,
  failed: 0,
  ...more,
});
const replays = [
  replay(19, "running", {
    sent: 4300,
    delivered: 4210,
    failed: 3,
    filter: { feed: "default", type: "order.placed", since: ago(7200) },
  }),
  replay(18, "running", {
    dead: true,
    rate: 20,
    total: 37,
    sent: 20,
    delivered: 18,
    failed: 1,
    filter: { feed: "inbox/billing", error: "timeout" },
  }),
  replay(17, "paused", {
    sent: 900,
    delivered: 900,
    filter: { feed: "warehouse-hanoi", tenant: "上海-仓库" },
    by: { who: "王伟" },
    rate: 0,
  }),
  replay(16, "done", { sent: 12000, delivered: 11996, failed: 4, finished: ago(90) }),
  replay(12, "cancelled", {
    sent: 120,
    delivered: 120,
    finished: ago(8000),
    filter: { feed: "default", key: "customer/Trần Văn Nam", topic: "orders" },
  }),
];
setInterval(() => {
  for (const r of replays) {
    if (r.state !== "running") continue;
    r.sent = Math.min(r.total, r.sent + (r.rate || 100));
    r.delivered = Math.max(0, r.sent - r.failed - Math.min(90, r.total - r.sent));
    if (r.delivered + r.failed >= r.total) Object.assign(r, { state: "done", finished: ago(0) });
  }
}, 1000).unref();

const set = (state) => (_, p) => {
  const r = replays.find((x) => x.id === Number(p.id));
  r.state = state;
  return { count: r.total, dry_run: false, command: `postrider replay ${state} ${p.id}`, job: r };
};
const paged = (all, url) => {
  const from = Number(url.searchParams.get("cursor") ?? 0);
  return { items: all.slice(from, from + 50), cursor: from + 50 < all.length ? String(from + 50) : undefined };
};
const sample = (n) =>
  Array.from({ length: Math.min(5, n) }, (_, i) => ({
    feed: "default",
    id: `0198f1c2-77aa-7e30-9b10-5d1d0ac001${i}e`,
    seq: i,
    shard: i,
    type: "order.placed",
    key: `order/${i}`,
    status: "published",
    blocking: false,
    attempts: 1,
    enqueued_at: ago(9),
    deferred_at: ago(9),
  }));

export const system = {
  "GET /feeds": allFeeds,
  "POST /feeds": (_, __, b) => {
    if (allFeeds().some((f) => f.name === b.name))
      return {
        status: 409,
        title: "Conflict",
        detail: `There is a feed ${b.name} already.`,
        next: "postrider feeds ls",
      };
    added.push({
      name: b.name,
      paused: false,
      relays: 0,
      pending: { n: 0, exact: true },
      deferred: none,
      rate: null,
      problems: [
        {
          kind: "no_relay",
          severity: "problem",
          feed: b.name,
          text: "no relay serves it",
          params: {},
          command: `postrider relay --to ADDRESS --feed ${b.name}`,
          page: `/feeds/${b.name}`,
        },
      ],
    });
    return { count: 1, dry_run: false, command: "" };
  },
  "GET /feeds/:name": (_, p) => {
    const f = allFeeds().find((x) => x.name === p.name);
    return f
      ? { ...f, shards: shards(p.name), members: members(p.name), outages: outages(p.name) }
      : missing(`There is no feed ${p.name}.`, "postrider feeds ls");
  },
  "DELETE /feeds/:name": (_, p, b) => {
    const count = (allFeeds().find((x) => x.name === p.name)?.pending.n ?? 0) + 53;
    if (b.dry_run) return { count, dry_run: true, command: "" };
    if (holders[p.name])
      return {
        status: 409,
        title: "Conflict",
        detail: "Relays serve this feed.",
        next: "stop the relays that serve it, then remove it",
      };
    removed.add(p.name);
    return { count, dry_run: false, command: "" };
  },
  "POST /feeds/:name/pause": (_, p) => {
    paused.set(p.name, true);
    return { count: 1, dry_run: false, command: "" };
  },
  "POST /feeds/:name/resume": (_, p) => {
    paused.set(p.name, false);
    return { count: 1, dry_run: false, command: "" };
  },
  "POST /feeds/:name/rewind": (_, p, b) => {
    const n = b.id ? 412 : Math.round((Date.now() - Date.parse(b.time)) / 1000) * 2;
    return {
      count: n,
      dry_run: b.dry_run,
      sample: sample(n),
      command: `postrider feeds rewind ${p.name} --to ${b.time}`,
    };
  },
  "GET /relays": () => Object.keys(holders).flatMap(members),
  "GET /consumers": consumers,
  "GET /idempotency": (url) => {
    const q = url.searchParams;
    return paged(
      keys.filter(
        (k) =>
          ["tenant", "principal", "route", "key"].every((n) => !q.get(n) || k[n] === q.get(n)) &&
          (q.get("open") !== "true" || !k.done),
      ),
      url,
    );
  },
  "GET /sagas": (url) =>
    paged(
      sagas.filter((s) =>
        ["name", "id", "status"].every((n) => !url.searchParams.get(n) || s[n] === url.searchParams.get(n)),
      ),
      url,
    ),
  "GET /sagas/count": () =>
    Object.fromEntries(
      ["running", "waiting", "compensating", "stuck", "completed", "compensated"].map((s) => [
        s,
        sagas.filter((x) => x.status === s).length,
      ]),
    ),
  "GET /sagas/:name/:id": (_, p) =>
    sagaDetail(p.name, p.id) ??
    missing(`There is no saga ${p.name} with the ID ${p.id}.`, `postrider saga ls --name ${p.name}`),
  "POST /sagas/:name/:id/act": (_, p, b) =>
    b.step === "hotel"
      ? {
          status: 409,
          title: "Conflict",
          detail: "There is nothing to retry: nothing has failed there.",
          next: `postrider saga show ${p.id}`,
        }
      : { count: 1, dry_run: false, command: "" },
  "GET /reconcilers": () => reconcilers,
  "POST /reconcilers/:job/run": () => ({ count: 2, dry_run: false, command: "" }),
  "GET /databases": databases,
  "GET /doctor": doctor,
  "GET /audit": (url) =>
    paged(
      audit.filter((a) => !url.searchParams.get("feed") || a.feed === url.searchParams.get("feed")),
      url,
    ),
  "GET /replays": () => replays,
  "GET /replays/:id": (_, p) =>
    replays.find((r) => r.id === Number(p.id)) ?? missing(`There is no replay ${p.id}.`, "postrider replay ls"),
  "POST /replays": (_, __, b) => {
    const n = b.filter.key ? 12 : b.filter.type ? 2840 : 18211;
    if (!b.force && !b.filter.since)
      return {
        status: 409,
        title: "Conflict",
        detail: "The oldest is 9 days old: consumers remember 7 days, and would take it for new.",
        next: "choose a later beginning, or say that it does not matter",
      };
    if (b.dry_run)
      return {
        count: n,
        dry_run: true,
        sample: sample(n),
        command: `postrider replay --all --feed ${b.filter.feed ?? "default"}`,
      };
    const job = replay(Math.max(...replays.map((r) => r.id)) + 1, "running", {
      created: ago(0),
      filter: b.filter,
      rate: b.rate,
      total: n,
      by: { who: "lan.pham", why: b.why },
    });
    replays.unshift(job);
    return { count: n, dry_run: false, command: "", job };
  },
  "POST /replays/:id/pause": set("paused"),
  "POST /replays/:id/resume": set("running"),
  "POST /replays/:id/cancel": set("cancelled"),
};
