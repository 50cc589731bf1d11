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

// Registry is a client of a schema registry with Confluent's REST API, such as Confluent's own or Apicurio.
//
// What an ID means never changes, so answers are kept in memory and failures are not. A registry that does not answer, or
// answers with anything but a decision, gives [postrider.Unavailable]. Its decisions, that a schema is unknown, invalid or not
// compatible, give [postrider.Permanent].
//
// It is safe for concurrent use and needs no closing.
type Registry struct {
	cfg    RegistryConfig
	root   string
	host   string
	client *http.Client
	// authorize is a function and not a password, so that nobody who prints a Registry prints the password.
	authorize func(*http.Request)
	ids       *cache[registered, uint32]
}

// registered is a schema under a subject: the file of a Protobuf message, or the text of an Avro schema.
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
			// A redirect could take the request, and the password, elsewhere.
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

// document is a schema as the registry's API writes it.
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

// id returns the ID of a schema under a subject. build is called if it is not known yet.
func (r *Registry) id(ctx context.Context, s registered, build func(context.Context) (document, error)) (uint32, error) {
	return r.ids.get(ctx, s, func(ctx context.Context) (uint32, error) {
		d, err := build(ctx)
		if err != nil {
			return 0, err
		}
		return r.register(ctx, s.subject, d)
	})
}

// register returns the ID of a schema, after registering it unless the client only reads.
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
		// Where several processes register one schema at the same time, some registries tell all but one that it exists. If it is
		// the schema that is wrong, they say so again.
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

// version returns the version that a registered schema has under its subject.
func (r *Registry) version(ctx context.Context, subject string, d document) (int, error) {
	var answer struct {
		Version int `json:"version"`
	}
	err := r.call(ctx, http.MethodPost, "/subjects/"+url.PathEscape(subject), d, &answer)
	return answer.Version, err
}

// byID returns the schema that has an ID.
func (r *Registry) byID(ctx context.Context, id uint32) (d document, err error) {
	err = r.call(ctx, http.MethodGet, "/schemas/ids/"+strconv.FormatUint(uint64(id), 10), nil, &d)
	return d, err
}

// byReference returns a schema that another one needs.
func (r *Registry) byReference(ctx context.Context, to reference) (d document, err error) {
	path := "/subjects/" + url.PathEscape(to.Subject) + "/versions/" + strconv.Itoa(to.Version)
	err = r.call(ctx, http.MethodGet, path, nil, &d)
	return d, err
}

const mediaType = "application/vnd.schemaregistry.v1+json"

// call makes one request and decodes the answer.
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
	defer func() { _ = res.Body.Close() }() // it was read as far as it counts
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

// unavailable says that the registry has not decided.
func (r *Registry) unavailable(method, path string, err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // the rest is said here
	}
	return postrider.Unavailable(fmt.Errorf("schema: registry %s: %s %s: %w", r.host, method, path, err))
}

// refused makes an error of an answer. A registry's decision has an error code of its own, such as 40403. An answer without one, or
// with 404 for one, comes from somebody else, such as a proxy or a server at a wrong URL. That, a wrong password and an
// overload are no fault of the message, which must not become a dead letter for it.
func (r *Registry) refused(method, path string, res *http.Response, text []byte) error {
	refusal := &statusError{status: res.StatusCode}
	_ = json.Unmarshal(text, refusal) // what is not JSON has no code
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

// statusError is what a server says instead of an answer.
type statusError struct {
	status  int
	Code    int    `json:"error_code"`
	Message string `json:"message"`
}

func (e *statusError) Error() string {
	const most = 300 // some repeat the whole schema
	message := e.Message
	if len(message) > most {
		message = message[:most] + "…"
	}
	return fmt.Sprintf("status %d, code %d: %q", e.status, e.Code, message)
}
