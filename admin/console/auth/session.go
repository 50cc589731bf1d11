package auth

import (
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/postrider/postrider/admin/console/internal/guard"
)

// session is the content of a session cookie. Times are Unix seconds.
type session struct {
	ID    string `json:"i"`
	Name  string `json:"n"`
	Role  Role   `json:"r"`
	Via   string `json:"v"`
	Grant string `json:"g"` // identifies the token or provider that granted it; see Auth.granted
	Born  int64  `json:"b"`
	Seen  int64  `json:"s"`
}

func (s session) identity() Identity { return Identity{Name: s.Name, Role: s.Role, Via: s.Via} }

// ends returns the time at which the session ends without further requests.
func (s session) ends(idle time.Duration) time.Time {
	end, idleEnd := time.Unix(s.Born, 0).Add(maxSession), time.Unix(s.Seen, 0).Add(idle)
	if idleEnd.Before(end) {
		return idleEnd
	}
	return end
}

// begin starts a session.
func (a *Auth) begin(w http.ResponseWriter, r *http.Request, who Identity, grant string) error {
	now := a.now()
	s := session{ID: randomText(), Name: who.Name, Role: who.Role, Via: who.Via, Grant: grant, Born: now.Unix(), Seen: now.Unix()}
	if err := a.send(w, r, s); err != nil {
		return err
	}
	a.log.InfoContext(r.Context(), "console: signed in", "name", who.Name, "role", who.Role, "via", who.Via,
		"client", guard.Client(r, a.proxies()))
	return nil
}

// send sets the cookie of a session. SameSite=Strict keeps it out of every request that another
// site causes, even the redirect from the provider. The pages do not need it: they call the API,
// and that is a same-site request.
func (a *Auth) send(w http.ResponseWriter, r *http.Request, s session) error {
	value, err := a.sessions.close(s)
	if err != nil {
		return err
	}
	http.SetCookie(w, a.cookie(r, sessionCookie, value, http.SameSiteStrictMode, s.ends(a.cfg.Session).Sub(a.now())))
	return nil
}

// current returns the session of a request, and extends it.
func (a *Auth) current(w http.ResponseWriter, r *http.Request) (session, bool) {
	s, ok := a.read(r)
	if !ok {
		return session{}, false
	}
	// Do not send a cookie with every response.
	if now := a.now(); now.Sub(time.Unix(s.Seen, 0)) > a.cfg.Session/20 {
		s.Seen = now.Unix()
		if err := a.send(w, r, s); err != nil {
			return session{}, false
		}
	}
	return s, true
}

func (a *Auth) read(r *http.Request) (session, bool) {
	c, err := r.Cookie(a.cookieName(r, sessionCookie))
	if err != nil {
		return session{}, false
	}
	var s session
	if a.sessions.open(c.Value, &s) != nil || !a.now().Before(s.ends(a.cfg.Session)) || a.ended.has(s.ID) || !a.granted(&s) {
		return session{}, false
	}
	return s, true
}

// end ends a session. It removes the cookie, and makes copies of it invalid.
func (a *Auth) end(w http.ResponseWriter, r *http.Request) {
	if s, ok := a.read(r); ok {
		a.ended.add(s.ID, time.Unix(s.Born, 0).Add(maxSession), a.now())
		a.requests.end(s.ID)
		a.log.InfoContext(r.Context(), "console: signed out", "name", s.Name, "via", s.Via)
	}
	http.SetCookie(w, a.cookie(r, sessionCookie, "", http.SameSiteStrictMode, -1))
}

const (
	sessionCookie = "postrider"
	flowCookie    = "postrider_flow"
)

// cookieName adds the prefix that makes browsers accept the cookie only from this host and over
// TLS. The stronger prefix requires the path "/".
func (a *Auth) cookieName(r *http.Request, name string) string {
	switch {
	case !a.secure(r):
		return name
	case a.prefix == "":
		return "__Host-" + name
	}
	return "__Secure-" + name
}

func (a *Auth) cookie(r *http.Request, name, value string, site http.SameSite, age time.Duration) *http.Cookie {
	seconds := -1
	if age > 0 {
		seconds = int(math.Ceil(age.Seconds()))
	}
	path := a.prefix
	if path == "" {
		path = "/"
	}
	return &http.Cookie{
		Name: a.cookieName(r, name), Value: value, Path: path, MaxAge: seconds,
		HttpOnly: true, Secure: a.secure(r), SameSite: site,
	}
}

// secure reports whether the browser uses TLS, possibly up to a proxy that terminates it.
func (a *Auth) secure(r *http.Request) bool {
	return guard.Secure(r, a.proxies()) || a.home != "" && strings.EqualFold(r.Host, a.home)
}
