package work

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// CreateTables creates the tables of the workload. The ledger is the truth about what was
// committed. Only keys are unique, so that duplicates are visible.
//
// A publication of all tables, which Debezium creates by default, refuses updates of tables without
// a replica identity: the housekeeping of every part must go on.
func CreateTables(ctx context.Context, db *pgx.Conn, plan Plan) error {
	_, err := db.Exec(ctx, `
		CREATE SCHEMA campaign;
		CREATE TABLE campaign.keys (key text PRIMARY KEY, destination text NOT NULL, seq bigint NOT NULL DEFAULT 0) WITH (fillfactor = 20);
		CREATE TABLE campaign.ledger (id uuid NOT NULL, destination text NOT NULL, key text NOT NULL, seq bigint NOT NULL, sum bigint NOT NULL,
		  poison boolean NOT NULL, unnumbered boolean NOT NULL, unordered boolean NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
		CREATE TABLE campaign.effects (n bigserial, consumer text NOT NULL, destination text NOT NULL, key text NOT NULL, seq bigint NOT NULL,
		  id uuid NOT NULL);
		CREATE TABLE campaign.other (i integer);
		CREATE PUBLICATION everything FOR ALL TABLES;

		-- Messages of other senders that a broker has confirmed, and what became of them.
		CREATE SEQUENCE campaign.foreign_numbers;
		CREATE TABLE campaign.foreign (n bigint PRIMARY KEY, destination text NOT NULL, form text NOT NULL);
		CREATE TABLE campaign.foreign_ends (n bigint NOT NULL, error text NOT NULL DEFAULT '');
		CREATE FUNCTION campaign.note_foreign() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
		  INSERT INTO campaign.foreign_ends VALUES ((NEW.headers ->> 'campaign-foreign')::bigint, coalesce(NEW.last_error, ''));
		  RETURN NULL;
		END $$;
		CREATE TRIGGER note_foreign AFTER INSERT OR UPDATE ON postrider.deferred FOR EACH ROW
		  WHEN (NEW.status = 'dead' AND NEW.feed LIKE 'inbox/%' AND NEW.headers ? 'campaign-foreign') EXECUTE FUNCTION campaign.note_foreign();

		-- What the log gives up when it empties a slot, so that messages can be counted in the end.
		CREATE TABLE campaign.reclaimed (destination text NOT NULL, messages bigint NOT NULL);
		CREATE FUNCTION campaign.count_reclaimed() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
		  EXECUTE format('INSERT INTO campaign.reclaimed SELECT split_part(topic, ''.'', 1), count(*) FROM %I.%I m WHERE topic IS NOT NULL %s GROUP BY 1',
		    TG_TABLE_SCHEMA, TG_TABLE_NAME,
		    CASE WHEN to_regclass('pg_temp.postrider_kept') IS NOT NULL THEN  -- a rebase, which writes those again
		      'AND NOT EXISTS (SELECT FROM pg_temp.postrider_kept k WHERE k.id = m.id)' END);
		  RETURN NULL;
		END $$;
		DO $$
		DECLARE slot regclass;
		BEGIN
		  FOR slot IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'postrider.messages'::regclass LOOP
		    EXECUTE format('CREATE TRIGGER count_reclaimed BEFORE TRUNCATE ON %s EXECUTE FUNCTION campaign.count_reclaimed()', slot);
		  END LOOP;
		END $$;`, pgx.QueryExecModeSimpleProtocol)
	for _, destination := range plan.Destinations {
		if err == nil {
			_, err = db.Exec(ctx, "INSERT INTO campaign.keys (key, destination) SELECT unnest($1::text[]), $2", names(destination, plan.Keys), destination)
		}
	}
	return err
}
