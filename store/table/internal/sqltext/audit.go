package sqltext

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/postrider/postrider/admin"
)

// Note records what was done, in the transaction in which it was.
func (c Tables) Note(ctx context.Context, tx *sql.Tx, by admin.By, e admin.Entry) error {
	login := "session_user"
	if c.Dialect == MySQL {
		login = "current_user()"
	}
	_, err := tx.ExecContext(ctx, c.In(`INSERT INTO {audit} (at, who, login, action, why, feed, count, target, before_change, after_change)
		VALUES ({now}, ?, `+login+`, ?, ?, ?, ?, ?, ?, ?)`), by.Who, e.Action, by.Why, nullable(e.Feed), e.Count,
		jsonOf(e.Target), jsonOf(e.Before), jsonOf(e.After))
	return err
}

// jsonOf is a map as its column takes it. What records hold can always be encoded.
func jsonOf(m map[string]any) any {
	if len(m) == 0 {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}
