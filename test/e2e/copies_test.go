package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// older advances a server's transaction IDs beyond those of a new one, as after some days of use.
// Where they overlap, a rebase treats some settled messages as new, and says so.
const older = "DO $$ BEGIN FOR i IN 1 .. 20000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"

// TestCopies copies a database in use in every common way. A relay beside a copy sends no message
// before an operator confirms, whatever its configured home, except for a copy of the server's
// files with the original's home: that is what a failover leaves.
func TestCopies(t *testing.T) {
	t.Parallel()
	server := newCluster(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15_BIN")).start()
	server.exec(t, "postgres", older)
	other := newCluster(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18_BIN")).start("max_logical_replication_workers=16", "max_sync_workers_per_subscription=4")
	for name, test := range map[string]func(*testing.T, *place, *cluster, *cluster){
		"template":                        testTemplate,
		"dump":                            testDump,
		"replication of a dumped schema":  testReplication,
		"replication into a fresh schema": testReplicationIntoFresh,
		"pg_basebackup":                   testBaseBackup,
		"data folder":                     testDataFolder,
	} {
		if often := map[string]bool{"template": true, "replication into a fresh schema": true, "data folder": true}; !need.IsLong() && !often[name] {
			continue // the others differ only in the tool that makes the copy
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := slugOf(name)
			server.exec(t, "postgres", "CREATE DATABASE "+database)
			original := placeOf(t, newReceiver(t), "original", server.dsn(database), "production")
			original.fill()
			test(t, original, server, other)
		})
	}
}

func slugOf(name string) string {
	text := []byte("app_" + name)
	for i, b := range text {
		if b == ' ' {
			text[i] = '_'
		}
	}
	return string(text)
}

func testTemplate(t *testing.T, original *place, server, _ *cluster) {
	server.exec(t, "postgres", "CREATE DATABASE staging TEMPLATE "+original.database())
	original.mustStayAlone(placeOf(t, original.to, "copy", server.dsn("staging"), "production"))
}

func testDump(t *testing.T, original *place, server, other *cluster) {
	other.exec(t, "postgres", "CREATE DATABASE dumped")
	dumpInto(t, server, original.dsn, other.dsn("dumped"))
	original.mustStayAlone(placeOf(t, original.to, "copy", other.dsn("dumped"), "production"))
}

// dumpInto pipes a dump of a database into another.
func dumpInto(t *testing.T, server *cluster, from, to string, options ...string) {
	t.Helper()
	dump := exec.CommandContext(t.Context(), filepath.Join(server.bin, "pg_dump"), append(options, from)...)
	restore := exec.CommandContext(t.Context(), filepath.Join(server.bin, "psql"), "--quiet", "--no-psqlrc", "--output", os.DevNull, "--set", "ON_ERROR_STOP=1", to)
	var err error
	if restore.Stdin, err = dump.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	if out, err := restore.CombinedOutput(); err != nil {
		t.Errorf("psql: %v\n%s", err, out)
	}
	if err := dump.Wait(); err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
}

func testReplication(t *testing.T, original *place, server, other *cluster) {
	other.exec(t, "postgres", "CREATE DATABASE replica")
	dumpInto(t, server, original.dsn, other.dsn("replica"), "--schema-only")
	replicate(t, original, server, other, "replica", "")
	original.mustStayAlone(placeOf(t, original.to, "copy", other.dsn("replica"), "production"))
}

func testReplicationIntoFresh(t *testing.T, original *place, server, other *cluster) {
	other.exec(t, "postgres", "CREATE DATABASE fresh")
	c := placeOf(t, original.to, "copy", other.dsn("fresh"), "production")
	c.must("migrate", "up")
	replicate(t, original, server, other, "fresh", "postrider.identity, postrider.migrations") // there is a row in each, which stays
	original.mustStayAlone(c)
}

// replicate subscribes a database to all tables of the original except those with conflicting rows,
// and returns when it has them. The subscription ends then, as when the copy takes over.
func replicate(t *testing.T, original *place, server, other *cluster, database, without string) {
	t.Helper()
	server.exec(t, original.database(), "CREATE PUBLICATION everything FOR TABLES IN SCHEMA postrider")
	other.exec(t, database, fmt.Sprintf("CREATE SUBSCRIPTION %s CONNECTION '%s' PUBLICATION everything", database, original.dsn))
	conn, err := pgx.Connect(t.Context(), other.dsn(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	waitFor(t, "the subscriber has all tables", func() error {
		var left string
		err := conn.QueryRow(t.Context(), "SELECT coalesce(string_agg(t, ', ' ORDER BY t), '') FROM (SELECT srrelid::regclass::text FROM pg_subscription_rel WHERE srsubstate <> 'r') r(t)").Scan(&left)
		if err == nil && left != without {
			err = fmt.Errorf("not yet: %s", left)
		}
		return err
	})
	other.exec(t, database, "DROP SUBSCRIPTION "+database)
}

func testBaseBackup(t *testing.T, original *place, server, _ *cluster) {
	c := clusterAt(t, server.bin, filepath.Join(serverFolder(t), "data"))
	server.run("pg_basebackup", "-D", c.data, "-d", server.dsn("postgres"), "-X", "stream", "-c", "fast", "--no-sync")
	c.start()
	original.mustNotBeTakenFor(c)
}

func testDataFolder(t *testing.T, original *place, server, _ *cluster) {
	c := clusterAt(t, server.bin, filepath.Join(serverFolder(t), "data"))
	server.snapshot(t, c.data)
	c.start()
	original.mustNotBeTakenFor(c)
}

// mustNotBeTakenFor checks that a copy of the server's files waits when configured with another
// home, and with none.
func (p *place) mustNotBeTakenFor(c *cluster) {
	p.t.Helper()
	nowhere := placeOf(p.t, p.to, "nowhere", c.dsn(p.database()), "")
	stop := nowhere.relay(bothFeeds...)
	nowhere.mustWait()
	stop()
	p.mustStayAlone(placeOf(p.t, p.to, "copy", c.dsn(p.database()), "staging"))
	nowhere.mustBeSilent()
}

// fill sends some messages and leaves others: of 62 messages "default" has sent 50 and "audit" 30.
func (p *place) fill() {
	p.t.Helper()
	p.must("migrate", "up")
	stop := p.relay(bothFeeds...)
	p.enqueue(30, bothFeeds...)
	p.mustSend()
	stop()
	stop = p.relay("default")
	left := p.enqueue(20, "default")
	p.mustSend()
	stop()
	p.expects(left, "audit")
	p.enqueue(12, bothFeeds...)
	execute(p.t, p.dsn, "SELECT postrider.canary('1 ms')") // no destination receives canaries
}

// pending returns the messages that a feed has not sent.
func (p *place) pending(feed string) (left []string) {
	sent := p.to.from(p.name, feed)
	for _, id := range p.expect[feed] {
		if sent[id] == 0 {
			left = append(left, id)
		}
	}
	return left
}

// mustStayAlone checks that the original continues, and that a copy sends nothing until an operator
// confirms, and then exactly what was announced.
func (p *place) mustStayAlone(c *place) {
	p.t.Helper()
	for _, feed := range bothFeeds {
		c.expects(p.pending(feed), feed)
	}
	p.relay(bothFeeds...)
	c.relay(bothFeeds...)
	c.mustWait()
	p.mustSend()
	c.rebase()
	c.enqueue(20, bothFeeds...) // after what was left, in every shard
	c.mustSend()
	p.enqueue(20, bothFeeds...)
	p.mustSend()
}
