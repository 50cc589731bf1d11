// Sagas in every state.
const ago = (s) => new Date(Date.now() - s * 1000).toISOString();
const statuses = [
  "running",
  "completed",
  "waiting",
  "completed",
  "compensated",
  "completed",
  "compensating",
  "completed",
];

export const sagas = Array.from({ length: 90 }, (_, i) => {
  const status = i === 4 ? "stuck" : statuses[i % statuses.length];
  const finished = status === "completed" || status === "compensated";
  return {
    name: ["book-trip", "order-fulfilment", "đăng-ký-học"][i % 3],
    id: `${["trip", "order", "học-viên"][i % 3]}-${7900 - i}`,
    status,
    started: ago(90 + i * 733),
    finished: finished ? ago(60 + i * 731) : undefined,
    cause: ["compensated", "compensating", "stuck"].includes(status)
      ? "charge-card: card_declined: insufficient funds"
      : undefined,
  };
});

const step = (name, state, after, more = {}) => ({
  name,
  state,
  after,
  attempts: 0,
  current: false,
  compensates: false,
  ...(state === "pending" ? {} : { started: ago(80) }),
  ...(["done", "failed", "undone", "skipped"].includes(state) ? { finished: ago(60) } : {}),
  ...more,
});

const shapes = {
  running: () => [
    step("reserve-seat", "done", [], { compensates: true }),
    step("flight", "done", ["reserve-seat"], { compensates: true }),
    step("hotel", "ready", ["reserve-seat"], {
      attempts: 2,
      due: ago(-34),
      error: "POST https://hotels.example/v2/bookings: 503 Service Unavailable",
      current: true,
      compensates: true,
    }),
    step("thuê-xe", "done", ["reserve-seat"], { compensates: true }),
    step("charge-card", "pending", ["flight", "hotel", "thuê-xe"]),
    step("发送确认邮件", "pending", ["charge-card"]),
    step("loyalty-points", "pending", ["charge-card"]),
  ],
  waiting: () => [
    step("create-order", "done", [], { compensates: true }),
    step("payment", "waiting", ["create-order"], { current: true, due: ago(-3600 * 5) }),
    step("pick", "pending", ["payment"]),
    step("ship", "pending", ["pick"]),
  ],
  compensating: () => [
    step("reserve-seat", "done", [], { compensates: true }),
    step("flight", "undone", ["reserve-seat"], { compensates: true }),
    step("hotel", "undoing", ["reserve-seat"], {
      compensates: true,
      current: true,
      attempts: 1,
      due: ago(-4),
      error: "DELETE booking 8812: 429 Too Many Requests",
    }),
    step("charge-card", "failed", ["flight", "hotel"], { attempts: 5, error: "card_declined: insufficient funds" }),
    step("confirm", "pending", ["charge-card"]),
  ],
  stuck: () => [
    step("reserve-seat", "done", [], { compensates: true }),
    step("flight", "stuck", ["reserve-seat"], {
      compensates: true,
      current: true,
      attempts: 8,
      error: "cancel PNR X8K2LM: airline api: 409 ticket already flown",
    }),
    step("hotel", "undone", ["reserve-seat"], { compensates: true }),
    step("charge-card", "failed", ["flight", "hotel"], { attempts: 5, error: "card_declined: insufficient funds" }),
    step("confirm", "pending", ["charge-card"]),
  ],
  completed: () => [
    step("create-order", "done", []),
    step("payment", "done", ["create-order"]),
    step("pick", "skipped", ["payment"]),
    step("ship", "done", ["pick"]),
  ],
  compensated: () => [
    step("create-order", "undone", [], { compensates: true }),
    step("reserve-stock", "undone", ["create-order"], { compensates: true }),
    step("payment", "failed", ["reserve-stock"], { attempts: 3, error: "card_declined" }),
    step("label", "cancelled", ["reserve-stock"]),
    step("ship", "pending", ["payment", "label"]),
  ],
};

export function sagaDetail(name, id) {
  const row = sagas.find((s) => s.name === name && s.id === id);
  if (!row) return undefined;
  const text = JSON.stringify(
    { customer: { name: "Nguyễn Thị Ánh", card: "•••" }, seats: ["12A", "12B"], total: "4180000.00", currency: "VND" },
    null,
    2,
  );
  return {
    ...row,
    steps: shapes[row.status](),
    signals: row.status === "completed" ? [{ name: "payment", at: ago(70) }] : [],
    data: { hidden: false, redacted: ["$.customer.card"], kind: "json", text, bytes: 212, truncated: false },
    command: `postrider saga show ${id} --name ${name}`,
  };
}
