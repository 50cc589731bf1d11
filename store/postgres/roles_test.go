package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestProducerRole holds that a producer can write messages in every way, and nothing else.
func TestProducerRole(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		h.enqueue(3)
		h.deliverAll("f")
		producer := h.as(dsn, "producer")
		for _, way := range waysToWrite {
			if way.name == "returning" || way.name == "with" {
				continue // returns columns, which is reading
			}
			if err := producer.write(t.Context(), way.write); err != nil {
				t.Errorf("%s: %v", way.name, err)
			}
		}
		producer.mustNotBeAllowed(
			"SELECT type FROM @.messages",
			"SELECT type FROM @.messages_0",
			"SELECT * FROM @.message_status",
			"SELECT * FROM @.cursors",
			"UPDATE @.messages SET type = 'x'",
			"DELETE FROM @.messages",
			"TRUNCATE @.messages",
			"TRUNCATE @.messages_0",
			"LOCK TABLE @.messages IN ACCESS EXCLUSIVE MODE",
			"INSERT INTO @.messages_0 (type) VALUES ('t')",
			"INSERT INTO @.messages (type, xid) VALUES ('t', '1')",
			"INSERT INTO @.messages (type, seq) VALUES ('t', 1)",
			"INSERT INTO @.messages (type, slot) VALUES ('t', 1)",
			"INSERT INTO @.messages (type, created_at) VALUES ('t', now())",
			"INSERT INTO @.messages (type) VALUES ('t') RETURNING seq",
			"COPY @.messages (type, seq) FROM STDIN",
			"SELECT setval('@.message_seq', 1)",
			"SELECT last_value FROM @.message_seq",
			"INSERT INTO @.feeds (name) VALUES ('x')",
			"SELECT @.open_feed('x')",
			"SELECT @.balance('f', gen_random_uuid(), 'x', '1 s')",
			"SELECT @.leave_feed('f', gen_random_uuid())",
			"DELETE FROM @.checkpoints",
			"INSERT INTO @.checkpoints (feed, shard, n, until, lo, s1) VALUES ('f', 0, 9, now(), 0, '1:1:')",
			"UPDATE @.identity SET system_identifier = 1",
			"SELECT @.reclaim()",
			"SELECT @.sweep()",
			"SELECT @.rebase()",
			"SELECT @.move_in()",
			"CREATE TABLE @.x ()",
		)
	})
}

// TestRelayRole holds that a relay can do all of its work, and cannot change or remove a message.
func TestRelayRole(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		relay := h.as(dsn, "relay")
		relay.deliverAll("f") // creates the feed
		h.exec(fill)
		relay.deliverAll("f")
		relay.mustReclaim(true)
		relay.mustDeliver("f", h.enqueue(20))

		relay.mustNotBeAllowed(
			"INSERT INTO @.messages (type) VALUES ('t')",
			"SELECT @.enqueue('t', payload => '1')",
			"UPDATE @.messages SET type = 'x'",
			"DELETE FROM @.messages",
			"TRUNCATE @.messages",
			"TRUNCATE @.messages_0",
			"SELECT nextval('@.message_seq')",
			"UPDATE @.checkpoints SET lo = 0",
			"DELETE FROM @.checkpoints",
			"DELETE FROM @.feeds",
			"UPDATE @.identity SET system_identifier = 1",
			"DELETE FROM @.generation",
			"SELECT @.rebase()",
			"SELECT @.move_in()",
			"CREATE TABLE @.x ()",
		)
		relay.exec("SELECT * FROM @.message_status")
		h.exec(restored)
		relay.mustBeForeign("f")
	})
}

// as returns the same log, used with the rights of one of its roles.
func (h *house) as(dsn, role string) *house {
	h.t.Helper()
	ctx := h.t.Context()
	migrator, err := postgres.NewMigrator(h.pool, h.cfg, postgres.Layout{})
	if err != nil {
		h.t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := migrator.Roles(ctx); err != nil {
			h.t.Fatal(err)
		}
	}
	producer, relay := h.cfg.Schema+"_producer", h.cfg.Schema+"_relay"
	h.t.Cleanup(func() { // roles belong to the whole cluster
		_, err := h.pool.Exec(context.Background(), "DROP OWNED BY "+producer+", "+relay+"; DROP ROLE "+producer+", "+relay,
			pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			h.t.Error(err)
		}
	})
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		h.t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["role"] = h.cfg.Schema + "_" + role
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(pool.Close)
	store, err := postgres.New(pool, h.cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	return &house{h.t, pool, h.cfg, store, h.outbox}
}

func (h *house) mustNotBeAllowed(statements ...string) {
	h.t.Helper()
	for _, sql := range statements {
		err := h.write(h.t.Context(), statement(sql))
		if sqlState(err) != "42501" { // insufficient_privilege
			h.t.Errorf("%s: %v", sql, err)
		}
	}
}
