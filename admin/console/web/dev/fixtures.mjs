// Messages of a shop: orders, payments, shipping; customers in Hà Nội, 上海 and elsewhere.
import { consumers, feeds, overview, series } from "./overview.mjs";

const ago = (s) => new Date(Date.now() - s * 1000).toISOString();
const uuid = (n) =>
  `0199${(0xa000 + (n % 4096)).toString(16)}-${((n * 2654435761) >>> 0).toString(16).padStart(8, "0").slice(0, 4)}-7${(n % 4096).toString(16).padStart(3, "0")}-9${((n * 7) % 4096).toString(16).padStart(3, "0")}-${(n * 40503 + 1e12).toString(16).padStart(12, "0").slice(-12)}`;
const kinds = [
  ["order.placed", "orders", "order"],
  ["payment.captured", "payments", "order"],
  ["order.paid", "orders", "order"],
  ["shipment.booked", "shipping", "shipment"],
  ["invoice.sent", "billing", "invoice"],
  ["customer.moved", "customers", "customer"],
];
const tenants = ["acme", "hà-nội", "上海店", "nordwind"];
const statuses = [
  "published",
  "published",
  "published",
  "published",
  "pending",
  "retry",
  "scheduled",
  "dead",
  "waiting",
  "parked",
];
const errors = [
  "kafka: message of 1,204,118 bytes is larger than the broker allows (1,048,576)",
  "kafka: topic orders: not authorized to write",
  'schema registry: field "customer.address.zip" is missing in version 7',
  "webhook https://partner.example/hooks answered 422: unknown customer Nguyễn Thị Hồng",
];

export function row(n) {
  const [type, topic, agg] = kinds[n % kinds.length];
  const status = n < 3 ? "pending" : statuses[(n * 7) % statuses.length];
  return {
    id: uuid(n),
    seq: 918273 - n,
    shard: n % 4,
    feed: "default",
    type,
    key: `${agg}/${48000 - (n % 60)}`,
    topic,
    tenant: tenants[n % 4],
    status,
    attempts: status === "dead" ? 12 : status === "retry" ? 3 : status === "published" ? 1 : 0,
    enqueued_at: ago(n * 3.7),
    available_at: status === "scheduled" ? ago(-1800) : status === "retry" ? ago(-12) : undefined,
    last_error: ["dead", "retry"].includes(status) ? errors[n % errors.length] : undefined,
    bytes: 240 + ((n * 977) % 9000),
  };
}
const dead = (n) => ({
  ...row(n),
  status: n % 9 === 4 ? "parked" : "dead",
  attempts: 12,
  blocking: n % 5 === 0,
  enqueued_at: ago(n * 61 + 4000),
  last_error: errors[n % 7 < 4 ? 0 : n % 4],
  deferred_at: ago(n * 61),
  tried_at: ago(n * 37),
  feed: n % 8 === 3 ? "inbox/billing" : "default",
});
const deadLetters = Array.from({ length: 39 }, (_, i) => dead(i + 1)).reverse();

let next = 0;
export function tail() {
  next++;
  return {
    ...row(500 + next),
    id: uuid(100000 + next),
    seq: 918273 + next,
    status: "pending",
    attempts: 0,
    last_error: undefined,
    enqueued_at: ago(0),
  };
}

const text = `{
  "order": 48017,
  "customer": {
    "name": "Nguyễn Thị Hồng",
    "city": "Hà Nội",
    "email": "hong@example.com",
    "note": "giao hàng sau 18h \u202e evil\u202c"
  },
  "account": 12345678901234567890,
  "total": 1.10,
  "currency": "VND",
  "lines": [
    { "sku": "TEA-001", "name": "龙井茶 250g", "quantity": 2, "price": 185000.00 },
    { "sku": "CUP-014", "name": "Chén sứ Bát Tràng", "quantity": 4, "price": 4.5e4 }
  ],
  "gift": false,
  "coupon": null,
  "card": { "number": "••••", "holder": "HONG NGUYEN" }
}`;

function journey(id) {
  const l = deadLetters.find((x) => x.id === id);
  const r = l ?? row(Array.from({ length: 400 }, (_, i) => i).find((i) => uuid(i) === id) ?? 8);
  const isDead = r.status === "dead" || r.status === "parked";
  const e = Date.parse(r.enqueued_at);
  const at = (s) => new Date(e + s * 1000).toISOString();
  const timeline = [
    { at: at(-0.118), kind: "occurred", text: "it happened" },
    { at: at(0), kind: "enqueued", text: "written to the log" },
    ...(isDead
      ? [
          { at: at(0.8), kind: "deferred", where: "default", text: "deferred by the relay" },
          {
            at: at(1900),
            kind: "attempt",
            where: "default",
            text: "12 attempts so far, the last one here",
            detail: r.last_error,
          },
          {
            at: at(1900),
            kind: "dead",
            where: "default",
            text: "moved to dead deadLetters",
            detail: r.last_error,
          },
          { at: at(2400), kind: "acted", where: "default", text: "park by lan.pham", detail: "wait for partner" },
        ]
      : [
          { at: at(0.021), kind: "published", where: "default", text: "recorded as delivered" },
          { at: at(0.094), kind: "received", where: "billing", text: "handled by billing" },
          { at: at(0.131), kind: "received", where: "shipping", text: "handled by shipping" },
        ]),
    { kind: "due", where: "search-index", at: at(7200), text: "due" },
  ];
  return {
    message: {
      id: r.id,
      type: r.type,
      aggregate_type: "order",
      aggregate_id: "48017",
      key: r.key,
      topic: r.topic,
      tenant: r.tenant,
      content_type: "application/json",
      schema_version: 7,
      occurred_at: at(-0.118),
      correlation_id: uuid(77),
      causation_id: uuid(78),
      headers: {
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "x-shop": "hà-nội-1",
        source: "checkout",
      },
      payload: { hidden: false, redacted: ["$.card.number"], kind: "json", text, bytes: 612, truncated: false },
    },
    in_log: true,
    seq: r.seq,
    shard: r.shard,
    enqueued_at: r.enqueued_at,
    feeds: [
      {
        feed: "default",
        status: isDead ? r.status : "published",
        blocking: isDead,
        attempts: r.attempts,
        last_error: r.last_error,
        deferred_at: isDead ? at(0.8) : undefined,
        tried_at: isDead ? at(1900) : undefined,
        settled: isDead ? undefined : at(0.021),
      },
      { feed: "search-index", status: "pending", attempts: 0 },
      ...(isDead
        ? []
        : [
            {
              feed: "inbox/thông-báo",
              status: "retry",
              attempts: 2,
              last_error: "smtp: 451 try again later",
              available_at: ago(-30),
              tried_at: ago(20),
            },
          ]),
    ],
    receipts: isDead
      ? []
      : [
          { consumer: "billing", at: at(0.094) },
          { consumer: "shipping", at: at(0.131) },
        ],
    records: isDead
      ? [{ n: 41, at: at(2400), who: "lan.pham", action: "park", why: "wait for partner", feed: "default", count: 1 }]
      : [],
    timeline,
    trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
    command: `postrider messages show ${r.id}`,
  };
}

const matching = (q) =>
  deadLetters.filter(
    (l) =>
      (!q.get("feed") || l.feed === q.get("feed")) &&
      (!q.get("consumer") || l.feed === `inbox/${q.get("consumer")}`) &&
      (!q.get("type") || l.type === q.get("type")) &&
      (!q.get("error") || l.last_error.includes(q.get("error"))) &&
      (!q.get("key") || l.key === q.get("key")),
  );
const fromFilter = (f) =>
  new URLSearchParams(Object.entries(f ?? {}).filter(([, v]) => typeof v === "string" && v !== ""));

let job = {
  id: 18,
  state: "running",
  filter: { feed: "default" },
  dead: true,
  rate: 20,
  by: { who: "you", why: "broker fixed" },
  created: ago(0),
  total: 37,
  sent: 0,
  delivered: 0,
  failed: 0,
};

export const routes = {
  "GET /me": () => ({
    name: "lan.pham",
    role: process.env.MOCK_ROLE ?? "admin",
    payloads: true,
    via: "local",
    version: "0.9.0",
    databases: ["orders", "上海-仓库"],
    pages: [
      "overview",
      "messages",
      "dead",
      "keys",
      "feeds",
      "relays",
      "consumers",
      "replays",
      "sagas",
      "idempotency",
      "reconcilers",
      "databases",
      "doctor",
      "audit",
    ],
    trace_url: "https://traces.example/trace/{trace_id}",
    can_logout: true,
  }),
  "GET /overview": overview,
  "GET /series": (url) => series(Number(url.searchParams.get("minutes") ?? 15)),
  "GET /feeds": feeds,
  "GET /consumers": consumers,
  "GET /messages": (url) => {
    const q = url.searchParams;
    const from = Number(q.get("cursor") ?? 0);
    const all = Array.from({ length: 400 }, (_, i) => row(i)).filter((r) =>
      ["type", "topic", "key", "tenant", "status", "id"].every((k) => !q.get(k) || r[k] === q.get(k)),
    );
    return { items: all.slice(from, from + 50), cursor: from + 50 < all.length ? String(from + 50) : undefined };
  },
  "GET /messages/:id": (_, p) => journey(p.id),
  "GET /dead": (url) => ({ items: matching(url.searchParams).slice(0, 50) }),
  "GET /dead/count": (url) => {
    const m = matching(url.searchParams);
    return { dead: m.filter((x) => x.status === "dead").length, parked: m.filter((x) => x.status === "parked").length };
  },
  "GET /dead/groups": (url) => {
    const m = matching(url.searchParams);
    const groups = errors
      .map((error) => ({ error, words: error.slice(0, 18), items: m.filter((x) => x.last_error === error) }))
      .filter((g) => g.items.length)
      .map((g) => ({
        error: g.error,
        words: g.words,
        count: g.items.length,
        newest: g.items[0].deferred_at,
        types: [...new Set(g.items.map((x) => x.type))].slice(0, 3),
        feeds: [...new Set(g.items.map((x) => x.feed))],
      }));
    return { sampled: m.length, all: true, groups };
  },
  "POST /dead/act": (_, __, b) => {
    const m = b.filter.id ? deadLetters.filter((x) => x.id === b.filter.id) : matching(fromFilter(b.filter));
    const command = `postrider dead ${b.act === "retry" ? "replay" : b.act} --all --feed default${b.rate ? ` --rate ${b.rate}` : ""}`;
    if (!b.dry_run && b.rate) job = { ...job, sent: 0, delivered: 0, state: "running" };
    return {
      count: m.length,
      dry_run: b.dry_run,
      sample: m.slice(0, 5),
      command,
      job: !b.dry_run && b.rate ? job : undefined,
    };
  },
  "PUT /dead/:feed/:id": (_, p) => ({ count: 1, dry_run: false, command: `postrider dead edit ${p.id}` }),
  "GET /replays/:id": () => {
    job = {
      ...job,
      sent: Math.min(37, job.sent + 9),
      delivered: Math.min(36, job.delivered + 8),
      failed: job.sent > 30 ? 1 : 0,
    };
    if (job.delivered + job.failed >= 37) job.state = "done";
    return job;
  },
  "GET /keys": () => [
    {
      feed: "default",
      key: "order/47995",
      since: ago(5210),
      waiting: 9,
      head: { ...dead(5), status: "dead", blocking: true, key: "order/47995" },
    },
    {
      feed: "default",
      key: "customer/Trần Văn Nam",
      since: ago(1800),
      waiting: 3,
      head: { ...dead(10), status: "retry", blocking: true, key: "customer/Trần Văn Nam" },
    },
    {
      feed: "default",
      key: "shipment/浦东-118",
      since: ago(95),
      waiting: 1,
      head: { ...dead(15), status: "dead", blocking: true, key: "shipment/浦东-118" },
    },
  ],
  "POST /keys/act": (_, __, b) => ({
    count: 1,
    dry_run: b.dry_run,
    sample: [dead(5)],
    command: `postrider keys ${b.act} ${b.key}`,
  }),
  "POST /replays": (_, __, b) => ({ count: 1, dry_run: b.dry_run, command: "postrider replay ID" }),
};
