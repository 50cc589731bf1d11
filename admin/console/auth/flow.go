package auth

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// flowLimit is how long a sign-in at the provider may take.
const flowLimit = 10 * time.Minute

// flow is the encrypted state that the browser keeps during a sign-in at the provider.
type flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // of PKCE
	To       string `json:"t"`
	Born     int64  `json:"b"`
}

// login redirects the browser to the provider.
func (a *Auth) login(w http.ResponseWriter, r *http.Request) {
	at, err := a.provider.discover(r.Context())
	if err != nil {
		a.page(w, http.StatusServiceUnavailable, "The sign-in service does not answer",
			"Sign-in is not possible at the moment. See the log of the console for the cause.")
		return
	}
	f := flow{
		State: randomText(), Nonce: randomText(), Verifier: oauth2.GenerateVerifier(),
		To: a.localPath(r.URL.Query().Get("to")), Born: a.now().Unix(),
	}
	value, err := a.flows.close(f)
	if err != nil {
		a.failed(w, r, err)
		return
	}
	// The provider redirects the browser back. That request comes from another site, so a cookie
	// with SameSite=Strict would be missing.
	http.SetCookie(w, a.cookie(r, flowCookie, value, http.SameSiteLaxMode, flowLimit))
	to := a.provider.oauth(at).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// callback handles the redirect back from the provider.
func (a *Auth) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f, err := a.returned(r, q)
	http.SetCookie(w, a.cookie(r, flowCookie, "", http.SameSiteLaxMode, -1))
	if err != nil {
		a.log.WarnContext(r.Context(), "console: a sign-in was refused", "error", err)
		a.page(w, http.StatusBadRequest, "This sign-in is unknown or has expired",
			"A sign-in in another window may have replaced it. Please try again.")
		return
	}
	if code := q.Get("error"); code != "" {
		a.log.WarnContext(r.Context(), "console: the OIDC provider refused a sign-in", "error", tidy(code),
			"description", tidy(q.Get("error_description")))
		a.page(w, http.StatusForbidden, "The sign-in service has refused the sign-in", "Its error: "+tidy(code)+".")
		return
	}
	about, err := a.provider.redeem(r.Context(), q.Get("code"), f)
	if err != nil {
		a.failed(w, r, err)
		return
	}
	who := Identity{Name: about.name(a.provider.cfg.NameClaim), Role: about.role(a.provider.cfg), Via: "oidc"}
	if who.Role == "" || who.Name == "" {
		values := about.values(a.provider.cfg.RolesClaim)
		a.log.WarnContext(r.Context(), "console: sign-in refused: the user has no role", "name", who.Name,
			"claim", a.provider.cfg.RolesClaim, "values", tidy(strings.Join(values, ", ")))
		a.page(w, http.StatusForbidden, "You have no access here",
			fmt.Sprintf("You are signed in as %s, but have no role in this console. "+
				"An administrator can add you to a group that has one.", who.Name))
		return
	}
	if err := a.begin(w, r, who, a.provider.grant); err != nil {
		a.failed(w, r, err)
		return
	}
	w.Header().Set("Location", f.To)
	w.WriteHeader(http.StatusSeeOther)
}

// returned decrypts the flow that the provider has redirected back. Each flow can be used once.
func (a *Auth) returned(r *http.Request, q url.Values) (flow, error) {
	var f flow
	c, err := r.Cookie(a.cookieName(r, flowCookie))
	if err != nil {
		return f, fmt.Errorf("auth: no cookie of a flow: %w", err)
	}
	if err := a.flows.open(c.Value, &f); err != nil {
		return f, err
	}
	now, ends := a.now(), time.Unix(f.Born, 0).Add(flowLimit)
	switch {
	case subtle.ConstantTimeCompare([]byte(f.State), []byte(q.Get("state"))) != 1:
		return f, fmt.Errorf("auth: the state is that of another flow")
	case now.After(ends):
		return f, fmt.Errorf("auth: the flow began at %v, and has %v", time.Unix(f.Born, 0), flowLimit)
	case q.Has("iss") && q.Get("iss") != a.provider.cfg.Issuer:
		return f, fmt.Errorf("auth: the sign-in came back from another provider, %q", tidy(q.Get("iss")))
	case !a.begun.add(f.State, ends, now):
		return f, fmt.Errorf("auth: the flow has come back before")
	}
	return f, nil
}

// failed responds to an error that the user has not caused.
func (a *Auth) failed(w http.ResponseWriter, r *http.Request, err error) {
	a.log.ErrorContext(r.Context(), "console: signing in failed", "error", err)
	a.page(w, http.StatusBadGateway, "Sign-in failed", "See the log of the console for the cause.")
}

// localPath returns the path to go to after the sign-in. It only returns pages of this console, so
// that a link cannot lead to another site.
func (a *Auth) localPath(to string) string {
	home := a.prefix + "/"
	if !strings.HasPrefix(to, home) || len(to) > 2000 || strings.Contains(to, `\`) {
		return home
	}
	// Browsers remove some characters, which could leave "//host".
	if strings.ContainsFunc(to, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return home
	}
	u, err := url.Parse(to)
	if err == nil && u.Path == home && u.Host == "" {
		return u.String()
	}
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.Contains(u.Path, "//") ||
		strings.HasPrefix(u.Path, a.prefix+"/auth/") || path.Clean(u.Path)+"/" != strings.TrimRight(u.Path, "/")+"/" {
		return home
	}
	return u.String()
}
