package codec

import (
	"strings"

	"github.com/postrider/postrider"
)

// The AMQP binding has two prefixes with the same meaning.
const (
	prefixAMQP    = "cloudEvents_"
	prefixAMQPOld = "cloudEvents:"
)

func (c *Codec) encodeBinary(m *postrider.Message, p *Packet) {
	var a attributes
	c.attributesOf(m, p, &a)
	if !c.dialect.NoContentType {
		a[attrContentType] = "" // the packet carries it
	}
	for i, value := range a {
		if value != "" {
			p.Headers = append(p.Headers, Header{c.names[i], c.escape(value)})
		}
	}
	appendOwn(m, p, func(name, value string) (string, bool) {
		extension, ok := c.attributeName(name)
		if !ok {
			return value, true
		}
		return c.escape(value), c.maySend(extension, value)
	})
}

// maySend reports whether a message's header may become an attribute. Attributes that the codec
// sets itself and names that CloudEvents reserves may not.
func (c *Codec) maySend(extension, value string) bool {
	_, mine := known(extension)
	return !mine && extension != memberData && value != ""
}

// attributeName returns the name of the attribute that a header holds, and whether it holds one.
func (c *Codec) attributeName(header string) (string, bool) {
	n := len(c.dialect.Prefix)
	if len(header) <= n || !c.isPrefix(header[:n]) {
		return "", false
	}
	return strings.ToLower(header[n:]), true
}

func (c *Codec) isPrefix(s string) bool {
	prefix := c.dialect.Prefix
	if strings.EqualFold(s, prefix) {
		return true
	}
	return (prefix == prefixAMQP || prefix == prefixAMQPOld) &&
		(strings.EqualFold(s, prefixAMQP) || strings.EqualFold(s, prefixAMQPOld))
}

// isBinary reports whether the packet is a CloudEvent in binary mode.
func (c *Codec) isBinary(p *Packet) bool {
	for i := range p.Headers {
		if name, ok := c.attributeName(p.Headers[i].Name); ok && name == attributeNames[attrSpecVersion] {
			return true
		}
	}
	return false
}

func (c *Codec) decodeBinary(p *Packet, m *postrider.Message) (origin, error) {
	var a attributes
	for _, h := range p.Headers {
		name, ok := c.attributeName(h.Name)
		if !ok {
			setHeader(m, h.Name, h.Value)
			continue
		}
		value, err := c.unescape(h.Value)
		if err != nil {
			return origin{}, err
		}
		if i, ok := known(name); !ok {
			setHeader(m, h.Name, value) // another sender's extension
		} else if a[i] == "" {
			a[i] = value
		}
	}
	if m.ContentType == "" {
		m.ContentType = a[attrContentType]
	}
	return c.apply(&a, p, m)
}
