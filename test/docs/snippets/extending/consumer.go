package spool

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
)

// Consumer passes files to a handler, and removes them after they were handled.
type Consumer struct {
	cfg   Config
	coder *codec.Codec
}

// NewConsumer returns a consumer of Config.Name.
func NewConsumer(cfg Config) (*Consumer, error) {
	broker.SetDefaults(&cfg)
	coder, err := codec.NewCodec(cfg.Format, cfg.Source, codec.Dialect{})
	return &Consumer{cfg, coder}, err
}

// Close does nothing.
func (c *Consumer) Close() error { return nil }

//docs:begin consume

// Consume looks into the folder again and again. The intake does the rest: order per key, at most InFlight at a time, retries.
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	in := intake.Open(ctx, handle, intake.Config{Limit: c.cfg.InFlight})
	defer in.Wait()
	taken := map[string]bool{} // not "the last one": files may appear out of their order
	for ctx.Err() == nil {
		files, _ := filepath.Glob(filepath.Join(c.cfg.folder(c.cfg.Name), "*")) // sorted
		maps.DeleteFunc(taken, func(path string, _ bool) bool {
			_, waits := slices.BinarySearch(files, path)
			return !waits
		})
		for _, path := range files {
			if taken[path] || strings.HasSuffix(path, ".part") {
				continue
			}
			m, err := c.read(path)
			if err != nil {
				break // tried again: what follows may be of the same key
			}
			if !in.Accept(intake.Delivery{Message: m, Done: func() { _ = os.Remove(path) }}) {
				return nil
			}
			taken[path] = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

//docs:end

func (c *Consumer) read(path string) (postrider.Message, error) {
	var packet codec.Packet
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &packet)
	}
	if err != nil {
		return postrider.Message{}, err
	}
	m, err := c.coder.Decode(&packet)
	if err != nil {
		slog.Error("spool: handed over as it is", "path", path, "err", err)
	}
	return m, nil
}
