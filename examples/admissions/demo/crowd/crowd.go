// Package crowd simulates many concurrent applicants. They send the form, retry when there is no
// answer, check the status, and pay when a payment is due.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/verdict"
)

// Crowd is a group of applicants. Its methods are safe for concurrent use.
type Crowd struct {
	Domain string // domain of their addresses, unique to this crowd

	pages  string
	client *http.Client

	number         atomic.Int64 // applicants so far
	accepted, paid atomic.Int64
	retries        atomic.Int64

	mu       sync.Mutex
	promises []verdict.Promise
	errs     []error
	run      sync.WaitGroup
}

// New returns a crowd that uses the service at the given host and port.
func New(pages string) *Crowd {
	return &Crowd{
		Domain: fmt.Sprintf("run%d.example.org", time.Now().UnixNano()),
		pages:  "http://" + pages,
		client: &http.Client{
			Timeout:       10 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			// One connection for each applicant, but not one for each request.
			Transport: &http.Transport{MaxIdleConnsPerHost: 100, MaxConnsPerHost: 100},
		},
	}
}

// Apply starts the given number of applicants for a programme, all at once.
func (c *Crowd) Apply(ctx context.Context, programme string, people int) {
	for range people {
		number := c.number.Add(1)
		c.run.Go(func() {
			a := applicant{
				crowd: c, programme: programme,
				name: fmt.Sprintf("Nguyễn Văn %d", number), email: fmt.Sprintf("applicant-%04d@%s", number, c.Domain),
			}
			if err := a.apply(ctx); err != nil {
				c.mu.Lock()
				c.errs = append(c.errs, fmt.Errorf("%s: %w", a.email, err))
				c.mu.Unlock()
			}
		})
	}
}

// Wait returns when every applicant has paid, or has given up because the context ended.
func (c *Crowd) Wait() error {
	c.run.Wait()
	c.client.CloseIdleConnections()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errs) > 3 {
		return fmt.Errorf("%d applicants have failed, among them: %w", len(c.errs), errors.Join(c.errs[:3]...))
	}
	return errors.Join(c.errs...)
}

// Promises returns the accepted applications.
func (c *Crowd) Promises() []verdict.Promise {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]verdict.Promise(nil), c.promises...)
}

// Accepted returns the number of applicants whose application was accepted.
func (c *Crowd) Accepted() int { return int(c.accepted.Load()) }

// Paid returns the number of applicants who have paid.
func (c *Crowd) Paid() int { return int(c.paid.Load()) }

// Retries returns how often an applicant had to repeat a request because there was no answer.
func (c *Crowd) Retries() int { return int(c.retries.Load()) }
