package shard

import (
	"fmt"
	"slices"

	"stockade/biz/sale"
)

// run is one call of admit, settle or credit on one share, for some rows of what was asked.
type run struct {
	script *script
	keys   *keys
	epoch  int64 // of admit
	args   []any
	packed payload
	rows   []int    // for each packed row the place of what asked for it
	buyers []string // of admit's rows, each once
	reply  []int64
	err    error
}

// explain says which script failed, and whether it is certain that it did not run.
func (r *run) explain() error {
	if !r.packed.written || isRefused(r.err) {
		return fmt.Errorf("%w: shard: %s: %w", sale.ErrNotSent, r.script.name, r.err)
	}
	return fmt.Errorf("shard: %s: %w", r.script.name, r.err)
}

func (r *run) malformed() error {
	return fmt.Errorf("shard: malformed reply of %s: %d integers for %d rows", r.script.name, len(r.reply), len(r.rows))
}

// runKey finds the run that takes one more row of its kind.
type runKey struct {
	script *script
	keys   *keys
	epoch  int64
}

// flight turns a group of calls into runs, one for each share and script, and their replies into answers. Its memory is
// used again by the next group.
type flight struct {
	all     []*run // of which the first used ones belong to this group
	used    int
	open    map[runKey]*run
	answers []sale.Admission // by place in the group
	errs    []error
}

// load packs the calls. Settlements come first: what they give back can be taken in the same flight.
func (f *flight) load(group []*call) {
	f.used = 0
	if f.open == nil {
		f.open = map[runKey]*run{}
	}
	clear(f.open)
	f.answers = slices.Grow(f.answers[:0], len(group))[:len(group)]
	f.errs = slices.Grow(f.errs[:0], len(group))[:len(group)]
	clear(f.answers)
	clear(f.errs)
	for i, c := range group {
		for j := range c.Query.settle {
			s := &c.Query.settle[j]
			r := f.find(runKey{settleScript, s.keys, 0}, settleBatch, "")
			r.packed.data = packSettle(r.packed.data, &s.Settlement)
			r.rows = append(r.rows, i)
		}
	}
	for i, c := range group {
		if c.Query.keys == nil {
			continue
		}
		ask := &c.Query.admit
		r := f.find(runKey{admitScript, c.Query.keys, ask.Epoch}, admitBatch, ask.Buyer)
		r.packed.data = packAdmit(r.packed.data, ask)
		r.rows, r.buyers = append(r.rows, i), append(r.buyers, ask.Buyer)
	}
}

// find returns a run with room for one more row. A buyer who is in it already needs another run: the script would have
// to keep account of what it did within its batch, which every other batch would pay for.
func (f *flight) find(key runKey, limit int, buyer string) *run {
	if r := f.open[key]; r != nil && len(r.rows) < limit && !slices.Contains(r.buyers, buyer) {
		return r
	}
	if f.used == len(f.all) {
		f.all = append(f.all, &run{})
	}
	r := f.all[f.used]
	f.used++
	*r = run{
		script: key.script, keys: key.keys, epoch: key.epoch,
		args: r.args[:0], packed: payload{data: r.packed.data[:0]}, rows: r.rows[:0], buyers: r.buyers[:0],
	}
	if key.script == admitScript {
		r.args = append(r.args, key.epoch)
	}
	r.args = append(r.args, &r.packed)
	f.open[key] = r
	return r
}

func (f *flight) runs() []*run { return f.all[:f.used] }

// fail gives every run the same error.
func (f *flight) fail(err error) {
	for _, r := range f.runs() {
		r.err = err
	}
}

// answer tells every caller.
func (f *flight) answer(group []*call) {
	for _, r := range f.runs() {
		f.read(r)
	}
	for i, c := range group {
		c.Answer(f.answers[i], f.errs[i])
	}
	for _, r := range f.runs() {
		r.reply, r.err = nil, nil
	}
}

// read turns a run's reply into answers. A settlement's only news is its error.
func (f *flight) read(r *run) {
	err := r.err
	if err == nil && r.script == admitScript {
		err = f.readAdmit(r)
	}
	if err == nil {
		return
	}
	for _, i := range r.rows {
		f.errs[i] = err
	}
}

// readAdmit reads the reply that lua/admit.lua describes.
func (f *flight) readAdmit(r *run) error {
	reply := r.reply
	switch {
	case len(reply) == 1 && reply[0] == replyGone:
		for _, i := range r.rows {
			f.answers[i] = sale.Admission{Verdict: sale.Gone}
		}
		return nil
	case len(reply) == 4 && reply[0] == replyStale:
		for _, i := range r.rows {
			f.answers[i] = sale.Admission{Verdict: sale.Stale, Epoch: reply[1], Left: reply[2], Changes: reply[3]}
		}
		return nil
	case len(reply) < 2 || reply[0] != replyDone:
		return r.malformed()
	}
	epoch := reply[1]
	reply = reply[2:]
	for _, i := range r.rows {
		if len(reply) < 3 {
			return r.malformed()
		}
		a := sale.Admission{Verdict: sale.Verdict(reply[0]), Epoch: epoch, Left: reply[1], Changes: reply[2]}
		reply = reply[3:]
		a.Doubtful, a.Decided = a.Verdict&doubtfulBit != 0, a.Verdict&decidedBit != 0
		a.Acknowledged = a.Verdict&acknowledgedBit != 0
		a.Verdict &^= doubtfulBit | decidedBit | acknowledgedBit
		switch a.Verdict {
		case sale.Admitted:
			a.Token = sale.Token{Epoch: epoch, Change: a.Changes}
		case sale.Known:
			if len(reply) < 3 {
				return r.malformed()
			}
			a.Token, a.Quantity = sale.Token{Epoch: reply[0], Change: reply[1]}, reply[2]
			reply = reply[3:]
		case sale.Empty, sale.AtLimit, sale.NearLimit:
		default:
			return r.malformed()
		}
		f.answers[i] = a
	}
	return nil
}

// Marks on a verdict in admit's reply.
const (
	doubtfulBit     = 16 // refused, and the id is doubtful
	decidedBit      = 32 // known, and decided
	acknowledgedBit = 64 // known, undecided and acknowledged
)
