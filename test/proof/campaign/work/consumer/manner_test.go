package consumer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/postrider/postrider"
)

// Handlers behave as they were told last.
func TestManner(t *testing.T) {
	m := &Manner{}
	tell := func(query string) int {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/control?"+query, nil))
		return w.Code
	}
	ended, end := context.WithCancel(t.Context())
	end()
	before := func() (err error) {
		defer func() {
			if said := recover(); said != nil {
				err = errors.New("panic")
			}
		}()
		return m.before(ended)
	}
	if err := before(); err != nil {
		t.Errorf("at first: %v", err)
	}
	for query, want := range map[string]func(error) bool{
		"answer=ok":                  func(err error) bool { return err == nil },
		"answer=panic":               func(err error) bool { return err != nil && err.Error() == "panic" },
		"answer=hang":                func(err error) bool { return errors.Is(err, context.Canceled) },
		"answer=provider":            func(err error) bool { return postrider.ScopeOf(err) == postrider.ScopeDestination },
		"answer=provider&share=0":    func(err error) bool { return err == nil },
		"answer=provider&share=0100": func(err error) bool { return errors.Is(err, errProvider) },
	} {
		if code := tell(query); code != http.StatusOK {
			t.Errorf("%s: status %d", query, code)
		}
		if err := before(); !want(err) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if code := tell("answer=sing"); code != http.StatusBadRequest {
		t.Errorf("an unknown manner: status %d", code)
	}
}

// Only one process consumes from a broker that does not keep order among several.
func TestShare(t *testing.T) {
	all := []string{"kafka", "nats", "rabbitmq", "redis", "http"}
	times := map[string]int{}
	for number := 1; number <= 3; number++ {
		for _, d := range Share(number, all) {
			times[d]++
		}
	}
	if times["nats"] != 1 || times["redis"] != 1 || times["kafka"] != 3 || times["rabbitmq"] != 3 || times["http"] != 0 {
		t.Errorf("%v", times)
	}
}
