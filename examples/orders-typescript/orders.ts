// An order service that tells others what happens to its orders: node-postgres, and of Postrider nothing but SQL.

import pg from "pg";

/** There is nothing left of an item. */
class SoldOut extends Error {}

/** Runs work in a transaction, which commits if it returns and rolls back if it throws. */
async function inTransaction<T>(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
  const tx = await pool.connect();
  let broken = false;
  try {
    await tx.query("BEGIN");
    const result = await work(tx);
    await tx.query("COMMIT");
    return result;
  } catch (error) {
    await tx.query("ROLLBACK").catch(() => (broken = true)); // the first error is the one to tell
    throw error;
  } finally {
    tx.release(broken);
  }
}

/** Writes an order and its message, both or neither, and returns the order's number. */
async function placeOrder(pool: pg.Pool, item: string, cents: number): Promise<number> {
  return inTransaction(pool, async (tx) => {
    const inserted = await tx.query<{ id: number }>(
      "INSERT INTO orders (item, cents) VALUES ($1, $2) RETURNING id",
      [item, cents],
    );
    const { id } = inserted.rows[0]!;
    await tx.query("SELECT postrider.enqueue('order.placed', 'order', $1, $2, headers => $3)", [
      String(id),
      { id, item, cents },
      { channel: "web" },
    ]);
    const taken = await tx.query("UPDATE stock SET remaining = remaining - 1 WHERE item = $1 AND remaining > 0", [item]);
    if (taken.rowCount === 0) {
      throw new SoldOut(item); // rolls back: there was no order, and there is no message
    }
    return id;
  });
}

/** Writes many orders and their messages in one statement, and returns the numbers of the orders. */
async function placeOrders(pool: pg.Pool, items: string[], cents: number[]): Promise<number[]> {
  // A statement on its own is a transaction.
  const placed = await pool.query<{ id: number }>(
    `WITH placed AS (
       INSERT INTO orders (item, cents) SELECT * FROM unnest($1::text[], $2::int[]) RETURNING id, item, cents)
     SELECT id, postrider.enqueue('order.placed', 'order', id::text, row_to_json(placed), headers => $3)
     FROM placed`,
    [items, cents, { channel: "import" }],
  );
  return placed.rows.map((row) => row.id);
}

/** Records a payment that the bank tells us of, perhaps not for the first time: returns whether it is news. */
async function payOrder(pool: pg.Pool, order: number, payment: string): Promise<boolean> {
  return inTransaction(pool, async (tx) => {
    // First the row, which other writers wait for: the messages of an order then are in the order of its changes.
    await tx.query("UPDATE orders SET status = 'paid' WHERE id = $1 AND status = 'placed'", [order]);
    const told = await tx.query<{ message: string | null }>(
      "SELECT postrider.enqueue('order.paid', 'order', $1, $2, dedup_key => $3) AS message",
      [String(order), { id: order, payment }, `payment:${payment}`],
    );
    return told.rows[0]!.message !== null; // null: a message with this key was written before
  });
}

/** Sends an order off. */
async function shipOrder(pool: pg.Pool, order: number): Promise<void> {
  await inTransaction(pool, async (tx) => {
    await tx.query("UPDATE orders SET status = 'shipped' WHERE id = $1", [order]);
    await tx.query("SELECT postrider.enqueue('order.shipped', 'order', $1, $2)", [String(order), { id: order }]);
  });
}

/** Runs the shop for a day. */
async function main(): Promise<void> {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
  try {
    await pool.query(
      `CREATE TABLE IF NOT EXISTS orders (
         id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- pg returns a bigint as a string
         item   text NOT NULL,
         cents  integer NOT NULL,
         status text NOT NULL DEFAULT 'placed')`,
    );
    await pool.query("CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, remaining integer NOT NULL)");
    await pool.query("INSERT INTO stock VALUES ('saddle', 2), ('bridle', 1) ON CONFLICT DO NOTHING");

    const orders: number[] = [];
    for (const [item, cents] of [["saddle", 49900], ["bridle", 8900], ["bridle", 8900]] as const) {
      try {
        orders.push(await placeOrder(pool, item, cents));
        console.log(`${item}: ordered`);
      } catch (error) {
        if (!(error instanceof SoldOut)) throw error;
        console.log(`${item}: sold out`);
      }
    }
    const many = Array.from({ length: 50 }, (_, n) => 700 + n);
    orders.push(...(await placeOrders(pool, many.map(() => "horseshoe"), many)));
    for (const order of orders) {
      await payOrder(pool, order, `bank-${order}`);
    }
    console.log("paid twice:", await payOrder(pool, orders[0]!, `bank-${orders[0]}`));
    await Promise.all(orders.slice(1).map((order) => shipOrder(pool, order)));
  } finally {
    await pool.end();
  }
}

await main();
