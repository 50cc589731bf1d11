package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// The letters say what is to become of a message.
const (
	outcomeFresh    = 'f' // it is the caller's
	outcomeRepeated = 'r' // somebody has taken care of it
	outcomeWaits    = 'w' // an earlier message of its key is deferred; it is not claimed
	outcomeLate     = 'l' // nobody knows whether it was received before; it is not claimed
)

// errMoved means that a claim has taken so long that what was known about the window may not hold any more.
var errMoved = errors.New("mysql: the inbox's window has moved on")

// Claim implements [inbox.Store]. Where several wait for the end of one transaction, and that is rolled back, the server may end
// theirs with a deadlock: then it is for the caller to begin again, as a [Transactor] does.
func (s *inboxStore) Claim(ctx context.Context, tx *sql.Tx, consumer string, id postrider.ID) (bool, error) {
	c, err := s.termsOf(ctx, consumer)
	if err != nil {
		return false, err
	}
	begun := time.Now()
	seen, err := s.look(ctx, tx, c, []inboxPlace{{Message: &postrider.Message{ID: id}}})
	if err != nil {
		return false, fmt.Errorf("mysql: claim: %w", sqltext.Explained(err))
	}
	if seen.recorded[id] {
		return false, nil
	}
	if c.outside(id, seen) {
		return false, inbox.ErrLate
	}
	err = s.insert(ctx, tx, c, seen.now, []postrider.ID{id})
	if sqltext.IsDuplicate(err) {
		return false, nil
	}
	if err == nil && time.Since(begun) > c.margin() {
		err = errMoved
	}
	if err != nil {
		return false, fmt.Errorf("mysql: claim: %w", sqltext.Explained(err))
	}
	return true, nil
}

// clock is the server's time.
func (c *Config) clock(ctx context.Context, q sqltext.Querier) (time.Time, error) {
	var micros sql.NullInt64
	err := c.stmt("SELECT ", sqltext.MySQL.Micros("{now}")).Row(ctx, q).Scan(&micros)
	return sqltext.Moment(micros), err
}

// outside reports whether an ID that is not recorded may have been, or is from a time that is too far ahead: its record would be
// forgotten before that comes.
func (c inboxTerms) outside(id postrider.ID, seen sight) bool {
	made := id.Time()
	return seen.forgotten.Late(made) || made.Sub(seen.now) > c.window/7
}

// keepUntil is when the record of an ID may be forgotten: then the ID is outside of the window as well.
func (c inboxTerms) keepUntil(id postrider.ID, now time.Time) time.Time {
	at := now
	if made := id.Time(); made.After(at) {
		at = made
	}
	at = at.Add(c.window + c.margin())
	if at.After(endOfTime) {
		return endOfTime
	}
	return at
}

// endOfTime is the latest that a datetime is used for.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// insert records messages as received, all or none. It waits for the end of a transaction that has recorded one of them.
func (s *inboxStore) insert(ctx context.Context, q sqltext.Querier, c inboxTerms, now time.Time, ids []postrider.ID) error {
	st := s.cfg.stmt("INSERT INTO {inbox} (consumer, id, keep_until) VALUES ")
	for i, id := range ids {
		if i > 0 {
			st.SQL(",")
		}
		st.SQL("(").Number(c.number).SQL(",").Word(string(id[:])).SQL(",").Time(c.keepUntil(id, now)).SQL(")")
	}
	_, err := st.Exec(ctx, q)
	return err
}

// claim returns a letter for each message. They stand in one global order, so that two callers cannot wait for each other.
func (s *inboxStore) claim(ctx context.Context, tx *sql.Tx, c inboxTerms, msgs []inboxPlace, late bool) (outcomes []byte, now time.Time, err error) {
	begun := time.Now()
	seen, err := s.look(ctx, tx, c, msgs)
	if now = seen.now; err != nil {
		return nil, now, err
	}
	var blocked map[string]bool
	if seen.troubled {
		if blocked, err = s.blockedKeys(ctx, tx, c, msgs); err != nil {
			return nil, now, err
		}
	}
	outcomes = make([]byte, len(msgs))
	for i := range msgs {
		switch {
		case seen.recorded[msgs[i].ID]:
			outcomes[i] = outcomeRepeated
		case !late && c.outside(msgs[i].ID, seen):
			outcomes[i] = outcomeLate
		case blocked[msgs[i].hash]:
			outcomes[i] = outcomeWaits
		default:
			outcomes[i] = outcomeFresh
		}
	}
	for {
		var fresh []postrider.ID
		for i := range msgs {
			if outcomes[i] == outcomeFresh {
				fresh = append(fresh, msgs[i].ID)
			}
		}
		if len(fresh) == 0 {
			break
		}
		err := s.insert(ctx, tx, c, now, fresh)
		if err == nil {
			break
		}
		if !sqltext.IsDuplicate(err) {
			return nil, now, err
		}
		// Somebody was faster. All others are still fresh.
		if seen, err = s.look(ctx, tx, c, msgs); err != nil {
			return nil, now, err
		}
		for i := range msgs {
			if outcomes[i] == outcomeFresh && seen.recorded[msgs[i].ID] {
				outcomes[i] = outcomeRepeated
			}
		}
	}
	if time.Since(begun) > c.margin() {
		return nil, now, errMoved
	}
	return outcomes, now, nil
}

// sight is what one statement sees: a message that is not recorded and not of a time that is forgotten was never received.
type sight struct {
	now       time.Time
	troubled  bool // some key is blocked
	recorded  map[postrider.ID]bool
	forgotten inbox.Forgotten
}

// look returns what is known of messages without waiting for anybody.
func (s *inboxStore) look(ctx context.Context, q sqltext.Querier, c inboxTerms, msgs []inboxPlace) (sight, error) {
	ids := make([]string, len(msgs))
	for i := range msgs {
		ids[i] = string(msgs[i].ID[:])
	}
	n := strconv.FormatInt(c.number, 10)
	seen := sight{recorded: make(map[postrider.ID]bool), forgotten: inbox.Forgotten{Began: c.began}}
	err := s.cfg.stmt("SELECT ", sqltext.MySQL.Micros("{now}"), ", EXISTS (SELECT 1 FROM {inbox_deferred} a WHERE a.consumer = ", n,
		" AND a.blocking = 1), c.forgotten_us, c.history_us, i.id FROM {consumers} c LEFT JOIN {inbox} i ON i.consumer = ", n, " AND ").
		Words("i.id", ids).SQL(" WHERE c.n = ", n).
		Each(ctx, q, func(scan func(...any) error) error {
			var micros sql.NullInt64
			var since, history int64
			var id []byte
			if err := scan(&micros, &seen.troubled, &since, &history, &id); err != nil {
				return err
			}
			seen.now = sqltext.Moment(micros)
			seen.forgotten.Since, seen.forgotten.History = time.UnixMicro(since), time.UnixMicro(history)
			if id != nil {
				seen.recorded[postrider.ID(id)] = true
			}
			return nil
		})
	return seen, err
}

// blockedKeys returns those of the messages' keys, hashed, that later messages have to wait for.
func (s *inboxStore) blockedKeys(ctx context.Context, q sqltext.Querier, c inboxTerms, msgs []inboxPlace) (map[string]bool, error) {
	var hashes []string
	for i := range msgs {
		if msgs[i].hash != "" {
			hashes = append(hashes, msgs[i].hash)
		}
	}
	blocked := make(map[string]bool)
	if len(hashes) == 0 {
		return blocked, nil
	}
	err := s.cfg.stmt("SELECT DISTINCT key_hash FROM {inbox_deferred} WHERE consumer = ").Number(c.number).SQL(" AND blocking = 1 AND ").
		Words("key_hash", hashes).Each(ctx, q, func(scan func(...any) error) error {
		var hash []byte
		err := scan(&hash)
		blocked[string(hash)] = true
		return err
	})
	return blocked, err
}
