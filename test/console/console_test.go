package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/test/playwright"
)

// pictures reports whether docs/console is updated. Other tests are skipped then, so that the
// screenshots show normal operation.
var pictures = os.Getenv("UPDATE_SCREENSHOTS") == "1"

// TestConsole runs the browser tests on the console of a working business. UPDATE_SCREENSHOTS=1
// updates docs/console. BROWSER_TESTS has arguments for Playwright, such as the name of a file.
func TestConsole(t *testing.T) {
	need.Alone(t, "a browser waits for some seconds only")
	playwright.Install(t, "browser")
	s := newShop(t)
	s.seed()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	t.Cleanup(func() { cancel(); work.Wait() })
	background := func(f func() error) {
		work.Go(func() {
			if err := f(); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
	}
	s.seedSagas(ctx, background)
	s.seedKeys(ctx)
	s.consume(ctx, background)

	common := file{Shop: s.db.dsn, Billing: s.billing.dsn, NATS: s.nats, Stream: s.stream, Partner: s.partner.URL + "/hooks/{name}"}
	first, second := common, common
	first.Health, first.Console = port.For(t), port.For(t)
	second.Health, second.Console, second.Prefix = port.For(t), port.For(t), prefix
	firstFile := first.write(t, "postrider.yaml")
	start(t, "relay", "--config", firstFile)
	behind := start(t, "relay", "--config", second.write(t, "postrider.yaml"))
	answers(t, "http://"+first.Health+"/readyz", http.StatusOK)
	answers(t, "http://"+second.Health+"/readyz", http.StatusOK)
	background(func() error { s.produce(ctx); return nil })
	s.scene.Console, s.scene.Proxy = "http://"+first.Console+"/", proxied(t, second.Console)+prefix+"/"
	s.scene.Control = s.control(t, behind)
	s.settle(first.Console)
	for _, act := range []string{"pause", "resume"} {
		run(t, "feeds", act, "ledger", "--dsn", s.billing.dsn, "--reason", "bảo trì máy chủ")
	}
	var only []string
	if pictures {
		only = append(only, "screenshots")
	}
	browse(t, s.scene, only...)
}

// settle waits until everything that is expected to fail has failed.
func (s *shop) settle(console string) {
	s.t.Helper()
	eventually(s.t, "dead letters", func() error {
		var n struct{ Dead int }
		if err := getJSON("http://"+console+"/api/v1/dead/count?db=shop", tokens["wei"], &n); err != nil {
			return err
		}
		if want := 60; n.Dead < want {
			return fmt.Errorf("%d dead letters, want %d", n.Dead, want)
		}
		return nil
	})
	eventually(s.t, "sagas", func() error {
		n := map[string]int{}
		if err := getJSON("http://"+console+"/api/v1/sagas/count?db=shop", tokens["wei"], &n); err != nil {
			return err
		}
		if n["completed"] != 8 || n["stuck"] != 3 || n["waiting"] != 3 || n["running"] != 2 || n["compensated"] != 1 {
			return fmt.Errorf("%v", n)
		}
		return nil
	})
}

func getJSON(url, token string, into any) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// browse runs browser tests, which read the scene.
func browse(t *testing.T, scene any, args ...string) {
	t.Helper()
	text, err := json.Marshal(scene)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "scene.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"playwright", "test"}, args...)
	if more := os.Getenv("BROWSER_TESTS"); more != "" {
		args = append(args, more, "--pass-with-no-tests") // the arguments may select tests of another Go test
	}
	cmd := exec.CommandContext(t.Context(), "npx", args...)
	cmd.Dir = "browser"
	cmd.Env = append(os.Environ(), "CONSOLE_SCENE="+file, "CONSOLE_OUTPUT="+t.TempDir())
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Errorf("the tests of the browser: %v", err)
	}
}
