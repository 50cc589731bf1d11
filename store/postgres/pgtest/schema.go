package pgtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
)

// common is the database that tests use unless they create their own.
const common = "postrider"

// Schema lends the test a schema that looks freshly migrated. When the test ends, the schema stays
// on the server for the next test, of any process, that asks for the same layout: migrating one
// takes longer than most tests. A test may change the schema in any way; a changed one is not lent
// again.
func Schema(t testing.TB, pool *pgxpool.Pool, layout postgres.Layout) postgres.Config {
	t.Helper()
	at := pool.Config().ConnConfig
	server := fmt.Sprintf("%s_%d_%s", filepath.Base(at.Host), at.Port, at.Database)
	kind := fmt.Sprintf("test_%s_%.4x", code(t), sha256.Sum256([]byte(fmt.Sprint(layout))))
	if at.Database != common { // roles belong to the server, and are named after the schema
		kind += fmt.Sprintf("_%.3x", sha256.Sum256([]byte(at.Database)))
	}
	for n := 0; ; n++ {
		cfg := postgres.Config{Schema: fmt.Sprintf("%s_%d", kind, n)}
		file := take(t, server, cfg.Schema)
		if file == nil {
			continue
		}
		s := &lent{t, pool, cfg, file}
		if !s.renew() {
			s.create(layout)
		}
		t.Cleanup(s.giveBack)
		return cfg
	}
}

// code distinguishes the schemas of different versions of the code.
func code(t testing.TB) string {
	t.Helper()
	script, err := postgres.NewScript(postgres.Config{}, postgres.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for version := 1; version <= postgres.SchemaVersion(); version++ {
		h.Write([]byte(script.Up(version)))
	}
	h.Write([]byte(script.Functions()))
	return fmt.Sprintf("%.4x", h.Sum(nil))
}

// take locks the file that stands for a schema. It returns nil if another test has the lock. The
// lock ends with the process.
func take(t testing.TB, server, schema string) *os.File {
	t.Helper()
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("postrider-schemas-%d", os.Getuid()))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(folder, server+"_"+schema), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if !locked(file) {
		_ = file.Close()
		return nil
	}
	return file
}

// locked locks a file, and reports whether it got the lock and the file still exists.
func locked(file *os.File) bool {
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(file.Name())
	return err == nil && os.SameFile(mine, there)
}

// lent is a schema that is lent to this test. Its file holds the fingerprint of the fresh schema.
// If the file is empty, the schema cannot be used again.
type lent struct {
	t    testing.TB
	pool *pgxpool.Pool
	cfg  postgres.Config
	file *os.File
}

// renew empties the schema. It returns false if that is impossible or not enough.
func (s *lent) renew() bool {
	was, err := os.ReadFile(s.file.Name())
	if err != nil || len(was) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	is, err := s.print(ctx)
	if err != nil || is != string(was) {
		return false
	}
	_, err = s.pool.Exec(ctx, s.in(emptySchema), pgx.QueryExecModeSimpleProtocol)
	return err == nil
}

func (s *lent) create(layout postgres.Layout) {
	s.t.Helper()
	ctx := s.t.Context()
	if err := s.file.Truncate(0); err != nil {
		s.t.Fatal(err)
	}
	s.dropOld()
	Drop(s.t, s.pool, s.cfg.Schema)
	db, err := postgres.Open(s.pool, s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	migrator, err := db.Migrator(layout)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := migrator.Up(ctx); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.pool.Exec(ctx, s.in("INSERT INTO @.generation DEFAULT VALUES")); err != nil { // as a relay does
		s.t.Fatal(err)
	}
	fingerprint, err := s.print(ctx)
	if err == nil {
		_, err = s.file.WriteAt([]byte(fingerprint), 0)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// dropOld drops schemas of other versions of the code, which no test of this checkout uses again.
func (s *lent) dropOld() {
	s.t.Helper()
	same := "test_" + code(s.t) + "_"
	all, err := filepath.Glob(strings.TrimSuffix(s.file.Name(), s.cfg.Schema) + "test_*")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range all {
		schema := name[strings.LastIndex(name, "test_"):]
		if strings.HasPrefix(schema, same) {
			continue
		}
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue // another test removed it first
		}
		if locked(file) {
			Drop(s.t, s.pool, schema)
			_ = os.Remove(name)
		}
		_ = file.Close()
	}
}

func (s *lent) giveBack() {
	if s.t.Failed() { // keep the evidence until another test needs the schema
		_ = s.file.Truncate(0)
	}
	if s.pool.Config().ConnConfig.Database != common { // the database is dropped
		_ = os.Remove(s.file.Name())
	}
	_ = s.file.Close()
}

func (s *lent) in(sql string) string { return strings.ReplaceAll(sql, "@.", s.cfg.Schema+".") }

// print returns a fingerprint, which changes with every change of the layout and of the rows that
// renew keeps.
func (s *lent) print(ctx context.Context) (text string, err error) {
	err = s.pool.QueryRow(ctx, s.in(`
		WITH tables AS MATERIALIZED (SELECT oid, xmin FROM pg_class WHERE relnamespace = '`+s.cfg.Schema+`'::regnamespace)
		SELECT md5(string_agg(x, ',' ORDER BY x)) FROM (
		            SELECT 'c' || oid || ' ' || xmin FROM tables
		  UNION ALL SELECT 'a' || a.attrelid || ' ' || a.attnum || ' ' || a.xmin FROM tables c JOIN pg_attribute a ON a.attrelid = c.oid
		  UNION ALL SELECT 't' || t.oid || ' ' || t.xmin FROM tables c JOIN pg_trigger t ON t.tgrelid = c.oid
		  UNION ALL SELECT 'n' || oid || ' ' || xmin FROM pg_namespace WHERE oid = '`+s.cfg.Schema+`'::regnamespace
		  UNION ALL SELECT 'p' || oid || ' ' || xmin FROM pg_proc WHERE pronamespace = '`+s.cfg.Schema+`'::regnamespace
		  UNION ALL SELECT 'o' || oid || ' ' || xmin FROM pg_constraint WHERE connamespace = '`+s.cfg.Schema+`'::regnamespace
		  UNION ALL SELECT 'i' || xmin FROM @.identity
		  UNION ALL SELECT 'm' || xmin FROM @.migrations
		  UNION ALL SELECT 'g' || xmin FROM @.generation) all_of_it(x)`)).Scan(&text)
	return text, err
}

// emptySchema deletes all rows, after the last writers of an earlier test have ended. It does not
// use TRUNCATE or ALTER SEQUENCE: these change the catalogue and make every session plan every
// statement again.
const emptySchema = `DO $$
DECLARE
  r regclass;
BEGIN
  SET LOCAL session_replication_role = replica;  -- or the record would not let itself be emptied
  SET LOCAL lock_timeout = '5s';
  FOR r IN SELECT oid FROM pg_class WHERE relnamespace = replace('@.', '.', '')::regnamespace AND relkind = 'r'
           AND relname NOT IN ('migrations', 'identity', 'generation') ORDER BY relname
  LOOP
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', r);
    EXECUTE format('DELETE FROM %s', r);
  END LOOP;
  FOR r IN SELECT oid FROM pg_class WHERE relnamespace = replace('@.', '.', '')::regnamespace AND relkind = 'S' LOOP
    PERFORM setval(r, 1, false);
  END LOOP;
END
$$`

// DropRoles drops the roles whose names begin with that of a schema, when the test ends. Roles
// belong to the whole server, so the next test that borrows the schema would find them.
func DropRoles(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), `DO $$
			DECLARE
			  r name;
			BEGIN
			  FOR r IN SELECT rolname FROM pg_roles WHERE starts_with(rolname, '`+schema+`_') LOOP
			    EXECUTE format('DROP OWNED BY %I', r);
			    EXECUTE format('DROP ROLE %I', r);
			  END LOOP;
			END
			$$`, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Error(err)
		}
	})
}

// Drop removes a schema. It waits for a server that is restarting. It retries after a deadlock with
// a session of a killed process that still holds locks.
func Drop(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		_, err := pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE")
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "40P01" && ctx.Err() == nil {
			continue
		}
		if err != nil {
			t.Errorf("drop schema %s: %v", schema, err)
		}
		return
	}
}
