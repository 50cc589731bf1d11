package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/postrider/postrider"
)

// maxRetryAfter limits the delay that an endpoint can request.
const maxRetryAfter = 5 * time.Minute

// StatusError is an answer other than 2xx.
type StatusError struct {
	Status int // the HTTP status code
	detail string
	until  time.Time // end of the delay that the endpoint requests
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("webhook: the endpoint answered %d %s%s", e.Status, http.StatusText(e.Status), e.detail)
}

// RetryAfter returns how long the endpoint wants no further requests, at most 5 minutes; 0 if it
// does not say.
func (e *StatusError) RetryAfter() time.Duration { return max(0, time.Until(e.until)) }

// refusals are statuses below 500 that concern every message while they last: authentication,
// permissions, address, limits. Other statuses concern one message.
var refusals = []int{401, 402, 403, 404, 405, 407, 408, 410, 421, 425, 426, 429}

// classify classifies an answer. A status of 500 leaves both open: this message may have caused the
// failure, or the endpoint may fail for all messages.
func (p *Publisher) classify(resp *http.Response) error {
	e := &StatusError{Status: resp.StatusCode}
	switch status := e.Status; {
	case status >= 200 && status < 300:
		return nil
	case status == 502, status == 503, status == 504, slices.Contains(refusals, status):
		if status == 410 {
			e.detail = ": it wants no more messages"
		}
	case status >= 500:
		return e
	case status >= 400:
		return postrider.Permanent(e)
	case status >= 300:
		e.detail = ": redirects are not followed"
		if u, err := resp.Location(); err == nil {
			public := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path} // omits parts that may be secret
			e.detail += fmt.Sprintf("; this one points to %.200q", public.String())
		}
	}
	e.until = pauseEnd(resp.Header.Get("Retry-After"))
	return p.refused(e)
}

// refused marks an error that no message has caused. A publisher without a name in its URL has only
// one endpoint.
func (p *Publisher) refused(err error) error {
	if p.named {
		return postrider.NameUnavailable(err)
	}
	return postrider.Unavailable(err)
}

// pauseEnd parses the header Retry-After: seconds, or a date.
func pauseEnd(value string) time.Time {
	now := time.Now()
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return now.Add(time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second)
	}
	at, _ := http.ParseTime(value) // invalid values yield a time in the past
	return now.Add(min(at.Sub(now), maxRetryAfter))
}

// note records what an outcome says about the endpoint of a name, and logs outages and recoveries
// of the host.
func (p *Publisher) note(name string, err error) error {
	isDown := postrider.ScopeOf(err) == postrider.ScopeDestination
	if p.down.CompareAndSwap(!isDown, isDown) {
		if isDown {
			p.cfg.Logger.Warn("webhook: endpoint does not accept messages", "host", p.url.Host, "err", err)
		} else {
			p.cfg.Logger.Info("webhook: endpoint answers again", "host", p.url.Host)
		}
	}
	var answer *StatusError
	if errors.As(err, &answer) && answer.RetryAfter() > 0 {
		p.pause(name, answer)
	}
	return err
}

// pause stops requests to the endpoint of a name for as long as its answer requests.
func (p *Publisher) pause(name string, answer *StatusError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.pauses, func(_ string, past *StatusError) bool { return past.RetryAfter() == 0 })
	p.pauses[name] = answer
}
