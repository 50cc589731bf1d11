package postgres_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/headers"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// FuzzEnqueue calls enqueue with random input. The function must refuse it with an error class that
// means invalid input, or the log must contain what was passed.
func FuzzEnqueue(f *testing.F) {
	f.Add("order.placed", "order-1", "shop", "traceparent", "00-1", []byte(`{"a":1}`), int32(1), int32(0))
	f.Add("", "", "", "", "", []byte(nil), int32(-1), int32(-5))
	f.Add("t'); DROP TABLE messages; --", "k\x00", "\xff", "\\u0000", "\xed\xa0\x80", []byte{0, 255, '\''}, int32(1<<31-1), int32(-1<<31))
	pool := pgtest.Pool(f, pgtest.Env(f, "POSTRIDER_TEST_POSTGRES18"))
	cfg := pgtest.Schema(f, pool, postgres.Layout{})
	ours := regexp.MustCompile(`^(22|23)`) // data exception, integrity constraint violation
	f.Fuzz(func(t *testing.T, kind, key, tenant, header, value string, payload []byte, version, priority int32) {
		given, err := json.Marshal(map[string]string{header: value})
		if err != nil {
			t.Fatal(err)
		}
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context()) // nothing is kept
		var id string
		err = tx.QueryRow(t.Context(), "SELECT "+cfg.Schema+`.enqueue($1, key => $2, tenant_id => $3, headers => $4::text::jsonb, payload_bytes => $5,
			schema_version => $6, priority => $7)::text`, kind, key, tenant, string(given), payload, version, priority).Scan(&id)
		if err != nil {
			if !ours.MatchString(sqlState(err)) {
				t.Fatalf("%v", err)
			}
			return
		}
		var gotKind, gotKey, gotTenant, gotHeaders string
		var gotPayload []byte
		var gotVersion int32
		var gotPriority *int32
		if err := tx.QueryRow(t.Context(), "SELECT type, key, tenant_id, headers::text, payload, schema_version, priority FROM "+cfg.Schema+
			".messages WHERE id = $1::text::uuid", id).Scan(&gotKind, &gotKey, &gotTenant, &gotHeaders, &gotPayload, &gotVersion, &gotPriority); err != nil {
			t.Fatal(err)
		}
		if gotKind != kind || gotKey != key || gotTenant != tenant || !bytes.Equal(gotPayload, payload) || gotVersion != version ||
			gotPriority == nil || *gotPriority != priority {
			t.Errorf("%q %q %q %q %d %v", gotKind, gotKey, gotTenant, gotPayload, gotVersion, gotPriority)
		}
		if got := headers.Parse([]byte(gotHeaders)); !maps.Equal(got, headers.Parse(given)) {
			t.Errorf("headers %q became %q", given, gotHeaders)
		}
	})
}

// FuzzSchemaName verifies that a schema name is refused, or is a single SQL word wherever it is
// used.
func FuzzSchemaName(f *testing.F) {
	for _, name := range []string{"postrider", `a"; DROP SCHEMA public; --`, "pg_x", "A", "ä", "a\x00", strings.Repeat("a", 49), "1a", "a.b", "a$b"} {
		f.Add(name)
	}
	words := regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	f.Fuzz(func(t *testing.T, name string) {
		script, err := postgres.NewScript(postgres.Config{Schema: name}, postgres.Layout{})
		if err != nil || name == "" {
			return
		}
		if !words.MatchString(name) {
			t.Fatalf("%q was accepted", name)
		}
		if slices.ContainsFunc([]string{script.All(), script.Roles()}, func(sql string) bool { return strings.Contains(sql, "@schema@") }) {
			t.Error("a place was left open")
		}
	})
}
