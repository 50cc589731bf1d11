package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/postrider/postrider"
)

// paydeskClient calls the API of the payment provider.
type paydeskClient struct{ url, secret string }

// create creates the payment of an application. Repeated calls with the same key return the same
// payment.
func (c paydeskClient) create(ctx context.Context, key, application string, cents int) (payment string, err error) {
	var created struct {
		ID string `json:"id"`
	}
	err = c.post(ctx, "/api/payments", key, map[string]any{"application": application, "cents": cents}, &created)
	return created.ID, err
}

// cancel prevents any payment for the application. It is idempotent.
func (c paydeskClient) cancel(ctx context.Context, application string) error {
	return c.post(ctx, "/api/payments/"+url.PathEscape(application)+"/cancel", "", nil, nil)
}

func (c paydeskClient) post(ctx context.Context, path, key string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.secret)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("the payment provider answers %s", answer.Status)
	case answer.StatusCode >= 300:
		return postrider.Permanent(fmt.Errorf("the payment provider refuses: %s: %s", answer.Status, bytes.TrimSpace(content)))
	case out == nil:
		return nil
	}
	return json.Unmarshal(content, out)
}
