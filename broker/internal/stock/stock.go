// Package stock compares messages with what the log of a broker stores, for publishers that implement
// Holder of package reconcile.
package stock

import (
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// Skew is the assumed maximum difference between the clocks of producers and servers.
const Skew = time.Minute

// Since returns a time, with a margin of [Skew], by a clock that shows now: the clock of this process
// may be wrong by hours. The time must have come from this process's clock.
func Since(since, now time.Time) time.Time { return now.Add(-time.Since(since) - Skew) }

// Stock is what one topic or subject stores.
type Stock struct {
	ids  map[string]bool
	from time.Time // older messages may have been dropped
}

// New returns an empty stock from which nothing was dropped.
func New() *Stock { return &Stock{ids: make(map[string]bool)} }

// Add adds a stored message by its ID at the broker.
func (s *Stock) Add(id string) { s.ids[id] = true }

// Dropped records that messages stored before the given time may have been dropped.
func (s *Stock) Dropped(before time.Time) {
	if from := before.Add(Skew); from.After(s.from) {
		s.from = from
	}
}

// Missing returns the indexes of messages that are not stored under their name. It leaves out
// messages that may have been dropped. For each name it calls read, which returns what the name has
// stored since the given time.
func Missing(
	c *codec.Codec, since time.Time, msgs []postrider.Message, read func(name string, since time.Time) (*Stock, error),
) (missing []int, err error) {
	byName := make(map[string][]int)
	ids := make([]string, len(msgs))
	for i := range msgs {
		var packet codec.Packet
		c.Encode(&msgs[i], &packet)
		ids[i] = packet.ID
		byName[packet.Name] = append(byName[packet.Name], i)
	}
	for name, indexes := range byName {
		stored, err := read(name, since.Add(-Skew))
		if err != nil {
			return nil, err
		}
		for _, i := range indexes {
			if !stored.ids[ids[i]] && msgs[i].ID.Time().After(stored.from) {
				missing = append(missing, i)
			}
		}
	}
	slices.Sort(missing)
	return missing, nil
}
