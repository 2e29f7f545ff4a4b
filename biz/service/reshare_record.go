package service

import (
	"slices"
	"sync"
	"time"
)

// reshareRecords is how many reshares a node remembers.
const reshareRecords = 512

// ReshareRecord is what a finished reshare did and found.
type ReshareRecord struct {
	SKU     string        `json:"sku"`
	Reason  string        `json:"reason"`
	Epoch   int64         `json:"epoch"`
	Full    bool          `json:"full"`
	Left    int64         `json:"left"`    // units laid out
	Drift   int64         `json:"drift"`   // units that the truth had more than the gate; closings on their way count
	Carried int64         `json:"carried"` // units of acknowledged takes promised on the way
	Took    time.Duration `json:"took_ns"`
	At      time.Time     `json:"at"` // when it was finished
	// Lost says that the gate had lost keys, or could have: a share was gone or old, Redis was another one, or a reshare
	// was left half-way. Moved says that units lay elsewhere than the layout has them.
	Lost  bool `json:"lost"`
	Moved bool `json:"moved"`
}

// Kind is "full" or "light".
func (r ReshareRecord) Kind() string {
	if r.Full {
		return "full"
	}
	return "light"
}

// ReshareTimes sums up how long reshares of one kind took.
type ReshareTimes struct {
	Count int           `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
}

// TimesOf sums up the records of one kind.
func TimesOf(records []ReshareRecord, full bool) ReshareTimes {
	var took []time.Duration
	for _, r := range records {
		if r.Full == full {
			took = append(took, r.Took)
		}
	}
	if len(took) == 0 {
		return ReshareTimes{}
	}
	slices.Sort(took)
	at := func(pct int) time.Duration { return took[min(len(took)-1, len(took)*pct/100)] }
	return ReshareTimes{Count: len(took), P50: at(50), P99: at(99)}
}

// reshareLog remembers the last reshares of this node.
type reshareLog struct {
	mu   sync.Mutex
	last []ReshareRecord // a ring once it is full
	next int
}

func (l *reshareLog) add(r ReshareRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) < reshareRecords {
		l.last = append(l.last, r)
		return
	}
	l.last[l.next] = r
	l.next = (l.next + 1) % reshareRecords
}

func (l *reshareLog) list(sku string) []ReshareRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Concat(l.last[l.next:], l.last[:l.next])
	return slices.DeleteFunc(all, func(r ReshareRecord) bool { return sku != "" && r.SKU != sku })
}
