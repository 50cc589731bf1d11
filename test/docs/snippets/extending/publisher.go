// Package spool is an example of a broker: a folder for each name, and a file for each message.
// Only one relay and one consumer at a time may use a folder.
package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
)

// Config configures a publisher or a consumer. The tags are the names of the fields in a
// configuration file.
type Config struct {
	URL      string       // spool:/var/spool/shop
	Format   codec.Format `option:"format"`
	Source   string       `option:"source"`
	Name     string       `option:"name"`
	InFlight int          `option:"in_flight"`
	Mode     int          `option:"mode" default:"384" doc:"Permissions of the files, as a decimal number."`
}

// folder returns the folder of a name.
func (c Config) folder(name string) string {
	return filepath.Join(strings.TrimPrefix(c.URL, "spool:"), "to "+url.PathEscape(name))
}

// Publisher writes messages as files.
type Publisher struct {
	cfg   Config
	coder *codec.Codec

	mu   sync.Mutex
	last int64 // number of the newest file
}

// NewPublisher returns a publisher. A missing folder is reported when a message is sent to it.
func NewPublisher(cfg Config) (*Publisher, error) {
	broker.SetDefaults(&cfg)
	coder, err := codec.NewCodec(cfg.Format, cfg.Source, codec.Dialect{})
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return &Publisher{cfg: cfg, coder: coder}, nil
}

//docs:begin publish

// Publish sends messages one by one: those of one key one after the other, up to the first that fails.
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	return broker.Each(ctx, msgs, 4, p.send)
}

// KeepsOrder is true: behind a message that fails, none of its key is tried.
func (p *Publisher) KeepsOrder() bool { return true }

// NameOf tells which messages share a folder, and so its failures.
func (p *Publisher) NameOf(m *postrider.Message) string { return p.coder.Name(m) }

// Close does nothing: there is nothing to give up.
func (p *Publisher) Close() error { return nil }

func (p *Publisher) send(_ context.Context, m *postrider.Message) error {
	var packet codec.Packet
	p.coder.Encode(m, &packet)
	text, err := json.Marshal(packet)
	if err != nil {
		return postrider.Permanent(err)
	}
	folder := p.cfg.folder(packet.Name)
	err = write(filepath.Join(folder, fmt.Sprintf("%020d", p.next())), text, fs.FileMode(p.cfg.Mode))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return postrider.NameUnavailable(fmt.Errorf("spool: there is no folder %s", folder)) // others may be there
	case err != nil:
		return postrider.Unavailable(fmt.Errorf("spool: %w", err)) // a disk that is full is nobody's fault
	}
	return nil
}

//docs:end

// next returns a number above all earlier ones.
func (p *Publisher) next() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = max(p.last+1, time.Now().UnixNano())
	return p.last
}

// write returns when the file, under its name, would survive a crash of the machine.
func write(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path+".part", os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(path+".part", path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
