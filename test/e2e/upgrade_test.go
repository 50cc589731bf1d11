package e2e_test

import (
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestUpgrade upgrades a server in place. The new server has another system identifier, so relays
// wait although nothing is in doubt. After the rebase that the page about upgrades describes,
// messages that the old server had not sent are sent once.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	bin := need.Env(t, "POSTRIDER_TEST_PGUPGRADE", "postgres15 && dev/services install pgupgrade")
	old := newCluster(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15_BIN")).start()
	old.exec(t, "postgres", older, "CREATE DATABASE app")
	before := placeOf(t, newReceiver(t), "before", old.dsn("app"), "production")
	before.fill()
	old.stop()

	now := newCluster(t, bin, "--no-data-checksums")
	now.run("pg_upgrade", "-b", old.bin, "-B", now.bin, "-d", old.data, "-D", now.data, "-U", "postgres", "--link", "--no-sync", "--socketdir", serverFolder(t))
	now.start()

	after := placeOf(t, before.to, "after", now.dsn("app"), "production")
	for _, feed := range bothFeeds {
		after.expects(before.pending(feed), feed)
	}
	after.relay(bothFeeds...)
	after.mustWait()
	after.rebase()
	after.enqueue(20, bothFeeds...)
	after.mustSend()
}
