package doctor

import (
	"context"
	"fmt"
	"time"
)

// serverChecks examine the server, independent of the content of the database.
var serverChecks = []check{
	{"rights", askRights},
	{"transport", askTransport},
	{"standby", askStandby},
	{"durability", askDurability},
	{"isolation", askIsolation},
	{"replicas", askReplicas},
	{"replication-slots", askReplicationSlots},
	{"transactions", askTransactions},
	{"prepared-transactions", askPrepared},
	{"connections", askConnections},
	{"pooler", askPooler},
	{"encoding", askEncoding},
	{"time-zone", askTimeZone},
	{"clock", askClock},
}

// askConnection finds nothing itself: the transaction around it is the check.
func askConnection(context.Context, *target) ([]Finding, error) { return nil, nil }

// askRights checks whether the views that other checks read hide anything.
func askRights(ctx context.Context, p *target) ([]Finding, error) {
	users, err := values[string](ctx, p, "SELECT quote_ident(current_user) WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE')")
	if err != nil || len(users) == 0 {
		return nil, err
	}
	return []Finding{{Severity: Info, Finding: fmt.Sprintf("the user %s cannot see the activity of other users", users[0]),
		Why: "Old transactions and connections of other users stay hidden from this examination.",
		Fix: "GRANT pg_read_all_stats TO " + users[0]}}, nil
}

func askStandby(ctx context.Context, p *target) ([]Finding, error) {
	standby, err := value[bool](ctx, p, "SELECT pg_is_in_recovery()")
	if err != nil || !standby {
		return nil, err
	}
	return []Finding{{Severity: Problem, Finding: "the server is a standby",
		Why: "Its snapshots do not list what is in flight: relays refuse to read from it, and it accepts no writes.",
		Fix: "connect to the primary: add target_session_attrs=read-write and all hosts to the address"}}, nil
}

func askReplicas(ctx context.Context, p *target) ([]Finding, error) {
	// Base backups and logical subscribers are not standbys.
	n, err := value[int](ctx, p, `SELECT count(*) FROM pg_stat_replication r
		WHERE r.state = 'streaming' AND current_setting('synchronous_standby_names') = ''
		  AND NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')`)
	if err != nil || n == 0 {
		return nil, err
	}
	return []Finding{{Severity: Info, Finding: fmt.Sprintf("%d standbys are attached, none of them synchronous", n),
		Why: "The last commits can be lost in a failover, including messages that were already delivered.",
		Fix: "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'; SELECT pg_reload_conf()"}}, nil
}

func askReplicationSlots(ctx context.Context, p *target) ([]Finding, error) {
	type slot struct {
		Name   string
		Active bool
		Kept   int64
	}
	slots, err := rows[slot](ctx, p, `SELECT slot_name::text, active, coalesce(pg_wal_lsn_diff(
		CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn), 0)::bigint
		FROM pg_replication_slots WHERE NOT temporary ORDER BY 1`)
	var found []Finding
	for _, s := range slots {
		f := Finding{Severity: Warning,
			Why: "The server keeps all WAL that the slot has not passed, until the disk is full; it may also block vacuum.",
			Fix: fmt.Sprintf("start what reads from it, or: SELECT pg_drop_replication_slot(%s)", quote(s.Name))}
		switch {
		case !s.Active:
			f.Finding = fmt.Sprintf("nothing reads from the replication slot %s, which keeps %s of WAL", s.Name, size(s.Kept))
		case s.Kept > p.limits.walBytes:
			f.Finding = fmt.Sprintf("the replication slot %s is %s of WAL behind", s.Name, size(s.Kept))
			f.Fix = "SELECT * FROM pg_stat_replication, on what reads from it: find out why it is slow"
		default:
			continue
		}
		if s.Kept > p.limits.walBytes && !s.Active {
			f.Severity = Problem
		}
		found = append(found, f)
	}
	return found, err
}

func askConnections(ctx context.Context, p *target) ([]Finding, error) {
	type count struct{ Used, Max int }
	counts, err := rows[count](ctx, p, `SELECT count(*)::int, current_setting('max_connections')::int
		FROM pg_stat_activity WHERE backend_type = 'client backend'`)
	if err != nil || len(counts) == 0 {
		return nil, err
	}
	c := counts[0]
	if float64(c.Used) <= p.limits.connections*float64(c.Max) {
		return nil, nil
	}
	return []Finding{{Severity: Warning, Finding: fmt.Sprintf("%d of %d connections are in use", c.Used, c.Max),
		Why: "When there are none left, neither applications nor relays can connect.",
		Fix: "SELECT usename, application_name, count(*) FROM pg_stat_activity GROUP BY 1, 2 ORDER BY 3 DESC; then smaller pools, or PgBouncer"}}, nil
}

func askEncoding(ctx context.Context, p *target) ([]Finding, error) {
	encoding, err := value[string](ctx, p, "SELECT current_setting('server_encoding')")
	if err != nil || encoding == "UTF8" {
		return nil, err
	}
	return []Finding{{Severity: Warning, Finding: "the database's encoding is " + encoding,
		Why: "Keys, headers and payloads with other characters are refused, or are corrupted.",
		Fix: "CREATE DATABASE new ENCODING 'UTF8' TEMPLATE template0, and move: pg_dump | psql, then postrider rebase"}}, nil
}

func askTimeZone(ctx context.Context, p *target) ([]Finding, error) {
	zone, err := value[string](ctx, p, "SELECT current_setting('TimeZone')")
	if err != nil || zone == "UTC" || zone == "Etc/UTC" || zone == "GMT" {
		return nil, err
	}
	return []Finding{{Severity: Info, Finding: "the time zone of sessions is " + zone,
		Why: "Nothing here depends on it, but times that SQL prints are not those in the relays' logs.",
		Fix: "SET TimeZone = 'UTC', in the session that you look with"}}, nil
}

func askClock(ctx context.Context, p *target) ([]Finding, error) {
	before := p.now()
	theirs, err := value[time.Time](ctx, p, "SELECT clock_timestamp()")
	after := p.now()
	if err != nil {
		return nil, err
	}
	// The server read its clock during the round trip, so only a difference beyond that counts.
	var off time.Duration
	switch {
	case theirs.After(after):
		off = theirs.Sub(after)
	case theirs.Before(before):
		off = before.Sub(theirs)
	}
	if off <= p.limits.clock {
		return nil, nil
	}
	return []Finding{{Severity: Warning,
		Finding: fmt.Sprintf("the clocks of this machine and of the database are %s apart", off.Round(100*time.Millisecond)),
		Why:     "Leases and retries follow the database's clock and are not affected; ages that this machine reports are wrong by as much.",
		Fix:     "timedatectl set-ntp true, on the machine that is wrong"}}, nil
}
