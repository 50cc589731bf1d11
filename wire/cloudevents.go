package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
)

const specVersion = "1.0"

// Names of CloudEvents attributes. The aggregate's ID is the subject; those in the second group are extensions.
const (
	attrSpecVersion = "specversion"
	attrID          = "id"
	attrSource      = "source"
	attrType        = "type"
	attrSubject     = "subject"
	attrTime        = "time"
	attrDataSchema  = "dataschema"

	attrAggregate     = "aggregatetype"
	attrPartitionKey  = "partitionkey" // the ordering key, where it is not the aggregate's
	attrTenant        = "tenantid"
	attrSchemaVersion = "schemaversion"
	attrCorrelation   = "correlationid"
	attrCausation     = "causationid"
	attrDedupKey      = "dedupkey"
)

// attributeNames are the names with a dialect's prefix, made once and not for each message.
type attributeNames struct {
	specversion, id, source, kind, subject, time, dataschema                         string
	aggregate, partitionKey, tenant, schemaVersion, correlation, causation, dedupKey string
}

func prefixed(prefix string) attributeNames {
	return attributeNames{
		specversion:   prefix + attrSpecVersion,
		id:            prefix + attrID,
		source:        prefix + attrSource,
		kind:          prefix + attrType,
		subject:       prefix + attrSubject,
		time:          prefix + attrTime,
		dataschema:    prefix + attrDataSchema,
		aggregate:     prefix + attrAggregate,
		partitionKey:  prefix + attrPartitionKey,
		tenant:        prefix + attrTenant,
		schemaVersion: prefix + attrSchemaVersion,
		correlation:   prefix + attrCorrelation,
		causation:     prefix + attrCausation,
		dedupKey:      prefix + attrDedupKey,
	}
}

func (c *Codec) encodeBinary(m *postrider.Message, p *Packet) {
	n := &c.names
	add := func(name, value string) {
		if value == "" {
			return
		}
		if c.dialect.Percent {
			value = percentEncode(value)
		}
		p.Headers = append(p.Headers, Header{name, value})
	}
	add(n.specversion, specVersion)
	add(n.id, p.ID)
	add(n.source, c.source)
	add(n.kind, m.Type)
	add(n.subject, m.AggregateID)
	if !m.OccurredAt.IsZero() {
		add(n.time, m.OccurredAt.UTC().Format(time.RFC3339Nano))
	}
	add(n.dataschema, m.SchemaID)
	add(n.aggregate, m.AggregateType)
	add(n.partitionKey, m.Key)
	add(n.tenant, m.TenantID)
	if m.SchemaVersion > 1 {
		add(n.schemaVersion, strconv.Itoa(m.SchemaVersion))
	}
	add(n.correlation, m.CorrelationID)
	add(n.causation, m.CausationID)
	add(n.dedupKey, m.DedupKey)
	appendOwn(m, p, c.isAttribute)
}

// isAttribute reports whether a header would be read as an attribute: only the codec writes those.
func (c *Codec) isAttribute(header string) bool {
	prefix := c.dialect.Prefix
	return len(header) > len(prefix) && strings.EqualFold(header[:len(prefix)], prefix)
}

func (c *Codec) decodeBinary(p *Packet, m *postrider.Message) error {
	var required requiredAttributes
	m.Key = ""
	for _, h := range p.Headers {
		if !c.isAttribute(h.Name) {
			setHeader(m, h)
			continue
		}
		value := h.Value
		if c.dialect.Percent {
			value = percentDecode(value)
		}
		name := strings.ToLower(h.Name[len(c.dialect.Prefix):])
		required.see(name, value)
		if ok, err := setAttribute(m, name, value); err != nil {
			return err
		} else if !ok {
			setHeader(m, h) // an extension of somebody else
		}
	}
	if m.Key == "" && m.AggregateType == "" {
		m.Key = p.Key // another sender's key
	}
	return required.missing()
}

// setAttribute puts an attribute where it belongs. It reports false for one that has no place in a message.
func setAttribute(m *postrider.Message, name, value string) (bool, error) {
	switch name {
	case attrSpecVersion:
		if value != specVersion {
			return true, fmt.Errorf("CloudEvent has specversion %q, want %q", value, specVersion)
		}
	case attrSource:
		return false, nil // whoever wants to know finds it among the headers
	case attrID:
		setID(m, value)
	case attrType:
		m.Type = value
	case attrSubject:
		m.AggregateID = value
	case attrTime:
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return true, fmt.Errorf("CloudEvent has time %q: %w", value, err)
		}
		m.OccurredAt = at
	case attrDataSchema:
		m.SchemaID = value
	case attrAggregate:
		m.AggregateType = value
	case attrPartitionKey:
		m.Key = value
	case attrTenant:
		m.TenantID = value
	case attrSchemaVersion:
		version, err := strconv.Atoi(value)
		if err != nil {
			return true, fmt.Errorf("CloudEvent has schemaversion %q: %w", value, err)
		}
		m.SchemaVersion = version
	case attrCorrelation:
		m.CorrelationID = value
	case attrCausation:
		m.CausationID = value
	case attrDedupKey:
		m.DedupKey = value
	default:
		return false, nil
	}
	return true, nil
}

// requiredAttributes notes which of the attributes that every CloudEvent has were seen.
type requiredAttributes struct{ specversion, id, source, kind bool }

func (r *requiredAttributes) see(name, value string) {
	switch {
	case value == "":
	case name == attrSpecVersion:
		r.specversion = true
	case name == attrID:
		r.id = true
	case name == attrSource:
		r.source = true
	case name == attrType:
		r.kind = true
	}
}

func (r *requiredAttributes) missing() error {
	for name, seen := range map[string]bool{
		attrSpecVersion: r.specversion, attrID: r.id, attrSource: r.source, attrType: r.kind,
	} {
		if !seen {
			return fmt.Errorf("CloudEvent has no %s", name)
		}
	}
	return nil
}
