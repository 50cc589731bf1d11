package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/postrider/postrider"
)

// maxRetryAfter is the longest that an endpoint can ask to wait.
const maxRetryAfter = 5 * time.Minute

// StatusError is an answer other than 2xx.
type StatusError struct {
	Status int // the HTTP status code
	detail string
	until  time.Time // the end of the pause that the endpoint asks for
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("webhook: the endpoint answered %d %s%s", e.Status, http.StatusText(e.Status), e.detail)
}

// RetryAfter is how long the endpoint wants no further request, at most 5 minutes; 0 if it does not say.
func (e *StatusError) RetryAfter() time.Duration { return max(0, time.Until(e.until)) }

// judge says what an answer means for the message.
func judge(resp *http.Response) error {
	e := &StatusError{Status: resp.StatusCode}
	switch status := e.Status; {
	case status >= 200 && status < 300:
		return nil
	case status >= 500, status == 408, status == 425, status == 429:
		e.until = pauseEnd(resp.Header.Get("Retry-After"))
		return postrider.Unavailable(e)
	case status >= 300 && status < 400:
		e.detail = ": redirects are not followed"
		if u, err := resp.Location(); err == nil {
			public := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path} // without what may be secret
			e.detail += fmt.Sprintf("; this one points to %.200q", public.String())
		}
	case status == 410:
		e.detail = ": it wants no more messages"
	}
	return postrider.Permanent(e)
}

// pauseEnd reads the header Retry-After: seconds, or a date.
func pauseEnd(value string) time.Time {
	now := time.Now()
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return now.Add(time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second)
	}
	at, _ := http.ParseTime(value) // long ago, if it is none
	return now.Add(min(at.Sub(now), maxRetryAfter))
}

// note remembers what an outcome says about the endpoint, and tells the log when that changes.
func (p *Publisher) note(err error) error {
	isDown := postrider.ClassOf(err) == postrider.ClassUnavailable
	if p.down.CompareAndSwap(!isDown, isDown) {
		if isDown {
			p.cfg.Logger.Warn("webhook: endpoint does not accept messages", "host", p.url.Host, "err", err)
		} else {
			p.cfg.Logger.Info("webhook: endpoint answers again", "host", p.url.Host)
		}
	}
	var answer *StatusError
	if errors.As(err, &answer) && answer.RetryAfter() > 0 {
		p.pause.Store(answer)
	}
	return err
}
