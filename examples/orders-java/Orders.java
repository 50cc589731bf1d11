import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;

/** An order service that tells others what happens to its orders: JDBC, and of Postrider nothing but SQL. */
public class Orders {
    /** There is nothing left of an item. */
    static class SoldOut extends Exception {}

    /** Writes an order and its message, both or neither, and returns the order's number. */
    static long placeOrder(Connection db, String item, int cents) throws SQLException, SoldOut {
        return Orders.<Long, SoldOut>inTransaction(db, () -> {
            long order = one(db, Long.class, "INSERT INTO orders (item, cents) VALUES (?, ?) RETURNING id", item, cents);
            one(db, UUID.class, """
                SELECT postrider.enqueue('order.placed', 'order', ?, json_build_object('id', ?, 'item', ?, 'cents', ?),
                  headers => ?::jsonb)""", Long.toString(order), order, item, cents, "{\"channel\": \"web\"}");
            int taken = update(db, "UPDATE stock SET remaining = remaining - 1 WHERE item = ? AND remaining > 0", item);
            if (taken == 0) {
                throw new SoldOut(); // rolls back: there was no order, and there is no message
            }
            return order;
        });
    }

    /** Writes many orders and their messages in one statement, and returns the numbers of the orders. */
    static List<Long> placeOrders(Connection db, List<String> items, List<Integer> cents) throws SQLException {
        // A statement on its own is a transaction.
        return all(db, Long.class, """
            WITH placed AS (
              INSERT INTO orders (item, cents) SELECT * FROM unnest(?::text[], ?::int[]) RETURNING id, item, cents)
            SELECT id, postrider.enqueue('order.placed', 'order', id::text, row_to_json(placed), headers => ?::jsonb)
            FROM placed""",
            db.createArrayOf("text", items.toArray()), db.createArrayOf("int4", cents.toArray()), "{\"channel\": \"import\"}");
    }

    /** Records a payment that the bank tells us of, perhaps not for the first time: returns whether it is news. */
    static boolean payOrder(Connection db, long order, String payment) throws SQLException {
        return Orders.<Boolean, RuntimeException>inTransaction(db, () -> {
            // First the row, which other writers wait for: the messages of an order then are in the order of its changes.
            update(db, "UPDATE orders SET status = 'paid' WHERE id = ? AND status = 'placed'", order);
            UUID message = one(db, UUID.class, """
                SELECT postrider.enqueue('order.paid', 'order', ?, json_build_object('id', ?, 'payment', ?), dedup_key => ?)""",
                Long.toString(order), order, payment, "payment:" + payment);
            return message != null; // null: a message with this key was written before
        });
    }

    /** Sends an order off. */
    static void shipOrder(Connection db, long order) throws SQLException {
        Orders.<UUID, RuntimeException>inTransaction(db, () -> {
            update(db, "UPDATE orders SET status = 'shipped' WHERE id = ?", order);
            return one(db, UUID.class, "SELECT postrider.enqueue('order.shipped', 'order', ?, json_build_object('id', ?))",
                Long.toString(order), order);
        });
    }

    /** Runs the shop for a day. */
    public static void main(String[] args) throws SQLException {
        try (Connection db = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
            update(db, """
                CREATE TABLE IF NOT EXISTS orders (
                  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                  item   text NOT NULL,
                  cents  integer NOT NULL,
                  status text NOT NULL DEFAULT 'placed')""");
            update(db, "CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, remaining integer NOT NULL)");
            update(db, "INSERT INTO stock VALUES ('saddle', 2), ('bridle', 1) ON CONFLICT DO NOTHING");

            List<Long> orders = new ArrayList<>();
            for (String item : List.of("saddle", "bridle", "bridle")) {
                try {
                    orders.add(placeOrder(db, item, item.equals("saddle") ? 49900 : 8900));
                    System.out.println(item + ": ordered");
                } catch (SoldOut e) {
                    System.out.println(item + ": sold out");
                }
            }
            orders.addAll(placeOrders(db, Collections.nCopies(50, "horseshoe"), IntStream.range(700, 750).boxed().toList()));
            for (long order : orders) {
                payOrder(db, order, "bank-" + order);
            }
            System.out.println("paid twice: " + payOrder(db, orders.get(0), "bank-" + orders.get(0)));
            for (long order : orders.subList(1, orders.size())) {
                shipOrder(db, order);
            }
        }
    }

    /** What is done in one transaction. */
    interface Work<T, E extends Exception> {
        T run() throws SQLException, E;
    }

    /** Runs work in a transaction, which commits if it returns and rolls back if it throws. */
    static <T, E extends Exception> T inTransaction(Connection db, Work<T, E> work) throws SQLException, E {
        db.setAutoCommit(false);
        try {
            T result = work.run();
            db.commit();
            return result;
        } catch (Throwable t) {
            try {
                db.rollback();
            } catch (SQLException broken) {
                t.addSuppressed(broken); // the first error is the one to tell
            }
            throw t;
        } finally {
            db.setAutoCommit(true);
        }
    }

    /** Runs a statement and returns the first column of its only row. */
    static <T> T one(Connection db, Class<T> type, String sql, Object... args) throws SQLException {
        return all(db, type, sql, args).get(0);
    }

    /** Runs a statement and returns the first column of its rows. */
    static <T> List<T> all(Connection db, Class<T> type, String sql, Object... args) throws SQLException {
        try (PreparedStatement statement = prepare(db, sql, args); ResultSet row = statement.executeQuery()) {
            List<T> values = new ArrayList<>();
            while (row.next()) {
                values.add(row.getObject(1, type));
            }
            return values;
        }
    }

    /** Runs a statement and returns how many rows it has changed. */
    static int update(Connection db, String sql, Object... args) throws SQLException {
        try (PreparedStatement statement = prepare(db, sql, args)) {
            return statement.executeUpdate();
        }
    }

    static PreparedStatement prepare(Connection db, String sql, Object... args) throws SQLException {
        PreparedStatement statement = db.prepareStatement(sql);
        for (int i = 0; i < args.length; i++) {
            statement.setObject(i + 1, args[i]);
        }
        return statement;
    }
}
