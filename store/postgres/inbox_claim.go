package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

// slots is the number of slots in the inbox's ring.
const slots = 10

// Claim implements [inbox.Store].
func (s *inboxStore[Tx]) Claim(ctx context.Context, tx Tx, consumer string, id postrider.ID) (bool, error) {
	terms, err := s.termsOf(ctx, consumer)
	if err != nil {
		return false, err
	}
	outcomes, err := s.claim(ctx, s.db.in(tx), terms, []place{{Message: &postrider.Message{ID: id}}}, false)
	if err != nil {
		return false, fmt.Errorf("postgres: claim: %w", explain(err))
	}
	if outcomes == "l" || outcomes == "a" {
		return false, inbox.ErrLate
	}
	return outcomes == "f", nil
}

// claim returns the outcome of each message as one letter; see the SQL function claim.
func (s *inboxStore[Tx]) claim(ctx context.Context, in statements, c terms, msgs []place, late bool) (outcomes string, err error) {
	var ids, keys array
	for i := range msgs {
		ids.string(msgs[i].ID.String())
		keys.string(text(msgs[i].OrderKey()))
	}
	err = in.row(ctx, s.cfg.in("SELECT @schema@.claim($1, $2, $3::text::uuid[], $4::text::text[], $5)"),
		[]any{c.number, c.feed, ids.String(), keys.String(), late}, &outcomes)
	return outcomes, err
}

// beginClaimed begins a transaction and claims the messages in it. They must be sorted by ID.
func (s *inboxStore[Tx]) beginClaimed(ctx context.Context, c terms, msgs []place, late bool) (transaction[Tx], []byte, error) {
	period, ok := c.samePeriod(msgs)
	if !ok {
		t, err := s.db.begin(ctx)
		if err != nil {
			return t, nil, err
		}
		return s.beginSlowly(ctx, t, c, msgs, late)
	}
	expectRepeats := s.expectRepeats.Load() > time.Now().UnixNano()
	sql, args := s.insert(c, period, msgs, expectRepeats)
	t, n, fresh, err := s.db.beginWith(ctx, sql, args, expectRepeats)
	if !expectRepeats && sqlState(err) == "23505" { // unique_violation: some messages are repeated
		s.expectRepeats.Store(time.Now().Add(expectRepeatsFor).UnixNano())
		return s.beginClaimed(ctx, c, msgs, late)
	}
	if err != nil {
		return t, nil, err
	}
	if n == 0 {
		return s.beginSlowly(ctx, t, c, msgs, late)
	}
	outcomes := bytes.Repeat([]byte{'f'}, len(msgs))
	for i := range msgs {
		if int(n) == len(msgs) {
			break
		}
		id := msgs[i].ID.String()
		if at := slices.Index(fresh, id); at >= 0 {
			fresh[at] = "" // a second copy in this batch is a repetition
			continue
		}
		outcomes[i] = 'r'
	}
	return t, outcomes, nil
}

// expectRepeatsFor is how long an inbox expects repeated messages after it has met one.
const expectRepeatsFor = 10 * time.Second

// beginSlowly claims messages with the SQL function, which handles all cases that a plain insert
// cannot.
func (s *inboxStore[Tx]) beginSlowly(ctx context.Context, t transaction[Tx], c terms, msgs []place, late bool) (transaction[Tx], []byte, error) {
	outcomes, err := s.claim(ctx, t, c, msgs, late)
	if err != nil {
		_ = t.rollback(ctx)
	}
	return t, []byte(outcomes), err
}

// samePeriod returns the period in which the IDs of all messages were created. It returns false if
// they differ or an ID has no time.
func (c terms) samePeriod(msgs []place) (int64, bool) {
	first := int64(-1)
	for i := range msgs {
		made := msgs[i].ID.Time()
		period := made.UnixMilli() / c.period
		if made.IsZero() || first >= 0 && period != first {
			return 0, false
		}
		first = period
	}
	return first, true
}

// inserts holds the statements of insert, by slot, by whether there are many messages, and by
// whether repeated messages are expected.
type inserts [slots][2][2]string

func newInserts(cfg Config) *inserts {
	var all inserts
	for slot := range all {
		for many, ids := range []string{"$2::text::uuid", "x.id FROM unnest($2::text::uuid[]) x(id)"} {
			for expectRepeats, conflict := range []string{"", " ON CONFLICT DO NOTHING RETURNING id::text"} {
				all[slot][many][expectRepeats] = cfg.in(fmt.Sprintf(`INSERT INTO @schema@.inbox_%[1]d (consumer, slot, id) SELECT $1::int, %[1]d, %[2]s
					WHERE date_part('epoch', statement_timestamp()) >= $3::float8
					AND date_part('epoch', statement_timestamp()) < $4::float8
					AND NOT EXISTS (SELECT FROM @schema@.inbox_trouble t WHERE t.consumer = $1::int)%[3]s`, slot, ids, conflict))
			}
		}
	}
	return &all
}

// insert returns the statement that claims messages of one slot: a plain insert, which the server
// plans once. It inserts nothing if claim must take a closer look. It uses the statement's
// timestamp, so that the server does not read the clock for each row. A repeated message makes it
// fail. If repetitions are expected, it skips them instead, which costs several times as much, and
// returns the other IDs.
func (s *inboxStore[Tx]) insert(c terms, period int64, msgs []place, expectRepeats bool) (sql string, args []any) {
	many, expected, ids := 0, 0, msgs[0].ID.String()
	if len(msgs) > 1 {
		many = 1
		var all array
		for i := range msgs {
			all.string(msgs[i].ID.String())
		}
		ids = all.String()
	}
	if expectRepeats {
		expected = 1
	}
	return s.inserts[period%slots][many][expected],
		[]any{c.number, ids, float64((period-1)*c.period) / 1000, float64((period+8)*c.period) / 1000}
}
