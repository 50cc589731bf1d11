package idempotency

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Problem is an error that is sent as the problem details of RFC 9457. If a handler of
// [Keys.Handle] returns one as its error, the transaction is rolled back and the key is released: a
// retry runs the handler again. To store it as the final answer, return [Problem.Answer].
type Problem struct { //nolint:errname // it is an answer as well as an error
	Type       string `json:"type"` // URL of documentation
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail,omitempty"`
	RetryAfter int    `json:"-"` // seconds, if not zero
}

// Error returns title and detail.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// Answer returns the problem as an answer with a body of type application/problem+json.
func (p *Problem) Answer() Answer {
	shown := *p
	if shown.Type == "" {
		shown.Type = "about:blank"
	}
	if shown.Status == 0 {
		shown.Status = http.StatusInternalServerError
	}
	if shown.Title == "" {
		shown.Title = http.StatusText(shown.Status)
	}
	body, err := json.Marshal(&shown)
	if err != nil {
		panic(err) // cannot happen: text and numbers only
	}
	a := Answer{Status: shown.Status, Body: body}.
		With("Content-Type", "application/problem+json").With("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		a = a.With("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	return a
}

func problemMissing() *Problem {
	return &Problem{Status: http.StatusBadRequest, Title: Header + " is missing", Detail: "This operation needs an " + Header + " header field."}
}

func problemKey(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Title: Header + " is not valid", Detail: detail}
}

func problemBusy() *Problem {
	return &Problem{Status: http.StatusConflict, Title: "A request is outstanding for this " + Header, RetryAfter: 1,
		Detail: "A request with the same key is being processed. Send this one again a little later."}
}

func problemMismatch() *Problem {
	return &Problem{Status: http.StatusUnprocessableEntity, Title: Header + " is already used",
		Detail: "The key was used with another request. A new request needs a new key."}
}

func problemBody(limit int64) *Problem {
	return &Problem{Status: http.StatusRequestEntityTooLarge, Title: "The request is too large",
		Detail: "A request with an " + Header + " has at most " + strconv.FormatInt(limit, 10) + " bytes."}
}

func problemUnavailable() *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Title: "The outcome is not known yet", RetryAfter: 1,
		Detail: "Send the request again with the same key: it is done once."}
}

func problemTooLarge() *Problem {
	return &Problem{Status: http.StatusInternalServerError, Title: "The answer is too large",
		Detail: "The operation was carried out, and its answer is too large to be kept. It will not be carried out again under this key."}
}
