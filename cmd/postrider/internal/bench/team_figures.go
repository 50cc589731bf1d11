package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/postrider/postrider/cmd/postrider/internal/scale"
)

// scrape reads the metrics of a relay: the sum of each over its labels, and for calls of the store
// also by the kind of call.
func (m *member) scrape(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		select {
		case <-m.ended:
			return nil, fmt.Errorf("bench: a relay has ended: %w", m.err)
		default:
			return nil, err
		}
	}
	defer answer.Body.Close() //nolint:errcheck // was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	return sumMetrics(string(text)), nil
}

func sumMetrics(text string) map[string]float64 {
	sums := make(map[string]float64)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			continue
		}
		name, labels, _ := strings.Cut(line[:end], "{")
		sums[name] += value
		if _, after, ok := strings.Cut(labels, `call="`); ok {
			call, _, _ := strings.Cut(after, `"`)
			sums[name+" "+call] += value
		}
	}
	return sums
}

// tally holds the counters of all relays of a team at one time.
type tally struct {
	published, reads, settles, balances int64
	ticks, memory                       int64
	goroutines                          int
	files                               int
}

// count reads the counters of all relays.
func (t *team) count(ctx context.Context) (sum tally, err error) {
	for _, m := range t.members {
		figures, err := m.scrape(ctx)
		if err != nil {
			return sum, err
		}
		sum.published += int64(figures["postrider_published_messages_total"])
		sum.reads += int64(figures["postrider_store_calls_total read"])
		sum.settles += int64(figures["postrider_store_calls_total settle"])
		sum.balances += int64(figures["postrider_store_calls_total balance"])
		sum.goroutines += int(figures["go_goroutines"])
		pid := m.cmd.Process.Pid
		p, err := readProcess(pid)
		if err != nil {
			return sum, err
		}
		sum.ticks += p.used
		memory, err := resident(pid)
		if err != nil {
			return sum, err
		}
		sum.memory += memory
		files, err := openFiles(pid)
		if err != nil {
			return sum, err
		}
		sum.files += files
	}
	return sum, nil
}

// addTo sets the differences between two tallies.
func (after tally) addTo(phase *scale.Phase, before tally) {
	phase.Published = after.published - before.published
	phase.Reads = after.reads - before.reads
	phase.Settles = after.settles - before.settles
	phase.Balances = after.balances - before.balances
	phase.CPU.Relays = float64(after.ticks-before.ticks) / ticksPerSecond
	phase.RelayMemory = after.memory
}
