// The overview and its series, as of a shop on a busy day. MOCK_HEALTHY=1: nothing is wrong.
const healthy = process.env.MOCK_HEALTHY === "1";
const ago = (s) => new Date(Date.now() - s * 1000).toISOString();
const none = { scheduled: 0, retry: 0, waiting: 0, dead: 0, parked: 0, blocked: 0, exact: true };
const wave = (t, period, low, high) => low + ((Math.sin((t / period) * 2 * Math.PI) + 1) / 2) * (high - low);

export function sample(at = Date.now() / 1000) {
  const t = Math.floor(at / 2) * 2;
  const noise = (k) => (Math.sin(t * k) + Math.sin(t * k * 1.7)) / 2;
  const enqueued = wave(t, 700, 320, 610) + noise(0.9) * 30;
  const bump = !healthy && t % 900 > 700 ? (t % 900) - 700 : 0;
  return {
    t,
    enqueued,
    published: Math.max(0, enqueued - bump * 0.6 + noise(1.3) * 14),
    failed: bump > 0 ? 2 + bump / 25 + noise(2.1) : 0,
    pending: Math.round(18 + noise(0.4) * 9 + bump * 14),
    oldest: 0.05 + bump * 0.4 + Math.abs(noise(0.3)) * 0.05,
    p50: 0.006 + Math.abs(noise(0.2)) * 0.002,
    p95: 0.021 + Math.abs(noise(0.5)) * 0.009 + bump * 0.0004,
    p99: 0.048 + Math.abs(noise(0.7)) * 0.03 + bump * 0.001,
  };
}

export function series(minutes) {
  const step = minutes <= 15 ? 4 : minutes <= 60 ? 15 : 300;
  const end = Math.floor(Date.now() / 1000 / step) * step;
  const all = [];
  for (let t = end - minutes * 60; t <= end; t += step) all.push({ ...sample(t), t });
  const column = (k) => all.map((s) => s[k]);
  const out = { step };
  for (const k of ["t", "enqueued", "published", "failed", "pending", "oldest", "p50", "p95", "p99"])
    out[k] = column(k);
  return out;
}

export function feeds() {
  const s = sample();
  const problem = (feed, kind, severity, text, params, command, page) => ({
    kind,
    severity,
    feed,
    text,
    params,
    command,
    page,
  });
  const all = [
    {
      name: "default",
      paused: false,
      relays: 3,
      pending: { n: s.pending, exact: true },
      oldest: ago(s.oldest),
      settled: ago(0.2),
      canary: ago(3),
      rate: s.published * 0.7,
      to: "kafka://orders",
      deferred: { ...none, retry: 4, dead: 37, blocked: 3, waiting: 12 },
      problems: [
        problem(
          "default",
          "blocked",
          "problem",
          "3 keys are blocked",
          { n: 3 },
          "postrider keys blocked --feed default",
          "/keys?feed=default",
        ),
        problem(
          "default",
          "dead",
          "problem",
          "37 dead letters",
          { n: 37 },
          "postrider dead ls --feed default",
          "/dead?feed=default",
        ),
      ],
    },
    {
      name: "search-index",
      paused: true,
      relays: 1,
      pending: { n: 48210, exact: false },
      oldest: ago(5400),
      settled: ago(5400),
      rate: 0,
      deferred: none,
      problems: [
        problem(
          "search-index",
          "late",
          "problem",
          "48,210 messages to deliver, the oldest for 1h 30m",
          { n: 48210, seconds: 5400 },
          "postrider messages ls --status pending --feed search-index",
          "/messages?feed=search-index&status=pending",
        ),
        problem(
          "search-index",
          "paused",
          "warning",
          "it is paused",
          {},
          "postrider feeds resume search-index",
          "/feeds/search-index",
        ),
      ],
    },
    {
      name: "warehouse-hanoi",
      paused: false,
      relays: 2,
      pending: { n: 3, exact: true },
      oldest: ago(0.4),
      settled: ago(0.3),
      canary: ago(2),
      rate: s.published * 0.3,
      to: "nats://warehouse",
      deferred: none,
      problems: [],
    },
  ];
  return healthy
    ? all.map((f) => ({
        ...f,
        paused: false,
        pending: { n: Math.min(f.pending.n, 12), exact: true },
        oldest: ago(0.2),
        deferred: none,
        problems: [],
        rate: f.rate || 44,
      }))
    : all;
}

export function consumers() {
  const all = [
    {
      name: "billing",
      created: ago(86400 * 90),
      last: ago(0.3),
      deferred: { ...none, dead: 2 },
      problems: [
        {
          kind: "consumer_dead",
          severity: "problem",
          consumer: "billing",
          text: "2 dead letters",
          params: { n: 2 },
          command: "postrider dead ls --consumer billing",
          page: "/dead?consumer=billing",
        },
      ],
    },
    { name: "shipping", created: ago(86400 * 90), last: ago(0.5), deferred: { ...none, retry: 1 }, problems: [] },
    { name: "thông-báo", created: ago(86400 * 12), last: ago(2), deferred: none, problems: [] },
  ];
  return healthy ? all.map((c) => ({ ...c, deferred: none, problems: [] })) : all;
}

export function overview() {
  const f = feeds();
  const c = consumers();
  const problems = [...f.flatMap((x) => x.problems), ...c.flatMap((x) => x.problems)];
  if (!healthy)
    problems.push({
      kind: "saga_stuck",
      severity: "problem",
      text: "1 saga is stuck",
      params: { n: 1 },
      command: "postrider saga ls --status stuck",
      page: "/sagas?status=stuck",
    });
  problems.sort((a, b) => a.severity.localeCompare(b.severity));
  return {
    at: new Date().toISOString(),
    healthy: problems.length === 0,
    problems,
    feeds: f,
    consumers: c,
    totals: {
      pending: { n: f.reduce((n, x) => n + x.pending.n, 0), exact: healthy },
      dead: { n: healthy ? 0 : 39, exact: true },
      blocked: { n: healthy ? 0 : 3, exact: true },
      oldest: healthy ? ago(0.2) : ago(5400),
    },
  };
}
