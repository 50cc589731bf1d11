package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/postrider/postrider"
)

// Registry is a client of a schema registry with Confluent's REST API, such as Confluent's or
// Apicurio.
//
// The meaning of an ID never changes, so answers are cached; failures are not. If the registry does
// not answer, or its answer is not a decision, errors are [postrider.Unavailable]. Decisions (a
// schema is unknown, invalid or incompatible) are [postrider.Permanent].
//
// It is safe for concurrent use and needs no closing.
type Registry struct {
	cfg    RegistryConfig
	root   string
	host   string
	client *http.Client
	// authorize is a function instead of a password, so that printing a Registry does not reveal
	// the password.
	authorize func(*http.Request)
	ids       *cache[registered, uint32]
}

// registered identifies a schema under a subject: the file of a Protobuf message, or the text of an
// Avro schema.
type registered struct {
	subject string
	schema  any
}

// NewRegistry returns a client. It does not connect yet.
func NewRegistry(cfg RegistryConfig) (*Registry, error) {
	cfg, u, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	user, password := cfg.User, cfg.Password
	cfg.Password = ""
	return &Registry{
		cfg: cfg, root: u.String(), host: u.Host,
		client: &http.Client{
			Transport: &http.Transport{
				Proxy:             http.ProxyFromEnvironment,
				TLSClientConfig:   cfg.TLS.Clone(),
				ForceAttemptHTTP2: true,
				IdleConnTimeout:   time.Minute,
			},
			Timeout: cfg.Timeout,
			// A redirect could send the request, with the password, to another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		authorize: func(r *http.Request) {
			if user != "" {
				r.SetBasicAuth(user, password)
			}
		},
		ids: newCache[registered, uint32](cfg.Cache),
	}, nil
}

// document is a schema in the registry's JSON.
type document struct {
	Schema     string      `json:"schema"`
	Type       string      `json:"schemaType,omitempty"` // empty means AVRO
	References []reference `json:"references,omitempty"`
}

// reference is another schema that a document needs.
type reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// id returns the ID of a schema under a subject. It calls build if the ID is not cached.
func (r *Registry) id(ctx context.Context, s registered, build func(context.Context) (document, error)) (uint32, error) {
	return r.ids.get(ctx, s, func(ctx context.Context) (uint32, error) {
		d, err := build(ctx)
		if err != nil {
			return 0, err
		}
		return r.register(ctx, s.subject, d)
	})
}

// register returns the ID of a schema, and registers it first unless the client is read-only.
func (r *Registry) register(ctx context.Context, subject string, d document) (uint32, error) {
	path := "/subjects/" + url.PathEscape(subject)
	if !r.cfg.ReadOnly {
		path += "/versions"
	}
	var answer struct {
		ID *int64 `json:"id"`
	}
	err := r.call(ctx, http.MethodPost, path, d, &answer)
	if conflict := (*statusError)(nil); errors.As(err, &conflict) && conflict.status == http.StatusConflict {
		// If several processes register one schema at once, some registries answer all but one that
		// it exists. If the schema itself is refused, the second call gets the same answer.
		err = r.call(ctx, http.MethodPost, path, d, &answer)
	}
	if err != nil {
		return 0, err
	}
	if answer.ID == nil || *answer.ID < 0 || *answer.ID > math.MaxUint32 {
		return 0, r.unavailable(http.MethodPost, path, errors.New("the answer has no ID of 4 bytes"))
	}
	return uint32(*answer.ID), nil
}

// version returns the version of a registered schema under its subject.
func (r *Registry) version(ctx context.Context, subject string, d document) (int, error) {
	var answer struct {
		Version int `json:"version"`
	}
	err := r.call(ctx, http.MethodPost, "/subjects/"+url.PathEscape(subject), d, &answer)
	return answer.Version, err
}

// byID returns the schema with an ID.
func (r *Registry) byID(ctx context.Context, id uint32) (d document, err error) {
	err = r.call(ctx, http.MethodGet, "/schemas/ids/"+strconv.FormatUint(uint64(id), 10), nil, &d)
	return d, err
}

// byReference returns a referenced schema.
func (r *Registry) byReference(ctx context.Context, to reference) (d document, err error) {
	path := "/subjects/" + url.PathEscape(to.Subject) + "/versions/" + strconv.Itoa(to.Version)
	err = r.call(ctx, http.MethodGet, path, nil, &d)
	return d, err
}

const mediaType = "application/vnd.schemaregistry.v1+json"

// call sends one request and decodes the answer.
func (r *Registry) call(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.root+path, content)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", mediaType+", application/json")
	if body != nil {
		req.Header.Set("Content-Type", mediaType)
	}
	r.authorize(req)
	res, err := r.client.Do(req)
	if err != nil {
		return r.unavailable(method, path, err)
	}
	defer func() { _ = res.Body.Close() }() // the relevant part has been read
	text, err := io.ReadAll(io.LimitReader(res.Body, r.cfg.MaxAnswer+1))
	switch {
	case err != nil:
		return r.unavailable(method, path, err)
	case int64(len(text)) > r.cfg.MaxAnswer:
		return r.unavailable(method, path, fmt.Errorf("the answer has more than %d bytes: if it is a schema, raise MaxAnswer", r.cfg.MaxAnswer))
	case res.StatusCode != http.StatusOK:
		return r.refused(method, path, res, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return r.unavailable(method, path, fmt.Errorf("the answer is not what a registry says: %w", err))
	}
	return nil
}

// unavailable returns an error which means that the registry has made no decision.
func (r *Registry) unavailable(method, path string, err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // the message below repeats the rest
	}
	return postrider.Unavailable(fmt.Errorf("schema: registry %s: %s %s: %w", r.host, method, path, err))
}

// refused turns an answer into an error. A decision of the registry has an error code of its own,
// such as 40403. An answer without one, or with the code 404, comes from another server, such as a
// proxy, or from a wrong URL. These cases, a wrong password and an overload are not caused by the
// message, which must not become a dead letter because of them.
func (r *Registry) refused(method, path string, res *http.Response, text []byte) error {
	refusal := &statusError{status: res.StatusCode}
	_ = json.Unmarshal(text, refusal) // other answers than JSON have no code
	decided := res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusConflict ||
		res.StatusCode == http.StatusUnprocessableEntity
	if decided && refusal.Code != 0 && refusal.Code != http.StatusNotFound {
		return postrider.Permanent(fmt.Errorf("schema: registry %s: %s %s: %w", r.host, method, path, refusal))
	}
	err := error(refusal)
	if seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")); seconds > 0 {
		err = postrider.RetryAfter(err, time.Duration(seconds)*time.Second)
	}
	return r.unavailable(method, path, err)
}

// statusError is an error answer.
type statusError struct {
	status  int
	Code    int    `json:"error_code"`
	Message string `json:"message"`
}

func (e *statusError) Error() string {
	const most = 300 // some servers repeat the whole schema
	message := e.Message
	if len(message) > most {
		message = message[:most] + "…"
	}
	return fmt.Sprintf("status %d, code %d: %q", e.status, e.Code, message)
}
