package asynq

import (
	"strings"

	queue "github.com/hibiken/asynq"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// Names of headers beside the message's own.
const (
	headerKey         = "key"
	headerContentType = "content-type"
	escape            = "h:" // before a header that would be taken for something else
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

// message reads a task, whoever made it. With an error the message is the task as it is: its headers and its payload.
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
