package work

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Unnumbered is the number of keys of each destination whose messages do not contain their numbers.
const Unnumbered = 5

// Key returns the name of an ordinary key, from 0.
func Key(destination string, i int) string { return fmt.Sprintf("%s-%03d", destination, i) }

// UnnumberedKey returns the name of a key whose writers share no lock except Enqueue's, from 0.
func UnnumberedKey(destination string, i int) string { return fmt.Sprintf("%s-u%d", destination, i) }

// CreateTables creates the tables of the workload. The ledger is the truth about what was
// committed. Only keys are unique, so that duplicates are visible.
func CreateTables(ctx context.Context, db *pgx.Conn, plan Plan) error {
	_, err := db.Exec(ctx, `
		CREATE SCHEMA campaign;
		CREATE TABLE campaign.keys (key text PRIMARY KEY, destination text NOT NULL, seq bigint NOT NULL DEFAULT 0) WITH (fillfactor = 20);
		CREATE TABLE campaign.ledger (id uuid NOT NULL, destination text NOT NULL, key text NOT NULL, seq bigint NOT NULL, sum bigint NOT NULL,
		  poison boolean NOT NULL, unnumbered boolean NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
		CREATE TABLE campaign.effects (n bigserial, consumer text NOT NULL, destination text NOT NULL, key text NOT NULL, seq bigint NOT NULL,
		  id uuid NOT NULL);
		CREATE TABLE campaign.other (i integer);

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
		var names []string
		for i := range plan.Keys {
			names = append(names, Key(destination, i))
		}
		for i := range Unnumbered {
			names = append(names, UnnumberedKey(destination, i))
		}
		if err == nil {
			_, err = db.Exec(ctx, "INSERT INTO campaign.keys (key, destination) SELECT unnest($1::text[]), $2", names, destination)
		}
	}
	return err
}
