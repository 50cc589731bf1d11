package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
)

// commit runs a transaction until it is committed or its outcome is uncertain; certain failures are
// retried.
func (c *caller) commit(ctx context.Context, n int64) {
	for {
		err := c.transactor.Do(ctx, func(ctx context.Context, tx pgx.Tx) error { return take(ctx, tx, commit, c.client, n) })
		if err == nil {
			c.told.note(commit, n)
			return
		}
		if errors.Is(err, postrider.ErrUncertain) || !soon(ctx) {
			return
		}
	}
}

// volley sends a request two to four times concurrently, to any of the servers, and some of them
// again later.
func (c *caller) volley(ctx context.Context, kind string, n int64) {
	var all sync.WaitGroup
	for range 2 + rand.IntN(3) {
		all.Go(func() {
			if !c.ask(ctx, kind, n) {
				return
			}
			c.told.note(kind, n)
			if rand.IntN(5) > 0 {
				return
			}
			select {
			case <-time.After(rand.N(5 * time.Second)):
				c.ask(ctx, kind, n)
			case <-ctx.Done():
			}
		})
	}
	all.Wait()
}

// ask sends a request until a response confirms its effect. It reports false if that takes too
// long.
func (c *caller) ask(ctx context.Context, kind string, n int64) bool {
	for {
		status, err := c.send(ctx, kind, n)
		switch {
		case err == nil && status == http.StatusCreated:
			return true
		case err == nil && status < 500 && status != http.StatusConflict:
			c.log.Error("a request was refused", "kind", kind, "n", n, "status", status)
			return false
		case !soon(ctx):
			return false
		}
	}
}

func (c *caller) send(ctx context.Context, kind string, n int64) (status int, err error) {
	to := c.Servers[rand.IntN(len(c.Servers))]
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to+"/"+kind, strings.NewReader(fmt.Sprint(n)))
	if err != nil {
		return 0, err
	}
	r.GetBody = nil // otherwise net/http would itself retry a request that has a key
	r.Header.Set("Client", c.client)
	r.Header.Set("Idempotency-Key", fmt.Sprintf("%q", fmt.Sprint(n)))
	response, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
