package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/deadletters"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// deferMessage keeps a message that this transaction has recorded. The consumer is locked. It returns errFreed if the message was to wait
// and there is nothing any more that it would wait for.
func (s *inboxStore) deferMessage(ctx context.Context, tx *sql.Tx, c inboxTerms, m inboxPlace, back inbox.Deferral) error {
	var one int
	blocked := false
	if m.hash != "" {
		err := s.cfg.stmt("SELECT 1 FROM {inbox_deferred} WHERE consumer = ").Number(c.number).SQL(" AND blocking = 1 AND key_hash = ").
			Word(m.hash).SQL(" LIMIT 1").Row(ctx, tx).Scan(&one)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("mysql: deferred: %w", err)
		}
		blocked = err == nil
	}
	status := back.Status
	if status == feeds.StatusWaiting && !blocked {
		return errFreed
	}
	// One that fails while its key is blocked already, as by a message that another process has received, waits like the others.
	if status == feeds.StatusRetry && back.Blocking && blocked {
		status = feeds.StatusWaiting
	}
	doc, err := deadletters.Encode(m.Message)
	if err != nil {
		return fmt.Errorf("mysql: deferred: %w", err)
	}
	st := s.cfg.stmt("INSERT INTO {inbox_deferred} (consumer, message_id, key_hash, status, blocking, attempts, last_error, deferred_at, ",
		"tried_at, available_at, message, payload) VALUES (").Number(c.number).SQL(",").Word(string(m.ID[:])).SQL(",").Word(m.hash).SQL(",").
		Text(string(status)).SQL(",", strconv.FormatBool(back.Blocking && m.hash != "")).SQL(",").Number(int64(back.Attempts)).SQL(",").
		Text(causeOf(back.Cause)).SQL(",{now},")
	switch status {
	case feeds.StatusRetry:
		st.SQL("{now},").Later("{now}", back.Delay)
	case feeds.StatusDead:
		st.SQL("{now},NULL")
	default:
		st.SQL("NULL,NULL")
	}
	result, err := st.SQL(",").Arg(doc).SQL(",").Arg(append([]byte{}, m.Payload...)).SQL(")").Exec(ctx, tx)
	if err != nil {
		return fmt.Errorf("mysql: deferred: %w", err)
	}
	seq, err := result.LastInsertId()
	if err == nil {
		_, err = s.cfg.stmt("INSERT INTO {inbox_turns} (seq) VALUES (").Number(seq).SQL(")").Exec(ctx, tx)
	}
	if err != nil {
		return fmt.Errorf("mysql: deferred: %w", err)
	}
	return nil
}

const maxCause = 4000

// causeOf makes an error fit for a column.
func causeOf(text string) string {
	if len(text) > maxCause {
		text = text[:maxCause]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

// seqs runs a statement that returns numbers of messages.
func (s *inboxStore) seqs(ctx context.Context, q sqltext.Querier, statement string) (all []int64, err error) {
	err = s.cfg.stmt(statement).Each(ctx, q, func(scan func(...any) error) error {
		var n int64
		err := scan(&n)
		all = append(all, n)
		return err
	})
	return all, err
}
