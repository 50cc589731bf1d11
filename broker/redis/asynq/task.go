package asynq

import (
	"strings"

	queue "github.com/hibiken/asynq"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// Names of headers in addition to the message's own.
const (
	headerKey         = "key"
	headerContentType = "content-type"
	escape            = "h:" // prefix of headers that would clash with others
)

func task(p *codec.Packet) *queue.Task {
	headers := make(map[string]string, len(p.Headers)+2)
	for _, h := range p.Headers {
		if h.Name == headerKey || h.Name == headerContentType || strings.HasPrefix(h.Name, escape) {
			headers[escape+h.Name] = h.Value
		} else {
			headers[h.Name] = h.Value
		}
	}
	if p.Key != "" {
		headers[headerKey] = p.Key
	}
	if p.ContentType != "" {
		headers[headerContentType] = p.ContentType
	}
	return queue.NewTaskWithHeaders(p.Name, p.Body, headers)
}

// message reads a task from any sender. If decoding fails, it returns an error together with the
// undecoded message: the task's headers and payload.
func message(coder *codec.Codec, id string, t *queue.Task) (postrider.Message, error) {
	p := codec.Packet{Name: t.Type(), Body: t.Payload()}
	p.SetUniqueID(id)
	for name, value := range t.Headers() {
		switch name {
		case headerKey:
			p.Key = value
		case headerContentType:
			p.ContentType = value
		default:
			p.Headers = append(p.Headers, codec.Header{Name: strings.TrimPrefix(name, escape), Value: value})
		}
	}
	return coder.Decode(&p)
}
