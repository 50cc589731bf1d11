package dashboard

// Selectors of the panels' series. Every relay exports the same metrics about the database, so
// panels take their maximum; counters belong to one process each, so panels sum them.
const (
	inFeed     = `{job=~"$job",database=~"$database",feed=~"$feed"}`
	ofFeed     = `{job=~"$job",feed=~"$feed"}`
	inDatabase = `{job=~"$job",database=~"$database"}`
	inJob      = `{job=~"$job"}`
	rate       = `[$__rate_interval]`
	feedName   = "{{database}}/{{feed}}"
)

func largest(metric string) string { return "max by (database, feed) (" + metric + inFeed + ")" }

func perSecond(metric string) string {
	return "sum by (database, feed) (rate(" + metric + inFeed + rate + "))"
}

func quantile(q, metric, by, in string) string {
	return "histogram_quantile(" + q + ", sum by (" + by + ", le) (rate(" + metric + "_bucket" + in + rate + ")))"
}

// questions returns the rows, in the order in which an operator on call needs them.
func questions() []row {
	return []row{keepingUp(), howFast(), whatFails(), whatItCosts(), whoHoldsWhat()}
}
