package idempotency

import (
	"bytes"
	"maps"
	"net/http"
)

// recorder records a handler's response. Nothing is sent before the answer is stored, so it has no
// Flush, no Hijack and no Unwrap: an [http.ResponseController] reports them as not supported.
type recorder struct {
	header   http.Header // the handler's header map
	sent     http.Header // copy taken by WriteHeader
	status   int         // 0: nothing was written yet
	body     bytes.Buffer
	limit    int
	tooLarge bool
}

func newRecorder(header http.Header, limit int) *recorder {
	r := &recorder{header: make(http.Header), limit: limit}
	maps.Copy(r.header, header.Clone())
	return r
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status != 0 || status < 200 {
		return // informational responses are not passed on
	}
	r.status, r.sent = status, r.header.Clone()
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if !hasBody(r.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if r.body.Len()+len(p) > r.limit {
		r.tooLarge = true
		return 0, ErrTooLarge
	}
	return r.body.Write(p)
}

// answer returns the whole response. It stores the content type that net/http would detect, so that
// a replay has the same one.
func (r *recorder) answer() Answer {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	body := r.body.Bytes()
	_, typed := r.sent["Content-Type"]
	if !typed && len(body) > 0 && r.sent.Get("Content-Encoding") == "" {
		r.sent.Set("Content-Type", http.DetectContentType(body))
	}
	return Answer{Status: r.status, Header: r.sent, Body: body}
}

// send sends a response with exactly the given header fields: the handler may have removed some
// that were set before it.
func send(w http.ResponseWriter, a Answer) {
	clear(w.Header())
	maps.Copy(w.Header(), a.Header)
	Answer{Status: a.Status, Body: a.Body}.Send(w)
}
