package idempotency

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

// admission is an accepted request, with or without a key.
type admission struct {
	keyed bool
	claim Claim
	body  []byte
}

// admit validates a request and reads its body. An error means that the request is refused.
func (k *Keys[Tx]) admit(w http.ResponseWriter, r *http.Request) (admission, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "":
		return admission{}, nil
	}
	values := r.Header.Values(Header)
	switch {
	case len(values) == 0 && k.cfg.Required:
		return admission{}, problemMissing()
	case len(values) == 0:
		return admission{}, nil
	case len(values) > 1:
		return admission{}, problemKey("There is more than one key.")
	}
	key, err := ParseKey(values[0])
	if err != nil {
		return admission{}, problemKey("The value is not a string as in RFC 8941: " + err.Error() + ".")
	}
	if len(key) > k.cfg.MaxKey {
		return admission{}, problemKey("The key is too long.")
	}
	scope, err := k.cfg.Scope(r)
	if err == nil {
		err = scope.validate()
	}
	if err != nil {
		return admission{}, err
	}
	if scope.public && len(key) < minPublicKey {
		return admission{}, problemKey("The key is too short: here it must be a long random value, such as a UUID.")
	}
	body, err := k.read(w, r)
	if err != nil {
		return admission{}, err
	}
	k.purge(r.Context())
	return admission{keyed: true, body: body, claim: Claim{
		ID:          ID{Tenant: scope.Tenant, Principal: scope.Principal, Route: shorten(k.cfg.Route(r)), Key: key},
		Fingerprint: fingerprint(r, body),
		Token:       rand.Text(),
		Lease:       k.cfg.Lease,
		Retention:   k.cfg.Retention,
	}}, nil
}

func (k *Keys[Tx]) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	if r.ContentLength > k.cfg.MaxBody {
		return nil, problemBody(k.cfg.MaxBody)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, k.cfg.MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, problemBody(k.cfg.MaxBody)
	}
	if err != nil {
		return nil, &Problem{Status: http.StatusBadRequest, Title: "The request could not be read"}
	}
	return body, nil
}

// again returns a copy of the request for one call of a handler, with its whole body.
func again(ctx context.Context, r *http.Request, body []byte) *http.Request {
	r = r.WithContext(ctx)
	r.Body = http.NoBody
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r
}

func routeOf(r *http.Request) string {
	if r.Pattern == "" {
		return r.Method + " " + r.URL.EscapedPath()
	}
	_, pattern, found := strings.Cut(r.Pattern, " ")
	if !found {
		pattern = r.Pattern
	}
	return r.Method + " " + strings.TrimLeft(pattern, " \t")
}

// shorten makes a route valid for a store. Different routes stay different.
func shorten(route string) string {
	clean := strings.ReplaceAll(strings.ToValidUTF8(route, "\uFFFD"), "\x00", "\uFFFD")
	if len(clean) <= maxRoute && clean == route {
		return route
	}
	sum := sha256.Sum256([]byte(route))
	return strings.ToValidUTF8(clean[:min(len(clean), maxRoute-65)], "") + "#" + hex.EncodeToString(sum[:])
}

func fingerprint(r *http.Request, body []byte) Fingerprint {
	contentType := r.Header.Get("Content-Type")
	sum := contentSum(contentType, body)
	kind, _, _ := mime.ParseMediaType(contentType)
	h := sha256.New()
	_, _ = io.WriteString(h, r.Method+" "+r.URL.EscapedPath()+"?"+r.URL.RawQuery+"\n"+kind+"\n") // none of them has a line break
	h.Write(sum[:])
	return Fingerprint(h.Sum(nil))
}

// contentSum returns a SHA-256 of a body. It leaves out the boundary of a multipart body, because
// clients generate a new one each time they build the same body.
func contentSum(contentType string, body []byte) [sha256.Size]byte {
	kind, params, _ := mime.ParseMediaType(contentType)
	if !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return sha256.Sum256(body)
	}
	h := sha256.New()
	for part := range bytes.SplitSeq(body, []byte("--"+params["boundary"])) {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
