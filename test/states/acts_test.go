package states_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
)

var ann = admin.By{Who: "ann@test", Why: "a test"}

// traffic is the key of background messages.
const traffic = "z"

// acts are the commands that change something.
var acts map[string]func(s *scene, args []string) error

func init() {
	acts = map[string]func(s *scene, args []string) error{
		"relay": (*scene).relay,
		"stop":  func(s *scene, _ []string) error { s.stop(); return nil },
		"restart": func(s *scene, _ []string) error {
			configs := s.configs
			s.stop()
			for _, cfg := range configs {
				s.start(cfg)
			}
			return nil
		},
		"refuse":  mood(postrider.Permanent(errors.New("refused as poison"))),
		"fail":    mood(errors.New("failed somehow")),
		"accept":  mood(nil),
		"down":    outage(true),
		"up":      outage(false),
		"enqueue": (*scene).enqueue,
		"repeat": func(s *scene, args []string) error {
			n, err := s.write(args)
			if err == nil && n != len(args) {
				err = fmt.Errorf("%d were left out, want %d", n, len(args))
			}
			return err
		},
		"retry":   deadLetter(admin.Retry),
		"skip":    deadLetter(admin.Skip),
		"park":    deadLetter(admin.Park),
		"discard": deadLetter(admin.Discard),
		"edit": func(s *scene, args []string) error {
			rows, err := s.admin.List(s.t.Context(), admin.Filter{ID: s.ids[args[0]]}, nil, 1)
			if err != nil || len(rows) == 0 {
				return fmt.Errorf("not deferred: %w", err)
			}
			m := rows[0].Message
			m.Payload = []byte(args[1])
			return s.admin.Edit(s.t.Context(), ann, rows[0].Feed, m.ID, m)
		},
		"feed": (*scene).feed,
	}
}

func mood(err error) func(s *scene, args []string) error {
	return func(s *scene, args []string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range args {
			s.moods[name] = err
		}
		return nil
	}
}

func outage(down bool) func(s *scene, args []string) error {
	return func(s *scene, _ []string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.down = down
		return nil
	}
}

func deadLetter(act admin.Act) func(s *scene, args []string) error {
	return func(s *scene, args []string) error {
		for _, name := range args {
			if n, err := s.admin.Act(s.t.Context(), ann, act, admin.Filter{ID: s.ids[name]}, 0); n != 1 || err != nil {
				return fmt.Errorf("done to %d messages, %v", n, err) //nolint:errorlint // it may be nil
			}
		}
		return nil
	}
}

func (s *scene) relay(args []string) error {
	cfg := quick()
	for _, arg := range args {
		var err error
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "order":
			cfg.Order = value
		case "feed":
			cfg.Feed = value
		case "attempts":
			cfg.Retry.Attempts, err = strconv.Atoi(value)
		case "batch":
			cfg.BatchSize, err = strconv.Atoi(value)
		case "backoff":
			cfg.Retry.First = 0
			for text := range strings.SplitSeq(value, ",") {
				d, wrong := time.ParseDuration(text)
				cfg.Retry.Pauses, err = append(cfg.Retry.Pauses, d), errors.Join(err, wrong)
			}
		default:
			err = fmt.Errorf("there is no option %s", name)
		}
		if err != nil {
			return err
		}
	}
	s.start(cfg)
	return nil
}

func (s *scene) enqueue(args []string) error {
	n, err := s.write(args)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d were left out", n)
	}
	return err
}

// write enqueues messages in one transaction, and returns how many were dropped as duplicates.
func (s *scene) write(args []string) (repeats int, err error) {
	var msgs []postrider.Message
	for _, arg := range args {
		m := postrider.Message{ID: postrider.NewID(), Type: "states", Key: arg[:1]}
		name, dedup, _ := strings.Cut(arg, "=")
		name, priority, urgent := strings.Cut(name, "!")
		name, after, late := strings.Cut(name, "@")
		m.Payload, m.DedupKey = []byte(name), dedup
		if urgent {
			if m.Priority, err = strconv.Atoi(priority); err != nil {
				return 0, err
			}
		}
		if late {
			d, err := time.ParseDuration(after)
			if err != nil {
				return 0, err
			}
			m.DeliverAfter = time.Now().Add(d)
		}
		if name != traffic {
			s.ids[name] = m.ID
		}
		msgs = append(msgs, m)
	}
	left, err := s.offer(s.t.Context(), msgs)
	return len(left), err
}

func (s *scene) feed(args []string) error {
	ctx := s.t.Context()
	name := args[1]
	switch args[0] {
	case "add":
		return s.admin.AddFeed(ctx, ann, name, args[2] == "oldest")
	case "rm":
		return s.admin.RemoveFeed(ctx, ann, name)
	case "pause", "resume":
		return s.admin.PauseFeed(ctx, ann, name, args[0] == "pause")
	case "rewind":
		_, err := s.admin.Rewind(ctx, ann, name, admin.Point{ID: s.ids[args[2]]})
		return err
	}
	return errors.New("there is no such command")
}
