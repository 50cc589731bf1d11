package work

import (
	"encoding/json"
	"os"
	"time"
)

// Secret signs webhooks.
const Secret = "whsec_Y2FtcGFpZ24tY2FtcGFpZ24tY2FtcGFpZ24tMDE="

// Plan is what the processes of the workload are told, as a file.
type Plan struct {
	Dir string // where the files of the run are

	Producers string // database, for producers
	Pooled    string // the same, through PgBouncer
	Consumers string // the same, for consumers

	Brokers      map[string]string // addresses of brokers by destination; HTTP has none
	Receiver     string            // where the HTTP receiver listens
	Destinations []string

	Rate    float64       // messages a second that a producer process commits
	Writers int           // transactions at a time in a producer process
	Keys    int           // ordinary keys of each destination
	Poison  float64       // share of messages that their destination has to refuse
	Pause   time.Duration // longest pause inside of a transaction, one of several
	Linger  time.Duration // longest time that a transaction stays open with all it has written: more than several reads of a relay
}

// Save writes the plan.
func (p Plan) Save(path string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600) // there are passwords in it
}

// Load reads a plan.
func Load(path string) (p Plan, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(text, &p)
}
