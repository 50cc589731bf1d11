package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/postrider/postrider/admin/console/auth"
)

// Route is a route of the API, with the roles that it needs.
type Route struct {
	Method, Path string
	Least        auth.Role            // the lowest role that may call it
	Acts         map[string]auth.Role // for some values of "act" in the body, the lowest role that may do that
}

// Routes returns all routes.
func Routes() []Route {
	all := make([]Route, len(table))
	for i := range table {
		all[i] = table[i].Route
	}
	return all
}

type route struct {
	Route
	summary  string
	register func(s *Server, api huma.API, op huma.Operation)
}

// timeLimit is the time limit of a request, except for streams.
const timeLimit = 10 * time.Second

// answer is a response of huma.
type answer[T any] struct{ Body T }

// handle converts a method of [Server] to a route.
func handle[I any, P interface {
	*I
	named() string
}, O any](f func(*Server, context.Context, *database, P) (O, error)) func(*Server, huma.API, huma.Operation) {
	return handleFor(timeLimit, f)
}

func handleFor[I any, P interface {
	*I
	named() string
}, O any](limit time.Duration, f func(*Server, context.Context, *database, P) (O, error)) func(*Server, huma.API, huma.Operation) {
	return func(s *Server, api huma.API, op huma.Operation) {
		huma.Register(api, op, func(ctx context.Context, in *I) (*answer[O], error) {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			d, err := s.database(P(in).named())
			if err != nil {
				return nil, err
			}
			body, err := f(s, ctx, d, in)
			if err != nil {
				return nil, s.failure(ctx, d, err)
			}
			return &answer[O]{body}, nil
		})
	}
}

// operation returns the description of a route, with a middleware that checks the role.
func (s *Server) operation(api huma.API, r route) huma.Operation {
	words := strings.FieldsFunc(r.Path, func(c rune) bool { return strings.ContainsRune("/{}", c) })
	op := huma.Operation{
		Method: r.Method, Path: r.Path, Summary: r.summary, Description: "Least role: " + string(r.Least) + ".",
		OperationID: strings.ToLower(r.Method) + "-" + strings.Join(words, "-"), Tags: words[:1],
		Middlewares: huma.Middlewares{s.admit(r.Least)},
		Responses: map[string]*huma.Response{"default": {Description: "Error", Content: map[string]*huma.MediaType{
			"application/problem+json": {Schema: api.OpenAPI().Components.Schemas.Schema(failureType, true, "Failure")},
		}}},
	}
	for act, least := range r.Acts {
		op.Description += " To " + act + ": " + string(least) + "."
	}
	if r.Method == http.MethodPut {
		op.MaxBodyBytes, op.BodyReadTimeout = 17<<20, time.Minute
	}
	return op
}

func (s *Server) admit(least auth.Role) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		who, ok := auth.From(ctx.Context())
		var refused *Failure
		switch {
		case !ok:
			refused = failf(http.StatusUnauthorized, "sign in", "you are not signed in")
		case !who.Role.May(least):
			refused = forbidden(least)
		default:
			next(ctx)
			return
		}
		ctx.SetHeader("Content-Type", "application/problem+json")
		ctx.SetStatus(refused.Status)
		_ = json.NewEncoder(ctx.BodyWriter()).Encode(refused) // the client may have disconnected
	}
}

func forbidden(least auth.Role) *Failure {
	return failf(http.StatusForbidden, "ask a user with the role "+string(least), "this needs the role %s", least)
}

// permit checks the role that the table requires for an act.
func permit(ctx context.Context, method, path, act string) error {
	who, _ := auth.From(ctx)
	for i := range table {
		if r := &table[i]; r.Method == method && r.Path == path {
			if least, ok := r.Acts[act]; ok && !who.Role.May(least) {
				return forbidden(least)
			}
		}
	}
	return nil
}

// write sends a failure from a handler outside of huma.
func write(w http.ResponseWriter, f *Failure) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(f) // the client may have disconnected
}
