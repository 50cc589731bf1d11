package shard

import "github.com/postrider/postrider"

// choice limits the messages of a call.
type choice struct {
	messages   int  // maximum number
	bytes      int  // maximum number, except for a single message
	leastTried bool // only messages with the fewest attempts
	strict     bool // with leastTried: skip messages behind one of their key with more attempts
}

// pick chooses the messages of the next call, oldest first. It may be called again before the call
// is made.
func (w *window) pick(c choice) []postrider.Message {
	if w.tracked && w.keepsOrder && w.order.failed+w.order.beyond+w.order.deferring+len(w.urgent) == 0 {
		w.tracked = false
		w.order.reset()
	}
	w.repeated = 0
	if !w.tracked {
		call := w.slice(w.first, min(c.messages, w.end-w.first))
		w.size = w.fit(call, c.bytes)
		return call[:w.size:w.size]
	}
	reordered := false // some messages overtake others
	if c.leastTried {
		w.picked = w.order.leastTried(w.order.choose(w.picked[:0], w.end-w.first, w.first, w.end), c.messages, c.strict)
	} else if w.picked = w.overtake(w.picked[:0], c.messages); len(w.picked) > 0 {
		reordered = true
		w.picked = w.order.chooseOthers(w.picked, c.messages, w.first, w.end)
	} else {
		w.picked = w.order.choose(w.picked, c.messages, w.first, w.end)
	}
	w.size = len(w.picked)
	if w.size == 0 {
		return nil
	}
	var call []postrider.Message
	if from := w.picked[0]; !reordered && w.picked[w.size-1]-from == w.size-1 {
		call = w.slice(from, w.size)
	} else {
		call = w.gather(w.picked)
	}
	w.size = w.fit(call, c.bytes)
	w.picked = w.picked[:w.size]
	for _, pos := range w.picked {
		if w.order.at(pos).state != fresh {
			w.repeated++
		}
	}
	return call[:w.size:w.size]
}

// attempts returns the number of earlier failures of each picked message; nil if there are none.
func (w *window) attempts() []int {
	if w.repeated == 0 {
		return nil
	}
	all := make([]int, len(w.picked))
	for i, pos := range w.picked {
		all[i] = int(w.order.at(pos).tries)
	}
	return all
}

// fit returns how many leading messages of a call fit into the given number of bytes, at least one.
func (w *window) fit(call []postrider.Message, bytes int) int {
	if w.bytes <= bytes {
		return len(call)
	}
	for i := range call {
		if bytes -= sizeOf(&call[i]); bytes < 0 {
			return max(i, 1)
		}
	}
	return len(call)
}

// slice returns n consecutive messages.
func (w *window) slice(from, n int) []postrider.Message {
	if n == 0 {
		return nil
	}
	i := w.find(from, 0)
	msgs := w.runs[i].Messages[from-w.runs[i].at:]
	if len(msgs) >= n {
		return msgs[:n:n]
	}
	call := append(w.scratch[:0], msgs...)
	for i++; len(call) < n; i++ {
		msgs = w.runs[i].Messages
		call = append(call, msgs[:min(n-len(call), len(msgs))]...)
	}
	return w.keep(call)
}

func (w *window) gather(picked []int) []postrider.Message {
	call := w.scratch[:0]
	i := 0
	for _, pos := range picked {
		if i+1 < len(w.runs) && w.runs[i+1].at == pos {
			i++
		} else {
			i = w.find(pos, i)
		}
		call = append(call, w.runs[i].Messages[pos-w.runs[i].at])
	}
	return w.keep(call)
}

func (w *window) keep(call []postrider.Message) []postrider.Message {
	w.scratch = call
	w.used = max(w.used, len(call))
	return call
}
