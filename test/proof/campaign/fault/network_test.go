package fault_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

var networkChecks = map[string]func(s *scene){
	"proxy-reset":        (*scene).connectionsReset,
	"proxy-drop-answers": (*scene).answersDropped,
	"proxy-delay":        (*scene).delayed,
	"proxy-slices":       (*scene).sliced,
	"proxy-cut-after":    (*scene).cutAfter,
	"broker-silent":      (*scene).brokerSilent,
	"database-silent":    (*scene).databaseSilent,
	"net-cut":            (*scene).cutOff,
}

func (s *scene) connectionsReset() {
	conn, err := pgx.Connect(s.Context(), s.ProducerDSN())
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close(s.Context())
	r := s.begin("proxy-reset", world.ToProducers)
	s.eventually("the session breaks", func() bool {
		_, err := conn.Exec(s.Context(), "SELECT 1")
		return err != nil
	})
	s.heal(r)
	s.exec(s.ProducerDSN(), "SELECT 1")
}

// answersDropped checks that a statement is executed, but its response is lost.
func (s *scene) answersDropped() {
	conn, err := pgx.Connect(s.Context(), s.ProducerDSN())
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close(s.Context())
	r := s.begin("proxy-drop-answers", world.ToProducers)
	ctx, cancel := context.WithTimeout(s.Context(), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, "INSERT INTO facts VALUES ('unanswered')"); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("the sender hears %v", err)
	}
	s.eventually("it is executed", func() bool { return s.ask("SELECT count(*)::text FROM facts WHERE name = 'unanswered'") == "1" })
	s.heal(r)
}

func (s *scene) delayed() {
	conn, err := pgx.Connect(s.Context(), s.ProducerDSN())
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close(s.Context())
	r := s.begin("proxy-delay", world.ToProducers)
	defer s.heal(r)
	each, err := time.ParseDuration(r.Detail)
	if err != nil {
		s.Fatal(err)
	}
	begin := time.Now()
	if _, err := conn.Exec(s.Context(), "SELECT 1", pgx.QueryExecModeSimpleProtocol); err != nil {
		s.Fatal(err)
	}
	if took := time.Since(begin); took < 2*each {
		s.Errorf("an answer took %v, want twice %v", took, each)
	}
}

func (s *scene) sliced() {
	r := s.begin("proxy-slices", world.ToProducers)
	defer s.heal(r)
	s.exec(s.ProducerDSN(), "SELECT repeat('x', 10000)")
}

func (s *scene) cutAfter() {
	r := s.begin("proxy-cut-after", world.ToProducers)
	if err := s.try(s.ProducerDSN(), "SELECT repeat('x', 1000000)", 30*time.Second); err == nil || errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("a long answer: %v", err)
	}
	s.heal(r)
}

// brokerSilent checks that a connection stays open without traffic, and works again afterwards.
func (s *scene) brokerSilent() {
	conn, err := net.Dial("tcp", s.Proxy(world.Redis).Address())
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	r := s.begin("broker-silent", world.Redis)
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		s.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		s.Errorf("%q, %v; want silence", line, err)
	}
	s.heal(r)
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if line, err := answers.ReadString('\n'); line != "+PONG\r\n" {
		s.Errorf("afterwards: %q, %v", line, err)
	}
}

func (s *scene) databaseSilent() {
	r := s.begin("database-silent", s.RelayProxy("relay1"))
	connections := s.Proxy(r.Target).Connections()
	s.exec(s.relayDSN("relay2"), "SELECT 1")
	s.unanswered(s.relayDSN("relay1"), "SELECT 1")
	if connections == 0 {
		s.Error("the relay has no connection")
	}
	s.heal(r)
	s.exec(s.relayDSN("relay1"), "SELECT 1")
}

// relayDSN returns the address of the database as a relay reaches it.
func (s *scene) relayDSN(relay string) string {
	return "postgres://postgres@" + s.Proxy(s.RelayProxy(relay)).Address() + "/postrider?sslmode=disable"
}

// cutOff checks that a relay cannot be reached, that its connections stay open nevertheless, and
// that it is reachable again afterwards.
func (s *scene) cutOff() {
	if err := s.RelaysReady(s.Context()); err != nil {
		s.Fatal(err)
	}
	r := s.begin("net-cut", "relay1")
	ctx, cancel := context.WithTimeout(s.Context(), time.Second)
	defer cancel()
	if s.Lives(ctx, s.Process("relay1")) == nil {
		s.Error("the relay answers")
	}
	// What the proxy has already read still arrives; then nothing more, although a relay queries
	// many times a second.
	s.eventually("nothing arrives", func() bool {
		before, _ := s.Proxy(s.RelayProxy("relay1")).Passed()
		time.Sleep(500 * time.Millisecond)
		now, _ := s.Proxy(s.RelayProxy("relay1")).Passed()
		return now == before
	})
	if s.Proxy(s.RelayProxy("relay1")).Connections() == 0 {
		s.Error("its connections were broken")
	}
	s.heal(r)
	if err := s.Lives(s.Context(), s.Process("relay1")); err != nil {
		s.Error(err)
	}
	if !slices.Contains(r.Touches, "relay") {
		s.Errorf("it touches %v", r.Touches)
	}
}
