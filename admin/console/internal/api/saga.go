package api

import (
	"context"
	"time"

	"github.com/postrider/postrider/saga"
)

// SagaRow is a saga in a list.
type SagaRow struct {
	Name     string      `json:"name"`
	ID       string      `json:"id"`
	Status   saga.Status `json:"status" enum:"running,waiting,compensating,stuck,completed,compensated"`
	Started  time.Time   `json:"started"`
	Finished time.Time   `json:"finished,omitzero"`
	Cause    string      `json:"cause,omitempty"`
}

func (s *Server) sagaOf(i *saga.Instance) SagaRow {
	return SagaRow{i.Name, i.ID, i.Status, i.Started.UTC(), i.Finished.UTC(), s.shown(i.Cause)}
}

// SagaFilter selects sagas.
type SagaFilter struct {
	DB
	Name   string        `query:"name"`
	ID     string        `query:"id"`
	Status []saga.Status `query:"status" enum:"running,waiting,compensating,stuck,completed,compensated"`
}

func (f *SagaFilter) admin() saga.Filter {
	return saga.Filter{Name: f.Name, ID: f.ID, Statuses: f.Status}
}

// Sagas is a request for a page of sagas.
type Sagas struct {
	SagaFilter
	Paging
}

func (s *Server) sagas(ctx context.Context, d *database, in *Sagas) (*Page[SagaRow], error) {
	sagas, err := has(d.Sagas, "sagas")
	if err != nil {
		return nil, err
	}
	at, err := placeIn("sagas", in.Cursor, 2)
	if err != nil {
		return nil, err
	}
	var after *saga.Instance
	if at != nil {
		after = &saga.Instance{Name: at.Words[0], ID: at.Words[1], Started: at.Time}
	}
	found, err := sagas.List(ctx, in.admin(), after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	page := &Page[SagaRow]{Items: []SagaRow{}}
	for i := range found[:min(len(found), in.Limit)] {
		page.Items = append(page.Items, s.sagaOf(&found[i]))
	}
	if len(found) > in.Limit {
		last := &found[in.Limit-1]
		page.Cursor = place{List: "sagas", Time: last.Started, Words: []string{last.Name, last.ID}}.cursor()
	}
	return page, nil
}

func (s *Server) sagaCount(ctx context.Context, d *database, in *SagaFilter) (map[string]int, error) {
	sagas, err := has(d.Sagas, "sagas")
	if err != nil {
		return nil, err
	}
	counts, err := sagas.Count(ctx, in.admin())
	if err != nil {
		return nil, err
	}
	return byName(counts), nil
}

// Saga is a saga with all details.
type Saga struct {
	SagaRow
	Steps   []SagaStep   `json:"steps"`
	Signals []SagaSignal `json:"signals"`
	Data    *Payload     `json:"data,omitempty"`
	Command string       `json:"command"`
}

// SagaStep is a step of a saga.
type SagaStep struct {
	Name        string     `json:"name"`
	State       saga.State `json:"state"`
	After       []string   `json:"after" doc:"names of the steps that come before it"`
	Attempts    int        `json:"attempts"`
	Due         time.Time  `json:"due,omitzero"`
	Error       string     `json:"error,omitempty"`
	Started     time.Time  `json:"started,omitzero"`
	Finished    time.Time  `json:"finished,omitzero"`
	Current     bool       `json:"current"`
	Compensates bool       `json:"compensates" doc:"there is something to undo, or was"`
}

// SagaSignal is a signal to a waiting step.
type SagaSignal struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// SagaID is the parameter of requests about one saga.
type SagaID struct {
	DB
	Name string `path:"name"`
	ID   string `path:"id"`
}

func (s *Server) saga(ctx context.Context, d *database, in *SagaID) (*Saga, error) {
	sagas, err := has(d.Sagas, "sagas")
	if err != nil {
		return nil, err
	}
	i, err := sagas.Show(ctx, in.Name, in.ID)
	if err != nil {
		return nil, err
	}
	out := &Saga{
		SagaRow: s.sagaOf(i), Steps: make([]SagaStep, len(i.Steps)), Signals: make([]SagaSignal, len(i.Signals)),
		Command: d.commandOn("saga show", in.ID, "--name", in.Name),
	}
	for n := range i.Steps {
		out.Steps[n] = s.stepOf(i, n)
	}
	for n := range i.Signals {
		out.Signals[n] = SagaSignal{i.Signals[n].Name, i.Signals[n].At.UTC()}
	}
	if len(i.Data) > 0 {
		data := Payload(s.cfg.Redact.Payload("application/json", i.Data, s.seesPayloads(ctx)))
		out.Data = &data
	}
	return out, nil
}

func (s *Server) stepOf(i *saga.Instance, n int) SagaStep {
	step := &i.Steps[n]
	out := SagaStep{
		Name: step.Name, State: step.State, After: []string{}, Attempts: step.Attempts, Due: step.Due.UTC(), Error: s.shown(step.Error),
		Started: step.Reached.UTC(), Finished: step.Ended.UTC(), Compensates: step.Order > 0,
	}
	stage := -1 // the stage before this one
	for m := range i.Steps {
		if other := &i.Steps[m]; other.Stage < step.Stage && other.Stage > stage {
			stage = other.Stage
		}
	}
	for m := range i.Steps {
		if i.Steps[m].Stage == stage {
			out.After = append(out.After, i.Steps[m].Name)
		}
	}
	switch step.State {
	case saga.StepReady, saga.StepWaiting, saga.StepUndoing, saga.StepStuck:
		out.Current = !i.Status.Finished()
	case saga.StepUndone:
		out.Finished = step.Undone.UTC()
	default: // as stored
	}
	return out
}

// SagaAct is a request to apply an action to a saga.
type SagaAct struct {
	SagaID
	Body struct {
		Act  saga.Act `json:"act" enum:"retry,compensate,skip"`
		Step string   `json:"step,omitempty" doc:"only this one"`
		Why  string   `json:"why,omitempty" maxLength:"1000"`
	}
}

func (s *Server) sagaAct(ctx context.Context, d *database, in *SagaAct) (*Done, error) {
	sagas, err := has(d.Sagas, "sagas")
	if err != nil {
		return nil, err
	}
	b := &in.Body
	flags := []string{"--name", in.Name}
	if b.Step != "" {
		if b.Act == saga.ActCompensate {
			return nil, invalid("a saga is compensated as a whole: leave step out")
		}
		flags = append(flags, "--step", b.Step)
	}
	done, err := sagas.Act(ctx, by(ctx, b.Why), b.Act, in.Name, in.ID, b.Step)
	if err != nil {
		return nil, err
	}
	show := d.commandOn("saga show", in.ID, "--name", in.Name)
	if !done {
		return nil, failf(409, show, "there is nothing to %s: nothing has failed there, or a step is running at this moment", b.Act)
	}
	s.acted(ctx, d, "saga "+string(b.Act), b.Why, "saga", in.Name, "id", in.ID, "step", b.Step)
	return &Done{Count: 1, Command: d.commandOn("saga "+string(b.Act), in.ID, append(flags, reason(b.Why)...)...)}, nil
}
