package dashboard

// What the series of a panel are chosen by. Figures of the database come from every relay alike, so panels take the largest
// of them; counters are of one process each, so panels add them up.
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

// questions are the rows, in the order in which somebody who was woken up asks them.
func questions() []row {
	return []row{keepingUp(), howFast(), whatFails(), whatItCosts(), whoHoldsWhat()}
}
