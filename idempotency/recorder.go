package idempotency

import (
	"bytes"
	"maps"
	"net/http"
)

// recorder takes in a handler's response. Nothing is sent before the answer is stored, so it has no Flush, no Hijack and no
// Unwrap: an [http.ResponseController] reports them as not supported.
type recorder struct {
	header   http.Header // what the handler changes
	sent     http.Header // as it was at WriteHeader
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

// answer is the whole response. The content type that net/http would guess is stored with it, so that it stays the same.
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

// send passes a response on that has all the header fields there are to be: the handler may have removed some.
func send(w http.ResponseWriter, a Answer) {
	clear(w.Header())
	maps.Copy(w.Header(), a.Header)
	Answer{Status: a.Status, Body: a.Body}.Send(w)
}
