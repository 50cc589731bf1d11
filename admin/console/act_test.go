package console_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/api"
)

// TestActs does what operators do. A dry run changes nothing, and what is done is recorded with who and why.
func TestActs(t *testing.T) {
	t.Run("memory", func(t *testing.T) { testActs(t, inMemory(t)) })
	t.Run("postgres", func(t *testing.T) { testActs(t, onPostgres(t)) })
}

func testActs(t *testing.T, s *scene) {
	s.enqueue(good(3)...)
	s.enqueue(bad(6)...)
	s.enqueue(messages("bad.order", 1)...) // behind the first
	s.relay(6)
	var dead api.Page[api.DeadRow]
	s.wants(auth.Viewer, "GET", "/dead", nil, &dead)
	ids := func(i int) dict { return dict{"feed": "default", "id": dead.Items[i].ID} }
	all := dict{"feed": "default"}

	for _, act := range []struct {
		method, path string
		body         dict
		count        int
		command      string
		recorded     string
	}{
		{"POST", "/dead/act", dict{"act": "retry", "filter": ids(1), "why": "it's fixed"}, 1,
			"postrider dead replay " + dead.Items[1].ID + " --feed default --reason 'it'\\''s fixed'", "retry"},
		{"POST", "/dead/act", dict{"act": "discard", "filter": ids(2), "why": "spam"}, 1,
			"postrider dead discard " + dead.Items[2].ID + " --feed default --reason spam", "discard"},
		{"POST", "/dead/act", dict{"act": "park", "filter": ids(3), "why": "later"}, 1,
			"postrider keys park " + dead.Items[3].Key + " --feed default --reason later", "park"},
		{"POST", "/keys/act", dict{"act": "skip", "feed": "default", "key": dead.Items[0].Key, "why": "go on"}, 1,
			"postrider keys skip " + dead.Items[0].Key + " --feed default --reason 'go on'", "skip"},
		{"POST", "/dead/act", dict{"act": "retry", "filter": dict{"feed": "default", "type": "bad.order"}, "limit": 1, "why": "one"}, 1, "", "retry"},
		{"POST", "/dead/act", dict{"act": "discard", "filter": dict{"feed": "default", "error": "refused by", "statuses": []string{"dead"}},
			"why": "two"}, 2, "postrider dead discard --all --feed default --status dead --error 'refused by' --reason two", "discard"},
		{"POST", "/feeds/default/rewind", dict{"time": "2020-01-01T00:00:00Z", "why": "lost"}, -1,
			"postrider feeds rewind default --to 2020-01-01T00:00:00Z --reason lost", "feed rewind"},
		{"POST", "/feeds", dict{"name": "audit", "why": "new", "oldest": true}, 1, "postrider feeds add audit --oldest --reason new", "feed add"},
		{"POST", "/feeds/audit/pause", dict{"why": "wait"}, 1, "postrider feeds pause audit --reason wait", "feed pause"},
		{"POST", "/feeds/audit/resume", dict{}, 1, "postrider feeds resume audit", "feed resume"},
		{"DELETE", "/feeds/audit", dict{"why": "old"}, -1, "postrider feeds rm audit --reason old", "feed remove"},
	} {
		what := act.path + " " + act.recorded
		if act.method == "DELETE" || act.path == "/dead/act" || act.path == "/keys/act" || strings.HasSuffix(act.path, "rewind") {
			before := s.state()
			try := dict{"dry_run": true}
			for k, v := range act.body {
				try[k] = v
			}
			var would api.Done
			s.wants(auth.Admin, act.method, act.path, try, &would)
			if after := s.state(); !reflect.DeepEqual(before, after) {
				t.Errorf("%s: the dry run has changed something: %v, %v", what, before, after)
			}
			if !would.DryRun || act.count >= 0 && (would.Count != act.count || len(would.Sample) != act.count) {
				t.Errorf("%s: the dry run says %+v", what, would)
			}
		}
		var done api.Done
		s.wants(auth.Admin, act.method, act.path, act.body, &done)
		command, _, _ := strings.Cut(done.Command, " --schema ")
		if done.DryRun || act.count >= 0 && done.Count != act.count || command != act.command {
			t.Errorf("%s: %+v\nwant %s", what, done, act.command)
		}
		var audit api.Page[api.AuditEntry]
		s.wants(auth.Admin, "GET", "/audit?limit=1", nil, &audit)
		why, _ := act.body["why"].(string)
		if e := audit.Items[0]; e.Who != "ann-admin (console)" || e.Why != why || !strings.HasPrefix(e.Action, strings.Fields(act.recorded)[0]) {
			t.Errorf("%s: the record is %+v", what, e)
		}
	}

	for _, no := range []struct {
		method, path string
		body         dict
		status       int
	}{
		{"POST", "/dead/act", dict{"act": "discard", "filter": all}, 422},
		{"POST", "/dead/act", dict{"act": "retry", "filter": all, "why": " "}, 200}, // there is one left
		{"POST", "/dead/act", dict{"act": "burn", "filter": all, "why": "x"}, 422},
		{"POST", "/dead/act", dict{"act": "discard", "filter": dict{"statuses": []string{"pending"}}, "why": "x"}, 422},
		{"POST", "/dead/act", dict{"act": "retry", "filter": dict{"id": "x"}}, 422},
		{"POST", "/dead/act", dict{"act": "retry", "filter": dict{"id": postrider.NewID().String()}}, 404},
		{"POST", "/keys/act", dict{"act": "retry", "feed": "default", "key": "none"}, 404},
		{"POST", "/feeds/none/pause", dict{}, 404},
		{"POST", "/feeds/default/resume", nil, 200},
		{"DELETE", "/feeds/default", dict{"why": ""}, 422},
		{"POST", "/feeds/default/rewind", dict{"why": "x"}, 422},
		{"POST", "/feeds", dict{"name": "inbox/billing", "why": "x"}, 422},
		{"GET", "/messages/" + postrider.NewID().String(), nil, 404},
		{"GET", "/messages/x", nil, 422},
		{"GET", "/messages?feed=none", nil, 404},
		{"GET", "/overview?db=none", nil, 404},
		{"GET", "/sagas/book-trip/none", nil, 404},
	} {
		var body any = no.body
		if no.body == nil {
			body = nil
		}
		if status, text := s.raw(auth.Admin, no.method, no.path, body); status != no.status {
			t.Errorf("%s %s %v: %d %s, want %d", no.method, no.path, no.body, status, text, no.status)
		}
	}
}

// state is all that an act could change.
func (s *scene) state() []any {
	ctx := s.t.Context()
	feeds := must(s.db.Feeds.ListFeeds(ctx))
	return []any{
		must(s.db.DeadLetters.List(ctx, admin.Filter{}, nil, 100)), feeds, len(must(s.db.Records.Audit(ctx, "", 0, 1000))),
	}
}

// TestEdit changes a dead letter, as far as all of it was shown.
func TestEdit(t *testing.T) {
	s := inMemory(t)
	plain := postrider.Event("bad.order", postrider.Aggregate{Type: "order", ID: "1"}, map[string]int{"n": 1})
	plain.Headers = map[string]string{"shop": "north", "api-token": "geheim"}
	secret := postrider.Event("bad.order", postrider.Aggregate{Type: "order", ID: "2"}, map[string]string{"card": "4111 1111"})
	s.enqueue(plain, secret)
	s.relay(2)
	path := "/dead/default/" + plain.ID.String()
	var seen api.Journey
	s.wants(auth.Operator, "GET", "/messages/"+plain.ID.String(), nil, &seen)
	seen.Message.Headers["shop"] = "south"
	var done api.Done
	s.wants(auth.Operator, "PUT", path, dict{"type": "order.placed", "headers": seen.Message.Headers, "payload": `{"n":2}`, "why": "typo"}, &done)
	want := "postrider dead edit " + plain.ID.String() + " --feed default --type order.placed --header shop=south --payload FILE --reason typo"
	if done.Command != want {
		t.Errorf("%s\nwant %s", done.Command, want)
	}
	kept := must(s.db.DeadLetters.List(t.Context(), admin.Filter{ID: plain.ID}, nil, 1))[0]
	if string(kept.Payload) != `{"n":2}` || kept.Type != "order.placed" || kept.Headers["shop"] != "south" || kept.Headers["api-token"] != "geheim" {
		t.Errorf("it is %+v", kept)
	}
	if status, text := s.raw(auth.Operator, "PUT", "/dead/default/"+secret.ID.String(), dict{"payload": "{}"}); status != 409 {
		t.Errorf("what was blacked out was written over: %d %s", status, text)
	}
	if status, text := s.raw(auth.Operator, "PUT", "/dead/default/"+secret.ID.String(), dict{"type": strings.Repeat("x", 2000)}); status != 422 {
		t.Errorf("a type that is too long: %d %s", status, text)
	}
	if status, text := s.raw(auth.Operator, "PUT", path, dict{}); status != 404 {
		t.Errorf("a message that is not dead any more: %d %s", status, text)
	}
}

// TestManyRetries has more than a thousand dead letters sent again by a replay that the console runs.
func TestManyRetries(t *testing.T) {
	s := onPostgres(t)
	s.enqueue(bad(1001)...)
	s.relay(1001)
	var done api.Done
	body := dict{"act": "retry", "filter": dict{"feed": "default"}}
	if status, text := s.raw(auth.Operator, "POST", "/dead/act", body); status != 422 {
		t.Fatalf("without a reason: %d %s", status, text)
	}
	body["why"] = "broker is back"
	s.wants(auth.Operator, "POST", "/dead/act", body, &done)
	if done.Job == nil || done.Count != 1001 {
		t.Fatalf("%+v", done)
	}
	s.await("the replay", func() bool {
		var jobs []api.Replay
		s.wants(auth.Viewer, "GET", "/replays", nil, &jobs)
		return jobs[0].State == "done" && jobs[0].Sent == 1001
	})
}

// TestReplayPauses leaves a replay that is under way when the console ends for another to go on with.
func TestReplayPauses(t *testing.T) {
	s := onPostgres(t)
	s.enqueue(bad(5)...)
	s.relay(5)
	var done api.Done
	s.wants(auth.Operator, "POST", "/replays", dict{"filter": dict{"feed": "default"}, "dead": true, "rate": 1, "why": "slowly"}, &done)
	s.await("the first message", func() bool { return must(s.db.Replays.Job(t.Context(), done.Job.ID)).Sent > 0 })
	s.stop()
	if job := must(s.db.Replays.Job(t.Context(), done.Job.ID)); job.State != "paused" || job.By.Who != "ann-operator (console)" {
		t.Errorf("%+v", job)
	}
}
