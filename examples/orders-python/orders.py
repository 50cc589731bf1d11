"""An order service that tells others what happens to its orders: psycopg 3, and of Postrider nothing but SQL."""

import json
import os

import psycopg
from psycopg.types.json import Json, Jsonb


class SoldOut(Exception):
    """There is nothing left of an item."""


def place_order(conn: psycopg.Connection, item: str, cents: int) -> int:
    """Write an order and its message, both or neither, and return the order's number."""
    with conn.transaction():
        row = conn.execute("INSERT INTO orders (item, cents) VALUES (%s, %s) RETURNING id", (item, cents)).fetchone()
        order = row[0]
        conn.execute(
            "SELECT postrider.enqueue('order.placed', 'order', %s, %s, headers => %s)",
            (str(order), Json({"id": order, "item": item, "cents": cents}), Jsonb({"channel": "web"})),
        )
        taken = conn.execute("UPDATE stock SET remaining = remaining - 1 WHERE item = %s AND remaining > 0", (item,))
        if taken.rowcount == 0:
            raise SoldOut(item)  # rolls back: there was no order, and there is no message
    return order


def place_orders(conn: psycopg.Connection, items: list[str], cents: list[int]) -> list[int]:
    """Write many orders and their messages in one statement, and return the numbers of the orders."""
    with conn.transaction():
        rows = conn.execute(
            """
            WITH placed AS (
              INSERT INTO orders (item, cents) SELECT * FROM unnest(%s::text[], %s::int[]) RETURNING id, item, cents)
            SELECT id, postrider.enqueue('order.placed', 'order', id::text, row_to_json(placed), headers => %s)
            FROM placed
            """,
            (items, cents, Jsonb({"channel": "import"})),
        ).fetchall()
    return [row[0] for row in rows]


def pay_order(conn: psycopg.Connection, order: int, payment: str) -> bool:
    """Record a payment that the bank tells us of, perhaps not for the first time: returns whether it is news."""
    with conn.transaction():
        # First the row, which other writers wait for: the messages of an order then are in the order of its changes.
        conn.execute("UPDATE orders SET status = 'paid' WHERE id = %s AND status = 'placed'", (order,))
        row = conn.execute(
            "SELECT postrider.enqueue('order.paid', 'order', %s, %s, dedup_key => %s)",
            (str(order), Json({"id": order, "payment": payment}), f"payment:{payment}"),
        ).fetchone()
    return row[0] is not None  # null: a message with this key was written before


def ship_order(conn: psycopg.Connection, order: int) -> None:
    """Send an order off."""
    with conn.transaction():
        conn.execute("UPDATE orders SET status = 'shipped' WHERE id = %s", (order,))
        conn.execute("SELECT postrider.enqueue('order.shipped', 'order', %s, %s)", (str(order), Json({"id": order})))


def announce_prices(conn: psycopg.Connection, prices: dict[str, int]) -> None:
    """Write a great many messages with COPY, the quickest way in. It does not look at dedup keys."""
    columns = "type, aggregate_type, aggregate_id, content_type, payload"
    with conn.transaction(), conn.cursor() as cursor:
        with cursor.copy(f"COPY postrider.messages ({columns}) FROM STDIN") as copy:
            for item, cents in prices.items():
                payload = json.dumps({"item": item, "cents": cents}).encode()
                copy.write_row(("price.changed", "item", item, "application/json", payload))


def main() -> None:
    """Run the shop for a day."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as conn:
        conn.execute(
            """
            CREATE TABLE IF NOT EXISTS orders (
              id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
              item   text NOT NULL,
              cents  integer NOT NULL,
              status text NOT NULL DEFAULT 'placed')
            """
        )
        conn.execute("CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, remaining integer NOT NULL)")
        conn.execute("INSERT INTO stock VALUES ('saddle', 2), ('bridle', 1) ON CONFLICT DO NOTHING")

        orders = []
        for item, cents in [("saddle", 49900), ("bridle", 8900), ("bridle", 8900)]:
            try:
                orders.append(place_order(conn, item, cents))
                print(f"{item}: ordered")
            except SoldOut:
                print(f"{item}: sold out")
        orders += place_orders(conn, ["horseshoe"] * 50, [700 + n for n in range(50)])
        for order in orders:
            pay_order(conn, order, f"bank-{order}")
        print("paid twice:", pay_order(conn, orders[0], f"bank-{orders[0]}"))
        for order in orders[1:]:
            ship_order(conn, order)
        announce_prices(conn, {f"horseshoe-{size}": 700 + size for size in range(100)})


if __name__ == "__main__":
    main()
