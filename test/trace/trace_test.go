package trace_test

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestOneTrace follows an order from the request to its last effect, through each broker.
func TestOneTrace(t *testing.T) {
	for _, b := range servers {
		t.Run(b.driver, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, b)
			spans := s.run(b)
			for _, problem := range s.check(spans) {
				t.Error(problem)
			}
			s.keepsSecrets()
			draw(t, b, s, spans)
		})
	}
}

// TestBlindOutbox plants a known bug: an outbox that is not observed breaks the trace, and the
// check detects it.
func TestBlindOutbox(t *testing.T) {
	t.Parallel()
	s := newScene(t, servers[0])
	s.blind = true
	problems := strings.Join(s.check(s.run(servers[0])), "\n")
	for _, want := range []string{"the row in charged was written in trace", `billing has no span "process ` + s.orders} {
		if !strings.Contains(problems, want) {
			t.Errorf("the check does not report that %s; it reports:\n%s", want, problems)
		}
	}
}

// TestRetry has a handler fail. The successful attempt starts from the consumer's database and is
// in the same trace.
func TestRetry(t *testing.T) {
	t.Parallel()
	s := newScene(t, servers[0])
	s.failures.Store(1)
	spans := s.run(servers[0])
	for _, problem := range s.check(spans) {
		t.Error(problem)
	}
	attempts := s.find(spans, "billing", "process "+s.orders)
	if len(attempts) != 2 || !attempts[0].failed || attempts[1].failed || attempts[0].parent != attempts[1].parent {
		t.Errorf("want an attempt that fails and one that does not, below the same span: %+v", attempts)
	}
	s.keepsSecrets()
}

// find returns the spans of a service with a name, in the trace of the order.
func (s *scene) find(spans []span, service, name string) []span {
	var found []span
	for _, x := range spans {
		if x.service == service && x.name == name && x.trace == s.traceOf("orders", secretOrder) {
			found = append(found, x)
		}
	}
	return found
}

// check returns what keeps the spans from being one trace from the request to the mail.
func (s *scene) check(spans []span) (problems []string) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, table := range []string{"charged", "mails"} {
		if got, want := s.traceOf(table, secretOrder), s.traceOf("orders", secretOrder); got != want {
			complain("the row in %s was written in trace %s, the order in %s", table, got, want)
		}
	}
	last := func(service, name string) span {
		found := s.find(spans, service, name)
		if len(found) == 0 {
			complain("%s has no span %q in the trace of the order", service, name)
			return span{}
		}
		return found[len(found)-1]
	}
	below := func(child, parent span) {
		if child.id != "" && parent.id != "" && child.parent != parent.id {
			complain("%q of %s is not below %q of %s", child.name, child.service, parent.name, parent.service)
		}
	}
	// leg checks the path of one message.
	leg := func(from, by, to *service, around span, kind, topic string) span {
		create, send, process := last(from.name, "create "+kind), last(by.name, "send "+topic), last(to.name, "process "+topic)
		if create.id == "" || send.id == "" || process.id == "" {
			return span{}
		}
		below(create, around)
		below(send, create)
		below(process, create)
		id := create.attributes["messaging.message.id"]
		for _, x := range []span{create, send, process} {
			if got := x.attributes["messaging.message.id"]; got != id || got == "" {
				complain("%q has message.id %q, the creation %q", x.name, got, id)
			}
			if got := x.attributes["messaging.message.conversation_id"]; got != "checkout" {
				complain("%q has conversation_id %q", x.name, got)
			}
		}
		call := slices.IndexFunc(spans, func(x span) bool { return x.name == "send default" && slices.Contains(x.links, create.id) })
		if call < 0 {
			complain("no call of the relay has a link to %q", create.name)
		} else if !slices.Contains(send.links, spans[call].id) {
			complain("%q has no link to the call of the relay", send.name)
		}
		for _, x := range []struct{ got, want string }{
			{create.kind, "producer"}, {send.kind, "client"}, {process.kind, "consumer"},
			{process.attributes["messaging.consumer.group.name"], to.name},
		} {
			if x.got != x.want {
				complain("%s of %s: got %q, want %q", kind, to.name, x.got, x.want)
			}
		}
		return process
	}
	charge := leg(s.shop, s.carrier, s.billing, last("shop", "POST /orders"), "order.placed", s.orders)
	mail := leg(s.billing, s.carrier, s.mailer, charge, "order.charged", s.charges)
	below(last("billing", "INSERT charged"), charge)
	below(last("mailer", "INSERT mails"), mail)
	return problems
}

// keepsSecrets searches all bytes that the services sent for planted secrets.
func (s *scene) keepsSecrets() {
	s.t.Helper()
	secrets := []string{secretPayload, secretHeader, secretOrder, "postgres://"}
	if u, err := url.Parse(pgtest.Env(s.t, "POSTRIDER_TEST_POSTGRES18")); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok && password != "" {
			secrets = append(secrets, password)
		}
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if !bytes.Contains(s.b.raw.Bytes(), []byte("process "+s.orders)) {
		s.t.Error("the bytes that were received cannot be searched")
	}
	for _, secret := range secrets {
		if bytes.Contains(s.b.raw.Bytes(), []byte(secret)) {
			s.t.Errorf("a span holds %q", strings.ToUpper(secret[:6])+"…")
		}
	}
}
