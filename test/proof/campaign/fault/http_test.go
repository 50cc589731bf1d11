package fault_test

import "strings"

var httpChecks = map[string]func(s *scene){
	"http-403":      func(s *scene) { s.told("http-403", "403") },
	"http-429":      func(s *scene) { s.told("http-429", "429") },
	"http-503-key":  func(s *scene) { s.told("http-503-key", "503") },
	"http-404":      func(s *scene) { s.told("http-404", "404") },
	"http-500-key":  func(s *scene) { s.told("http-500-key", "500") },
	"http-500":      func(s *scene) { s.told("http-500", "500") },
	"http-hang":     func(s *scene) { s.told("http-hang", "hang") },
	"http-redirect": func(s *scene) { s.told("http-redirect", "redirect") },
	"http-slow":     func(s *scene) { s.told("http-slow", "slow") },
}

// told checks that the receiver is instructed to start and to stop a behavior.
func (s *scene) told(kind, answer string) {
	s.Helper()
	r := s.begin(kind, "")
	s.heal(r)
	said := s.receiver.all()
	if n := len(said); n < 2 || !strings.HasPrefix(said[n-2], answer+" ") || said[n-1] != "ok 100" {
		s.Errorf("the receiver was told %q", said)
	}
}
