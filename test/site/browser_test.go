package site_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"
)

// checkInBrowser opens every page in a real browser at the width of a phone. Nothing may overflow,
// no script may fail, and the search must find existing content.
func checkInBrowser(t *testing.T, built string) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("chromium is missing; run: dev/services install chromium")
	}
	probe, err := os.ReadFile("testdata/probe.html")
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	err = fs.WalkDir(os.DirFS(built), ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".html" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(pages)
	if err != nil {
		t.Fatal(err)
	}

	findings := make(chan []string, 1)
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(built)))
	mux.HandleFunc("GET /probe", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(bytes.Replace(probe, []byte("PAGES"), list, 1))
	})
	mux.HandleFunc("POST /found", func(_ http.ResponseWriter, r *http.Request) {
		var found []string
		if err := json.NewDecoder(r.Body).Decode(&found); err != nil {
			found = []string{err.Error()}
		}
		findings <- found
	})
	server := httptest.NewServer(mux)
	defer server.Close()

	var log bytes.Buffer
	browser := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
		"--no-first-run", "--enable-logging=stderr", "--user-data-dir="+t.TempDir(), "--remote-debugging-port=0", server.URL+"/probe")
	browser.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // the killed browser would leave files behind
	browser.Stderr = &log
	browser.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its helper processes end with it, before the folder is deleted
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	var found []string
	select {
	case found = <-findings:
	case <-time.After(time.Minute):
		found = []string{"the browser has not answered within a minute"}
	}
	_ = syscall.Kill(-browser.Process.Pid, syscall.SIGKILL)
	_ = browser.Wait()
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "CONSOLE") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	for _, problem := range found {
		t.Error(problem)
	}
}
