package classic

import "strings"

// synonyms are what a column with a key is called in other people's tables, as [plain] writes it, the likeliest first.
func synonyms(key string) []string {
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

// fits reports whether a column can hold what a key means.
func fits(key string, c *TableColumn) bool {
	switch key {
	case "created_at", "occurred_at", "deliver_after", "next_attempt", "claimed_at", "published_at", "updated_at":
		return isTime(c) && !(c.Generated && key != "created_at" && key != "occurred_at")
	case "attempts":
		return isInteger(c) && !c.Generated
	case "schema_version", "priority":
		return isInteger(c)
	case "status":
		return looksLikeStatus(c) && !c.Generated
	case "last_error":
		return isText(c) && !c.Generated
	case "claimed_by":
		return (isText(c) || isUUID(c)) && !c.Generated
	case "payload":
		return isText(c) || isJSON(c) || isBytes(c)
	case "headers":
		return isText(c) || isJSON(c)
	case "id":
		return isInteger(c) || isUUID(c) || isText(c) || isBytes(c)
	case "message_id":
		return isUUID(c) || isText(c)
	case "type", "topic", "routing_key", "content_type":
		return isText(c) || c.Type == "enum"
	}
	return isText(c) || isInteger(c) || isUUID(c) || c.Type == "enum"
}

func isTime(c *TableColumn) bool {
	return strings.HasPrefix(c.Type, "timestamp") || strings.HasPrefix(c.Type, "datetime")
}

// hasZone reports whether a time means the same in every session.
func hasZone(c *TableColumn) bool { return strings.Contains(c.Type, "with time zone") }

func isInteger(c *TableColumn) bool {
	return has(c, "bigint", "int", "smallint", "mediumint") && !strings.HasPrefix(c.Type, "interval")
}

func isUUID(c *TableColumn) bool {
	return has(c, "uuid", "char(36)", "varchar(36)", "character(36)", "character varying(36)", "binary(16)")
}

func isText(c *TableColumn) bool {
	return has(c, "text", "varchar", "char", "character", "longtext", "mediumtext", "tinytext", "citext") && c.Type != `"char"`
}

func isJSON(c *TableColumn) bool { return has(c, "json") }

func isBytes(c *TableColumn) bool {
	return has(c, "bytea", "blob", "longblob", "mediumblob", "tinyblob", "binary", "varbinary")
}

func isBoolean(c *TableColumn) bool {
	return c.Type == "boolean" || c.Type == "tinyint(1)"
}

func has(c *TableColumn, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(c.Type, p) {
			return true
		}
	}
	return false
}

// isCamel reports whether a table writes its columns like createdAt.
func isCamel(t *Table) bool {
	for _, c := range t.Columns {
		if strings.Contains(c.Name, "_") {
			return false
		}
		if strings.ToLower(c.Name[:1]) == c.Name[:1] && strings.ToLower(c.Name) != c.Name {
			return true
		}
	}
	return false
}
