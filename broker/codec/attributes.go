package codec

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
)

const specVersion = "1.0"

// attribute is a CloudEvents attribute that corresponds to a field of a message.
type attribute int

// The attributes, in the order in which they are sent. The aggregate's ID is the subject; the
// second group holds extensions.
const (
	attrSpecVersion attribute = iota
	attrID
	attrSource
	attrType
	attrSubject
	attrTime
	attrDataSchema
	attrContentType

	attrAggregate
	attrPartitionKey // the ordering key, if it is not derived from the aggregate
	attrTenant
	attrSchemaVersion
	attrSchemaID // if it is not a URI, which dataschema requires
	attrCorrelation
	attrCausation
	attrDedupKey
	attrProof // proves that a Postrider relay assigned the ID, if ID and source do not show it

	attributeCount
)

var attributeNames = [attributeCount]string{
	attrSpecVersion:   "specversion",
	attrID:            "id",
	attrSource:        "source",
	attrType:          "type",
	attrSubject:       "subject",
	attrTime:          "time",
	attrDataSchema:    "dataschema",
	attrContentType:   "datacontenttype",
	attrAggregate:     "aggregatetype",
	attrPartitionKey:  "partitionkey",
	attrTenant:        "tenantid",
	attrSchemaVersion: "schemaversion",
	attrSchemaID:      "schemaid",
	attrCorrelation:   "correlationid",
	attrCausation:     "causationid",
	attrDedupKey:      "dedupkey",
	attrProof:         "postrider",
}

// attributes holds the values of a CloudEvent's attributes; an empty value is not set.
type attributes [attributeCount]string

// known returns the attribute with the given name.
func known(name string) (attribute, bool) {
	for a := range attributeNames {
		if attributeNames[a] == name {
			return attribute(a), true
		}
	}
	return 0, false
}

// isExtensionName reports whether CloudEvents allows an attribute with this name.
func isExtensionName(name string) bool {
	for i := range len(name) {
		if (name[i] < 'a' || name[i] > 'z') && (name[i] < '0' || name[i] > '9') {
			return false
		}
	}
	return name != ""
}

func (c *Codec) attributesOf(m *postrider.Message, p *Packet, a *attributes) {
	a[attrSpecVersion] = specVersion
	a[attrID] = p.ID
	a[attrSource] = c.source
	a[attrType] = m.Type
	a[attrSubject] = m.AggregateID
	if at := m.OccurredAt.UTC(); !at.IsZero() && at.Year() >= 0 && at.Year() <= 9999 { // RFC 3339 cannot express other years
		a[attrTime] = at.Format(time.RFC3339Nano)
	}
	if isURI(m.SchemaID) {
		a[attrDataSchema] = m.SchemaID
	} else {
		a[attrSchemaID] = m.SchemaID
	}
	a[attrContentType] = m.ContentType
	a[attrAggregate] = m.AggregateType
	a[attrPartitionKey] = m.Key
	a[attrTenant] = m.TenantID
	if m.SchemaVersion > 1 {
		a[attrSchemaVersion] = strconv.Itoa(m.SchemaVersion)
	}
	a[attrCorrelation] = m.CorrelationID
	a[attrCausation] = m.CausationID
	a[attrDedupKey] = m.DedupKey
	a[attrProof] = proofOf(m, c.sum, c.mark)
}

// isURI reports whether s looks like an absolute URI. It checks the scheme and the characters only.
func isURI(s string) bool {
	scheme, _, ok := strings.Cut(s, ":")
	if !ok || scheme == "" {
		return false
	}
	for i := range len(scheme) {
		b := scheme[i] | 0x20
		letter := 'a' <= b && b <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(scheme[i]))) {
			return false
		}
	}
	return isURICharacters(s)
}

// isURICharacters reports whether s holds only characters that are allowed in a URI or a URI
// reference.
func isURICharacters(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || strings.IndexByte("\"<>\\^`{|}", s[i]) >= 0 {
			return false
		}
	}
	return true
}

// apply copies attributes into the fields of a message.
func (c *Codec) apply(a *attributes, p *Packet, m *postrider.Message) (origin, error) {
	from := origin{a[attrSource], a[attrProof]}
	for _, required := range []attribute{attrSpecVersion, attrID, attrSource, attrType} {
		if a[required] == "" {
			return from, fmt.Errorf("CloudEvent has no %s", attributeNames[required])
		}
	}
	if a[attrSpecVersion] != specVersion {
		return from, fmt.Errorf("CloudEvent has specversion %q, want %q", a[attrSpecVersion], specVersion)
	}
	if a[attrTime] != "" {
		at, err := time.Parse(time.RFC3339, strings.ToUpper(a[attrTime])) // T and Z may be lower case
		if err != nil {
			return from, fmt.Errorf("CloudEvent has time %q: %w", a[attrTime], err)
		}
		m.OccurredAt = at
	}
	if a[attrSchemaVersion] != "" {
		if version, err := strconv.ParseUint(a[attrSchemaVersion], 10, 31); err == nil {
			m.SchemaVersion = int(version)
		} else { // another sender's extension of the same name, with a different meaning
			setHeader(m, c.names[attrSchemaVersion], a[attrSchemaVersion])
		}
	}
	setHeader(m, c.names[attrSource], a[attrSource]) // a message has no field for it
	m.WireID = a[attrID]
	m.Type = a[attrType]
	m.AggregateType = a[attrAggregate]
	m.AggregateID = a[attrSubject]
	m.TenantID = a[attrTenant]
	m.CorrelationID = a[attrCorrelation]
	m.CausationID = a[attrCausation]
	m.DedupKey = a[attrDedupKey]
	if m.SchemaID = a[attrSchemaID]; m.SchemaID == "" {
		m.SchemaID = a[attrDataSchema]
	}
	if m.Key = a[attrPartitionKey]; m.Key == "" && m.AggregateType == "" {
		m.Key = p.Key // set by another sender
	}
	return from, nil
}
