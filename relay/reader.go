package relay

import (
	"context"
	"errors"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// reader fetches messages for all lanes in one call, as fast as they come and no faster than the lanes have room.
type reader struct {
	*epoch
	want  []feeds.Demand
	asked map[int]*lane // by shard: who asked. A lane that came later must not get what an earlier one asked for.

	shrink int // reads are so many times halved: the last ones took too long
}

// mostShrink bounds that: a page of a thousandth.
const mostShrink = 10

// fewSuspects is how many messages are read at a time of a shard whose relays have died: what kills them may be their size.
const fewSuspects = 10

// What a read costs the database hardly depends on what it brings. So when messages come fast the reader lets busyPage of
// them gather, and when they come slowly it waits until the next is due: for so many times PollMin at most.
const (
	busyPage   = 16
	mostGather = 3
	mostDue    = 5
)

// When nothing comes, reads grow apart to idlePoll, and from then on to a part of the time that nothing has come: a message waits for a
// 64th of that at most, and a database that is hardly used costs hardly anything.
const (
	idlePoll  = 50 * time.Millisecond
	quietPart = 64
)

// idleRead is the time between a read that brought nothing and the next, if the last time was so long, and nothing has come for so long.
func (c *Config) idleRead(last, quiet time.Duration) time.Duration {
	return min(max(last, c.PollMin)*3/2, max(idlePoll, quiet/quietPart), c.PollMax)
}

// nextRead is the time between a read that brought messages, as many as came within that time, and the next.
func (c *Config) nextRead(messages int, within time.Duration) time.Duration {
	gather := c.PollMin * time.Duration(min(max(messages/busyPage, 1), mostGather))
	due := min(within/time.Duration(messages), c.PollMin*mostDue)
	return min(max(gather, due), c.PollMax)
}

// read feeds the lanes until ctx ends. A Read under way is not cut then: stores may have to distrust a connection that
// was cut, and with it what is still to be settled.
func (t *epoch) read(ctx context.Context) {
	rd := reader{epoch: t, asked: make(map[int]*lane)}
	cfg := &t.cfg
	trouble := outage{log: t.log, what: "reading"}
	pause := backoff{policy: cfg.Outage}
	timer := time.NewTimer(0)
	defer timer.Stop()

	interval, brought := cfg.PollMin, time.Now()
	for ctx.Err() == nil {
		if !rd.collect() { // no lane, or none with room: nothing to do until that changes
			select {
			case <-t.more:
			case <-ctx.Done():
			}
			continue
		}
		start := time.Now()
		messages, more, err := rd.fetch() //nolint:contextcheck // what has begun lasts as long as the epoch
		switch {
		case err != nil:
			if t.over(err) || t.ctx.Err() != nil {
				return
			}
			if errors.Is(err, context.DeadlineExceeded) {
				rd.shrink = min(rd.shrink+1, mostShrink)
			}
			trouble.fail(err)
			sleep(ctx, pause.next())
			continue
		case more:
			interval, brought = 0, start
		case messages > 0:
			interval = cfg.nextRead(messages, start.Sub(brought))
			brought = start
		default:
			interval = cfg.idleRead(interval, start.Sub(brought))
		}
		trouble.ok()
		pause.reset()
		rd.shrink = max(rd.shrink-1, 0)

		for wait := true; wait && interval > 0; {
			rest := interval - time.Since(start)
			if rest <= 0 {
				break
			}
			timer.Reset(rest)
			select {
			case <-timer.C:
				wait = false
			case <-t.more:
				wait = false
			case <-t.wake:
				interval = cfg.PollMin // from the last read: at once, unless that has only just been
			case <-ctx.Done():
				return
			}
		}
	}
}

// collect finds out who wants how much. The budget in bytes is shared by those who want something; a lane that has nothing may
// always have one message, so that one that is larger than the budget passes too.
func (rd *reader) collect() bool {
	cfg := &rd.cfg
	rd.want = rd.want[:0]
	clear(rd.asked)
	free := cfg.Memory
	var roomy, fair []*lane
	lanes := rd.lanes()
	for _, l := range lanes {
		f, ok := l.offer(cfg)
		free -= f.Bytes
		switch {
		case ok:
			roomy = append(roomy, l)
		case cfg.ReadAhead-f.Buffered >= (cfg.ReadAhead+3)/4 && !l.ending():
			fair = append(fair, l)
		}
	}
	if len(roomy) > 0 { // what stores read for one lane costs little more for those that stand beside it
		roomy = append(roomy, fair...)
	}
	share := free / max(len(roomy), 1)
	tight := share < cfg.Memory/(4*max(len(lanes), 1)) // pages must not get tiny
	rd.tight.Store(tight)
	for _, l := range roomy {
		f := l.look()
		if tight && f.Buffered > 0 {
			l.await()
			continue
		}
		d := feeds.Demand{Shard: l.shard, Limit: cfg.ReadAhead - f.Buffered, Bytes: max(share, 1)}
		if f.Suspicious {
			d.Limit = min(d.Limit, fewSuspects)
		}
		d.Limit, d.Bytes = max(d.Limit>>rd.shrink, 1), max(d.Bytes>>rd.shrink, 1)
		rd.want = append(rd.want, d)
		rd.asked[l.shard] = l
	}
	return len(rd.want) > 0
}

// fetch reads once and hands the messages to their lanes. It returns how many came, and whether reading on at once is
// worth it.
func (rd *reader) fetch() (messages int, more bool, err error) {
	call, cancel := context.WithTimeout(rd.ctx, callTimeout)
	defer cancel()
	rd.count.reads.Add(1)
	batches, err := rd.feed.Read(call, rd.want)
	if err != nil {
		return 0, false, err
	}
	for _, b := range batches {
		l := rd.asked[b.Shard]
		if l == nil {
			continue
		}
		switch {
		case len(b.Messages) == 0:
		case l.ending():
			rd.missed(l)
		default:
			own := b // the lane must not keep the batches of other lanes alive
			l.push(&own)
			messages += count(b.Messages)
		}
		if b.More {
			more = l.isBehind(&rd.cfg) || more
		}
	}
	return messages, more, nil
}

// count returns how many messages there are, without canaries: those come all the time.
func count(msgs []postrider.Message) (n int) {
	for i := range msgs {
		if msgs[i].Type != feeds.CanaryType {
			n++
		}
	}
	return n
}

// missed notes that messages were read for a lane that is ending. If the relay has lost and regained the shard while they were
// read, the store takes them for handed out, and the lane that has the shard now must not go on behind them: giving the shard
// up makes the store begin again at what is settled.
func (t *epoch) missed(l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch now := t.held[l.shard]; now {
	case l: // it gives the shard up itself
	case nil:
		t.holed[l.shard] = true
	default:
		now.drain()
	}
}
