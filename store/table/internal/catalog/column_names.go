package catalog

import (
	"slices"
	"strings"
)

// Synonyms are what a column with a key is called in other people's tables, as [Plain] writes it, the likeliest first.
func Synonyms(key string) []string {
	return map[string][]string{
		"id":             {"id", "eventid", "messageid", "outboxid", "offset", "seq", "sequence", "uuid"},
		"message_id":     {"messageid", "eventid", "uuid", "eventuuid", "messageuuid"},
		"type":           {"type", "eventtype", "messagetype", "eventname", "event", "kind"},
		"aggregate_type": {"aggregatetype", "entitytype", "aggregate", "aggregatename"},
		"aggregate_id":   {"aggregateid", "entityid", "aggregatekey"},
		"key":            {"partitionkey", "orderingkey", "orderkey", "messagekey", "eventkey", "key"},
		"topic":          {"topic", "destination", "channel", "exchange"},
		"routing_key":    {"routingkey"},
		"tenant_id":      {"tenantid", "tenant"},
		"payload":        {"payload", "data", "body", "content", "message", "eventdata", "eventpayload", "eventbody"},
		"content_type":   {"contenttype"},
		"headers":        {"headers", "metadata", "meta", "attributes", "eventmetadata", "eventheaders", "messageheaders"},
		"schema_version": {"schemaversion", "eventversion"},
		"schema_id":      {"schemaid"},
		"dedup_key":      {"dedupkey", "deduplicationkey", "deduplicationid", "idempotencykey"},
		"occurred_at":    {"occurredat", "occurredon"},
		"created_at":     {"createdat", "createdon", "created", "insertedat", "createdtime", "timestamp"},
		"deliver_after":  {"deliverafter", "availableat", "scheduledat", "scheduledfor", "visibleafter", "visibleat", "notbefore"},
		"priority":       {"priority"},
		"correlation_id": {"correlationid"},
		"causation_id":   {"causationid"},
		"status":         {"status", "state"},
		"attempts":       {"attempts", "retrycount", "attemptcount", "retries", "tries", "deliveryattempts", "numattempts"},
		"next_attempt":   {"nextattemptat", "nextretryat", "retryafter", "retryat", "nextattempt", "nextretry", "availableat"},
		"last_error":     {"lasterror", "errormessage", "error", "failurereason", "lasterrormessage"},
		"claimed_at":     {"claimedat", "lockedat", "processingstartedat", "processingat", "startedat"},
		"claimed_by":     {"claimedby", "lockedby", "workerid", "processorid"},
		"published_at":   {"publishedat", "processedat", "sentat", "deliveredat", "dispatchedat", "processedon", "completedat", "publishedon"},
		"updated_at":     {"updatedat", "modifiedat", "updatedon"},
	}[key]
}

// IsTime reports whether a column holds times.
func IsTime(c *Column) bool {
	return strings.HasPrefix(c.Type, "timestamp") || strings.HasPrefix(c.Type, "datetime")
}

// IsInteger reports whether a column holds integers.
func IsInteger(c *Column) bool {
	return Has(c, "bigint", "int", "smallint", "mediumint") && !strings.HasPrefix(c.Type, "interval")
}

// IsUUID reports whether a column may hold UUIDs.
func IsUUID(c *Column) bool {
	return Has(c, "uuid", "char(36)", "varchar(36)", "character(36)", "character varying(36)", "binary(16)")
}

// IsText reports whether a column holds text.
func IsText(c *Column) bool {
	return Has(c, "text", "varchar", "char", "character", "longtext", "mediumtext", "tinytext", "citext") && c.Type != `"char"`
}

// IsJSON reports whether a column holds JSON.
func IsJSON(c *Column) bool { return Has(c, "json") }

// IsBytes reports whether a column holds bytes.
func IsBytes(c *Column) bool {
	return Has(c, "bytea", "blob", "longblob", "mediumblob", "tinyblob", "binary", "varbinary")
}

// IsBoolean reports whether a column holds truth values.
func IsBoolean(c *Column) bool {
	return c.Type == "boolean" || c.Type == "tinyint(1)"
}

// Has reports whether the type of a column begins with one of the prefixes.
func Has(c *Column, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(c.Type, p) {
			return true
		}
	}
	return false
}

// Plain makes event_type, eventType and EVENT-TYPE the same.
func Plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', ' ', '.':
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// LooksLikeStatus reports whether a column could hold what has become of a row.
func LooksLikeStatus(c *Column) bool {
	if !slices.Contains(Synonyms("status"), Plain(c.Name)) && !(IsBoolean(c) && slices.Contains(flags, Plain(c.Name))) {
		return false
	}
	return IsText(c) || IsBoolean(c) || c.Type == "enum"
}

// flags are columns that say with true or false whether a row was delivered.
var flags = []string{"published", "processed", "sent", "delivered", "dispatched", "done", "ispublished", "isprocessed", "issent"}
