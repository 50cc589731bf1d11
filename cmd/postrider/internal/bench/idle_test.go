package bench

import "testing"

// TestIdleFigures: the median of the rounds counts, above the quietest phase without relays.
func TestIdleFigures(t *testing.T) {
	without := []idleUse{{server: 50, own: 1, statements: 9}, {server: 5, own: 2, statements: 2}, {server: 6, own: 1, statements: 2}}
	beside := []idleUse{
		{server: 25, sessions: 18, own: 4, statements: 42, trips: 60},
		{server: 26, sessions: 19, own: 5, statements: 43, trips: 61},
		{server: 400, sessions: 17, own: 9, statements: 41, trips: 59}, // disturbed
	}
	r := idleFigures(without, beside, IdleResult{Databases: 3}, true, true)
	if *r.Server != 21 || *r.Sessions != 18 || *r.Relay != 4 || r.Statements != 40 || r.RoundTrips != 60 || r.LeftOut != "" {
		t.Errorf("%+v: server %v, sessions %v, relay %v", r, *r.Server, *r.Sessions, *r.Relay)
	}
	r = idleFigures(without, beside, IdleResult{Databases: 3}, false, true)
	if r.Server != nil || r.Sessions != nil || r.Relay == nil || r.LeftOut != notSeen {
		t.Errorf("a server elsewhere: %+v", r)
	}
}
