package work

import (
	"encoding/json"
	"os"
	"time"
)

// Secret signs webhooks.
const Secret = "whsec_Y2FtcGFpZ24tY2FtcGFpZ24tY2FtcGFpZ24tMDE="

// Plan is the configuration of the workload's processes, as a file.
type Plan struct {
	Dir string // of the files of the run

	Producers string // database, for producers
	Pooled    string // the same, through PgBouncer
	Consumers string // the same, for consumers

	Brokers      map[string]string // addresses of brokers by destination; HTTP has none
	Receiver     string            // listen address of the HTTP receiver
	Destinations []string

	Rate    float64       // messages that a producer process commits per second
	Writers int           // concurrent transactions in a producer process
	Keys    int           // ordinary keys of each destination
	Poison  float64       // share of messages that their destination must reject
	Pause   time.Duration // longest of several pauses inside a transaction
	Linger  time.Duration // longest time that a transaction stays open after its writes: more than several reads of a relay
}

// Save writes the plan.
func (p Plan) Save(path string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600) // contains passwords
}

// Load reads a plan.
func Load(path string) (p Plan, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(text, &p)
}
