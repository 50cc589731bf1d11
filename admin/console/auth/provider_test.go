package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// idp is an OpenID Connect provider: it has keys, checks client, redirect URL and PKCE, and redeems each code once. Everybody
// who asks is signed in at once.
type idp struct {
	*httptest.Server
	t      *testing.T
	key    *rsa.PrivateKey
	client string
	secret string
	back   string // the redirect URL that is registered

	mu    sync.Mutex
	codes map[string]url.Values // the requests that they were given for
	down  bool
	// about is what it says about the user; claims that are nil are left out.
	about map[string]any
	info  map[string]any
	// sign makes the ID token. Defaults to RS256.
	sign func(claims []byte) string
}

var idpKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newIDP(t *testing.T) *idp {
	t.Helper()
	key, err := idpKey()
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{t: t, key: key, client: "console", secret: "the-secret-of-the-client", codes: make(map[string]url.Values)}
	p.sign = p.rs256
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		p.json(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/userinfo",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.json(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer access" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.json(w, p.info)
	})
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *idp) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

func (p *idp) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != p.client || q.Get("redirect_uri") != p.back || q.Get("response_type") != "code" ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" || q.Get("nonce") == "" {
		http.Error(w, "bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	http.Redirect(w, r, p.back+"?"+back.Encode(), http.StatusFound)
}

func (p *idp) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	if id == "" {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	q, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || id != p.client || secret != p.secret || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"no such code"}`))
		return
	}
	now := time.Now()
	about := map[string]any{
		"iss": p.URL, "aud": p.client, "sub": "248289", "nonce": q.Get("nonce"),
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	maps.Copy(about, p.about)
	maps.DeleteFunc(about, func(_ string, v any) bool { return v == nil })
	plain, err := json.Marshal(about)
	if err != nil {
		p.t.Error(err)
	}
	p.json(w, map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 300, "id_token": p.sign(plain)})
}

func (p *idp) rs256(claims []byte) string {
	return p.signed(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: "1"}}, claims)
}

func (p *idp) signed(key jose.SigningKey, claims []byte) string {
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	jws, err := signer.Sign(claims)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	out, err := jws.CompactSerialize()
	if err != nil {
		p.t.Error(err)
	}
	return out
}
