package table

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// findInFlight finds a message of a batch among those that were read and not settled yet.
func (f *feed) findInFlight(b *feeds.Batch, index int) (inFlight, error) {
	if b == nil {
		return inFlight{}, errors.New("a message without its batch")
	}
	p, ok := b.Cursor.(*page)
	if !ok || index < 0 || index >= p.to-p.from {
		return inFlight{}, fmt.Errorf("message %d is not in its batch", index)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owned[b.Shard] != p.shard {
		return inFlight{}, fmt.Errorf("shard %d is not held any more", b.Shard)
	}
	i := p.from + index - p.shard.base
	if i < 0 || i >= len(p.shard.inFlight) {
		return inFlight{}, fmt.Errorf("message %d of shard %d is settled already", index, b.Shard)
	}
	return p.shard.inFlight[i], nil
}

// markDeferred has messages left alone when their shard is settled.
func (f *feed) markDeferred(msgs []feeds.Deferral) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range msgs {
		p := msgs[i].Batch.Cursor.(*page) //nolint:errcheck // findInFlight has seen it
		if n := p.from + msgs[i].Index - p.shard.base; n >= 0 && n < len(p.shard.inFlight) {
			p.shard.inFlight[n].deferred = true
		}
	}
}

// run is a part of a shard of which it is known which places are taken.
type run struct{ from, to int64 }

// distinct gives each message a place of its own: those of one time stand behind each other. Numbers of rows are distinct already.
func (f *feed) distinct(ctx context.Context, tx sqltext.Querier, all []setting) error {
	if f.t.ids == idInteger && f.t.seq == f.t.id {
		return nil
	}
	taken, known := make(map[place]bool), make(map[int]run)
	for i := range all {
		s := &all[i]
		for {
			at := place{s.Batch.Shard, s.seq}
			if k, ok := known[at.shard]; !ok || at.seq < k.from || at.seq > k.to {
				to, err := f.taken(ctx, tx, at, taken)
				if err != nil {
					return err
				}
				known[at.shard] = run{at.seq, to}
			}
			if !taken[at] {
				taken[at] = true
				break
			}
			s.seq++
		}
	}
	return nil
}

// taken notes which places are taken from one on, and returns how far it has looked.
func (f *feed) taken(ctx context.Context, tx sqltext.Querier, from place, taken map[place]bool) (to int64, err error) {
	n := 0
	s := f.cfg().stmt("SELECT seq FROM {deferred} WHERE feed = ").Word(f.name).SQL(" AND shard = ").Number(int64(from.shard))
	s.SQL(" AND seq >= ").Number(from.seq).SQL(" ORDER BY seq LIMIT ").Number(chunk)
	err = s.Each(ctx, tx, func(scan func(...any) error) error {
		err := scan(&to)
		taken[place{from.shard, to}] = true
		n++
		return err
	})
	if n < chunk {
		to = math.MaxInt64
	}
	return to, err
}
