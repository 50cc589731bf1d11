package redis

import (
	"slices"
	"testing"

	"github.com/postrider/postrider"
)

func TestSenderKeepsKeysApart(t *testing.T) {
	t.Parallel()
	var msgs []postrider.Message
	for _, at := range [][2]string{ // key and stream
		{"a", "x"}, {"a", "y"}, {"b", "y"}, {"a", "x"}, {"a", "y"}, {"", "x"}, {"", "y"}, {"b", "y"}, {"c", "x"}, {"c", "y"},
	} {
		msgs = append(msgs, postrider.Message{Type: "t", Key: at[0], Topic: at[1]})
	}
	s, errs := newSender(t), slices.Repeat([]error{errWaiting}, len(msgs))
	var waves [][]int
	for s.fill(msgs, errs) {
		waves = append(waves, slices.Clone(s.wave))
		s.outcomes = make([]error, len(s.wave))
		if len(waves) == 2 { // message 1 is refused
			s.outcomes[0] = refusal("WRONGTYPE")
		}
		s.settle(msgs, errs, nil)
	}
	want := [][]int{{0, 2, 5, 6, 7, 8}, {1, 9}}
	if !slices.EqualFunc(waves, want, slices.Equal) {
		t.Errorf("got waves %v, want %v", waves, want)
	}
	for i, err := range errs {
		if failed := i == 1 || i == 3 || i == 4; failed != (err != nil) {
			t.Errorf("message %d: got %v", i, err)
		}
	}
}

func newSender(t *testing.T) *sender {
	cfg := Config{URL: "redis://localhost"}
	_, codec, err := cfg.prepare()
	if err != nil {
		t.Fatal(err)
	}
	return &sender{routes: &routes{}, cfg: &cfg, coder: codec, streams: make(map[string]string), failed: make(map[string]bool)}
}

func TestSenderBoundsWaves(t *testing.T) {
	t.Parallel()
	msgs := make([]postrider.Message, maxWave+3)
	for i := range msgs {
		msgs[i] = postrider.Message{Type: "t", Key: "k"}
	}
	msgs[maxWave].Payload = make([]byte, maxBytes)
	s, errs := newSender(t), slices.Repeat([]error{errWaiting}, len(msgs))
	var sizes []int
	for s.fill(msgs, errs) {
		sizes = append(sizes, len(s.wave))
		s.outcomes = make([]error, len(s.wave))
		s.settle(msgs, errs, nil)
	}
	if want := []int{maxWave, 1, 2}; !slices.Equal(sizes, want) {
		t.Errorf("got waves of %v, want %v", sizes, want)
	}
}
