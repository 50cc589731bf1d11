package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/internal/lease"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

// consumeOrdered implements Consume for a group of which one process receives at a time. It calls
// end, which ends the intake, if no attempt can ever succeed.
func (c *Consumer) consumeOrdered(in *intake.Intake, end func()) error {
	leases := c.leases()
	defer func() { _ = leases.client.Close() }()
	var fatal error
	in.Leased(leases, lease.Config{Length: c.cfg.Lease, Name: c.cfg.leaseKey(), Logger: c.cfg.Logger},
		func(ctx context.Context, p *intake.Part, t *lease.Term) {
			s := &served{Consumer: c, in: in, part: p, term: t, owner: leases.owner, held: newHeld(&c.cfg, c.options)}
			fatal = c.persist(ctx, end, s.receive)
			p.Wait()
			s.held.leave() //nolint:contextcheck // ctx has ended, but the server must be informed
		})
	in.Wait()
	return fatal
}

// served is one term of the lease.
type served struct {
	*Consumer
	in    *intake.Intake
	part  *intake.Part
	term  *lease.Term
	owner string
	held  *held
}

// receive reads until an error occurs. It starts with all pending entries of any member, oldest
// first, so that no new entry overtakes them.
func (s *served) receive(ctx context.Context, working func()) error {
	client := redis.NewUniversalClient(s.options)
	defer func() { _ = client.Close() }()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })() // ends the wait for entries
	err := client.XGroupCreateMkStream(ctx, s.cfg.Name, s.cfg.Group, "0").Err()
	if err != nil && !server.HasCode(err, "BUSYGROUP") {
		return err
	}
	if err := s.claimAll(ctx, client); err != nil {
		return err
	}
	working()
	for from := "0"; ctx.Err() == nil; {
		free := s.in.Free()
		if free == 0 {
			break
		}
		var entries []redis.XMessage
		if from != ">" {
			entries, err = s.read(ctx, client, from, free)
			if from = ">"; len(entries) > 0 {
				from = entries[len(entries)-1].ID
			}
		} else {
			entries, err = s.readNew(ctx, client, free)
		}
		if err != nil {
			return err
		}
		s.accept(s.part.Accept, s.held, entries) //nolint:contextcheck // what was handled is acknowledged even when ctx has ended
	}
	return ctx.Err()
}

var errLeaseLost = errors.New("redis: another process has the lease")

// fenced runs a script that has no effect unless this process owns the lease. A command that a
// paused process sends late must not take entries from the next owner.
func (s *served) fenced(ctx context.Context, client redis.UniversalClient, script *redis.Script, args ...any) ([]any, error) {
	answer, err := script.Run(ctx, client, []string{s.cfg.leaseKey(), s.cfg.Name},
		append([]any{s.owner, s.cfg.Group, s.cfg.Member}, args...)...).Slice()
	if errors.Is(err, redis.Nil) {
		s.term.Lose()
		<-ctx.Done() // ends with the term
		err = errLeaseLost
	}
	return answer, err
}

// claiming claims a page of pending entries for this member, regardless of idle time, and returns
// their number and the last ID.
var claiming = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
local group, member, from, page = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local pending = redis.call('XPENDING', KEYS[2], group, from, '+', page)
local claim, last = {'XCLAIM', KEYS[2], group, member, 0}, ''
for _, entry in ipairs(pending) do
	last = entry[1]
	if entry[2] ~= member then claim[#claim + 1] = last end
end
if #claim > 5 then
	claim[#claim + 1] = 'JUSTID'
	redis.call(unpack(claim))
end
return {#pending, last}`)

// claimAll claims all pending entries. They are then pending for this member.
func (s *served) claimAll(ctx context.Context, client redis.UniversalClient) error {
	for from := "-"; ; {
		answer, err := s.fenced(ctx, client, claiming, from, page)
		if err != nil {
			return err
		}
		if n, _ := answer[0].(int64); n < page {
			return nil
		}
		last, _ := answer[1].(string)
		from = "(" + last
	}
}

// reading reads new entries. If there are none, it returns the ID after which new ones will appear.
var reading = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
local got = redis.call('XREADGROUP', 'GROUP', ARGV[2], ARGV[3], 'COUNT', ARGV[4], 'STREAMS', KEYS[2], '>')
if got then return {got[1][2], ''} end
local info = redis.call('XINFO', 'STREAM', KEYS[2])
for i = 1, #info, 2 do
	if info[i] == 'last-generated-id' then return {{}, info[i + 1]} end
end
return {{}, '$'}`)

// readNew reads new entries. If there are none, it waits for some and returns none. It does not
// wait in XREADGROUP: the server would deliver entries to a process waiting there although its
// lease is over.
func (s *served) readNew(ctx context.Context, client redis.UniversalClient, count int) ([]redis.XMessage, error) {
	answer, err := s.fenced(ctx, client, reading, count)
	if err != nil {
		return nil, err
	}
	list, _ := answer[0].([]any)
	if len(list) > 0 {
		return messagesOf(list), nil
	}
	behind, _ := answer[1].(string)
	err = client.XRead(ctx, &redis.XReadArgs{Streams: []string{s.cfg.Name, behind}, Count: 1, Block: time.Second}).Err()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return nil, err
}

// messagesOf parses entries as returned by a script: each is an ID and a list of fields and values.
func messagesOf(list []any) []redis.XMessage {
	entries := make([]redis.XMessage, 0, len(list))
	for _, item := range list {
		entry, _ := item.([]any)
		if len(entry) < 2 {
			continue
		}
		id, _ := entry[0].(string)
		fields, _ := entry[1].([]any)
		values := make(map[string]any, len(fields)/2)
		for i := 0; i+1 < len(fields); i += 2 {
			name, _ := fields[i].(string)
			values[name] = fields[i+1]
		}
		entries = append(entries, redis.XMessage{ID: id, Values: values})
	}
	return entries
}
