package bench

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
)

// keys is the number of different ordering keys.
const keys = 5000

// producers write a business row and a message in one transaction each, as an application does: in
// four round trips.
type producers struct {
	lab   *Lab
	book  *book
	notes notes // the book, unless a scenario has its own
	shop  shop
	noise []byte
}

// notes assigns numbers to messages, and records commits that have returned.
type notes interface {
	draw() int64
	commit(number int64)
}

func (l *Lab) hire(ctx context.Context, b *book) (*producers, error) {
	shop, err := l.engine.hire(ctx, l.Writers)
	if err != nil {
		return nil, err
	}
	return l.producersAt(shop, b), nil
}

func (l *Lab) producersAt(shop shop, b *book) *producers {
	return &producers{lab: l, book: b, notes: b, shop: shop, noise: noise(2*l.Payload + 1<<16)}
}

func (p *producers) dismiss() { p.shop.close() }

// fullLoad lets every writer commit as fast as it can for the given time. It completes transactions
// that have begun: cancelling one would leave a dead tuple that the relay has not caused.
func (p *producers) fullLoad(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	return p.each(func(int) error {
		payload := make([]byte, p.lab.Payload)
		for time.Now().Before(end) {
			if err := p.produce(ctx, payload); err != nil {
				return err
			}
		}
		return nil
	})
}

// steady commits messages at an even rate, independent of their duration, as long as a writer is
// free.
func (p *producers) steady(ctx context.Context, rate int, d time.Duration) error {
	start := time.Now()
	total := int64(float64(rate) * d.Seconds())
	interval := time.Second / time.Duration(rate)
	var turn atomic.Int64
	return p.each(func(int) error {
		payload := make([]byte, p.lab.Payload)
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			n := turn.Add(1) - 1
			if n >= total {
				return nil
			}
			timer.Reset(time.Until(start.Add(time.Duration(n) * interval)))
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := p.produce(ctx, payload); err != nil {
				return err
			}
		}
	})
}

// each runs f once per writer and returns the first error after all have ended.
func (p *producers) each(f func(writer int) error) error {
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	for w := range p.lab.Writers {
		wg.Go(func() {
			if err := f(w); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	wg.Wait()
	return first
}

func (p *producers) produce(ctx context.Context, payload []byte) error {
	number := p.notes.draw()
	binary.BigEndian.PutUint64(payload, uint64(number))
	copy(payload[numberSize:], p.noise[rand.IntN(len(p.noise)-len(payload)):])
	order := number % keys

	message := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: strconv.FormatInt(order, 10)}, payload)
	message.Topic = p.lab.Topic
	if err := p.shop.commit(ctx, order, number, message); err != nil {
		return err
	}
	p.notes.commit(number)
	return nil
}

// noise returns incompressible bytes.
func noise(size int) []byte {
	bytes := make([]byte, size)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(bytes) // never fails
	return bytes
}
