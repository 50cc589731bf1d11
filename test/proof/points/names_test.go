package points

import (
	"fmt"
	"regexp"
	"strings"
)

// statement maps a statement to its name.
type statement struct {
	name string
	part string // of its text, with @ for the schema
	// limit is how many executions are points; 0 means all. Statements whose number depends on
	// time, such as polls, have one.
	limit int
}

// inDoubt is a query after an unclean end only. It belongs to a read and fails with it.
const inDoubt = "look which messages are deferred"

// statements lists all statements of the product; the first match counts.
var statements = []statement{
	// Relays.
	{"check the version", "FROM @.migrations", 0},
	{"open the feed", "@.open_feed(", 0},
	{"balance", "@.balance(", 2},
	{"ask for blocked keys", "SELECT DISTINCT order_key FROM @.deferred", 2},
	{"read the log", "@.read_log(", 3},
	{"ask for a number that was drawn", "SELECT coalesce(pg_sequence_last_value(", 1},
	{"take a transaction ID", "SELECT pg_current_xact_id()::text", 1},
	{"look whether anything happened", "SELECT pg_sequence_last_value(", 1},
	{"read large payloads", "@.read_payloads(", 2},
	{inDoubt, "SELECT seq FROM @.deferred WHERE feed = $1 AND seq = ANY", 2},
	{"settle", "@.settle(", 2}, // or release, see nameStatement
	{"leave the feed", "@.leave_feed(", 0},
	{"reclaim", "@.reclaim(", 1},
	{"sweep", "@.sweep(", 1},
	{"ask for a slot to freeze", "@.unfrozen_slot(", 1},
	{"canary", "@.canary(", 1},
	{"deferred", "@.defer(", 2},
	{"ask for what is due", "@.due(", 2},
	{"conclude", "@.conclude(", 2},
	{"suspect", "@.suspect(", 2},
	{"report", "@.report(", 1},
	{"split", "@.split(", 1},
	{"merge", "@.merge(", 1},

	// Inboxes.
	{"open the inbox", "@.open_inbox(", 0},
	{"claim several, expecting repetitions", "x.id FROM unnest($2::text::uuid[]) x(id) … ON CONFLICT DO NOTHING", 1},
	{"claim several", "x.id FROM unnest($2::text::uuid[]) x(id)", 1},
	{"claim one, expecting repetitions", "INSERT INTO @.inbox_ … ON CONFLICT DO NOTHING", 1},
	{"claim one", "INSERT INTO @.inbox_", 1},
	{"claim with a look at all", "@.claim(", 1},
	{"deferred by the inbox", "@.inbox_defer(", 2},
	{"take what is due", "@.take_due(", 3},
	{"ask when something is due", "@.next_due(", 1},
	{"conclude by the inbox", "@.inbox_conclude(", 2},
	{"say that the consumer is there", "@.heard(", 1},
	{"sweep the inbox", "@.sweep_inbox(", 1},
	{"sweep the inbox of strays", "@.sweep_strays(", 1},

	// Sagas.
	{"create", "@.create_saga(", 0},
	{"ask for sagas that are due", "@.saga_due(", 1},
	{"take a step", "@.take_saga_step(", 0},
	{"hold a step", "FROM @.saga_steps s WHERE s.saga = $1", 1},
	{"lock", "@.lock_saga(", 0},
	{"save", "@.save_saga(", 0},
	{"sweep sagas", "DELETE FROM @.sagas", 1},
	{"look for strangers", "FROM json_each($1::json) k CROSS JOIN", 1},

	// Replays and other operator actions.
	{"count what to replay", "SELECT count(*), min(d.created_at), max(d.seq) FROM", 0},
	{"start a replay", "@.start_replay(", 0},
	{"look at the replay", " FROM @.jobs j ", 3},
	{"claim the replay", "@.claim_replay(", 0},
	{"choose from the log", "SELECT '', d.seq FROM @.messages d", 0},
	{"choose from dead letters", "SELECT d.feed, d.seq FROM @.deferred d", 0},
	{"list what is deferred", " FROM @.deferred d … ORDER BY d.feed, d.seq LIMIT", 0},
	{"step", "@.step_replay(", 0},
	{"pause or cancel the replay", "@.set_replay(", 0},
	{"read the record", "FROM @.audit", 2},
	{"act", "@.act_for(", 0},

	// Applications: handlers, steps, producers.
	{"enqueue", "INSERT INTO @.messages (", 0},
	{"count the attempt", "nextval('@.attempt", 2},
	{"write the effect", "INSERT INTO @.effects", 0},
	{"pay", "UPDATE @.accounts", 0},
	{"open the account", "INSERT INTO @.accounts", 0},
}

// noPoints are statements that the driver sends at unpredictable times.
var noPoints = []string{"-- ping"}

// defaultLimit applies to statements and calls without their own limit.
const defaultLimit = 6

var (
	schemas = regexp.MustCompile(`"?\btest(_[0-9a-f]+)+"?\.`)
	blanks  = regexp.MustCompile(`\s+`)
)

// nameStatement names a statement by its text, and the end of a transaction or savepoint also by
// the previous statement on the connection.
func nameStatement() func(sql string, args [][]byte) string {
	last := "nothing"
	return func(sql string, args [][]byte) string {
		text := blanks.ReplaceAllString(schemas.ReplaceAllString(sql, "@."), " ")
		for _, s := range noPoints {
			if strings.HasPrefix(text, s) {
				return ""
			}
		}
		first, _, _ := strings.Cut(strings.ToLower(text), " ")
		switch first {
		case "begin":
			last = "begin"
			return "begin"
		case "commit", "rollback", "savepoint", "release":
			if strings.HasPrefix(strings.ToLower(text), "rollback to") {
				first = "undo"
			}
			return fmt.Sprintf("%s after: %s", first, last)
		}
		s, ok := known(text)
		if !ok {
			return "unknown: " + text[:min(len(text), 80)]
		}
		last = s.name
		if s.name == "settle" && string(args[4]) == "t" {
			last = "release"
		}
		return last
	}
}

// known returns the statement that a text belongs to. In a part, … matches anything.
func known(text string) (statement, bool) {
	for _, s := range statements {
		begin, end, two := strings.Cut(s.part, " … ")
		at := strings.Index(text, begin)
		if at >= 0 && (!two || strings.Contains(text[at:], end)) {
			return s, true
		}
	}
	return statement{}, false
}

// limits are those of calls that are not statements, and of statements in certain places.
var limits = map[string]int{
	"begin": 5,
	"rollback after: ask when something is due": 1,
	"rollback after: take a step":               1,
	"rollback after: claim one":                 1,
	"commit after: claim with a look at all":    1,
	"commit after: deferred by the inbox":       2,
	"commit after: conclude by the inbox":       4,
	"savepoint after: take what is due":         3,
	"undo after: write the effect":              2,
	"commit after: reclaim":                     1,
	"commit after: sweep":                       1,
	"commit after: ask for a slot to freeze":    1,
	"commit after: canary":                      1,
	"commit after: hold a step":                 0, // only if the server has not noticed yet that the connection is gone

	"publish": 3, "fetch": 1, "ack": 2, "still working": 1, "find the stream": 1, "look at the consumer": 1, "open a channel": 1, "ask for confirmations": 1,
}

// limit returns how many calls of a name are points.
func (p part) limit(name string) int {
	if n, ok := p.Limits[name]; ok || p.Only {
		return n
	}
	if n, ok := limits[name]; ok {
		return n
	}
	for _, s := range statements {
		if s.name == name && s.limit > 0 {
			return s.limit
		}
	}
	return defaultLimit
}

// nameSubject names a message to NATS.
func nameSubject(subject string, content []byte) string {
	for _, s := range []struct{ prefix, name string }{
		{"$JS.API.STREAM.NAMES", "find the stream"},
		{"$JS.API.CONSUMER.INFO.", "look at the consumer"},
		{"$JS.API.CONSUMER.CREATE.", "make the consumer"},
		{"$JS.API.CONSUMER.DURABLE.CREATE.", "make the consumer"},
		{"$JS.API.CONSUMER.MSG.NEXT.", "fetch"},
		{"$JS.API.INFO", ""},
	} {
		if strings.HasPrefix(subject, s.prefix) {
			return s.name
		}
	}
	if strings.HasPrefix(subject, "$JS.ACK.") {
		switch string(content) {
		case "+ACK":
			return "ack"
		case "+WPI":
			return "still working"
		case "-NAK":
			return "give back"
		}
	}
	if strings.HasPrefix(subject, "$") {
		return "unknown: " + subject
	}
	return "publish"
}

// nameMethod names a method call of RabbitMQ.
func nameMethod(class, method uint16) string {
	names := map[[2]uint16]string{
		{20, 10}: "open a channel", {85, 10}: "ask for confirmations",
		{20, 40}: "", {20, 41}: "", // closes a channel that is not needed any more
		{60, 10}: "set the prefetch", {60, 20}: "subscribe", {60, 30}: "unsubscribe", {60, 40}: "publish", {60, 80}: "ack",
		{50, 10}: "look at the queue",
	}
	name, ok := names[[2]uint16{class, method}]
	if !ok {
		return fmt.Sprintf("unknown: method %d of class %d", method, class)
	}
	return name
}
